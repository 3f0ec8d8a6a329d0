#!/bin/bash
# mpirun for programs of a build, with the options of `tutti run`: for root (in containers) and for more
# ranks than cores. On one host ranks speak through shared memory alone, and open no port. mpirun itself has
# one, for its daemons, which Open MPI binds to all addresses.
#   TUTTI_OPENMPI   the folder of an Open MPI, such as /usr; by default that of PATH
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=${OMPI_MCA_mpi_yield_when_idle-1}

# True if the ranks may be on several hosts: by an option, a file of hosts, or a batch system's allocation.
several_hosts() {
  local word
  for word in "$@"; do
    case $word in
      -H|-host|--host|-hostfile|--hostfile|-machinefile|--machinefile|-default-hostfile|--default-hostfile|\
      -app|--app|--host=*|--hostfile=*|--machinefile=*|orte_default_hostfile) return 0 ;;
    esac
  done
  [[ -n $OMPI_MCA_orte_default_hostfile || ${SLURM_JOB_NUM_NODES:-1} -gt 1 ||
     -n $PBS_NODEFILE$PE_HOSTFILE$LSB_HOSTS$LSB_DJOB_HOSTFILE ]]
}

if ! several_hosts "$@"; then
  export OMPI_MCA_pml=${OMPI_MCA_pml-ob1} OMPI_MCA_btl=${OMPI_MCA_btl-self,vader}
  export OMPI_MCA_oob_tcp_if_include=${OMPI_MCA_oob_tcp_if_include-lo}
fi
mpirun=mpirun prefix=${TUTTI_OPENMPI:-}
if [ -n "$prefix" ]; then
  [ -x "$prefix/bin/mpirun" ] || { echo "TUTTI_OPENMPI=$prefix: there is no bin/mpirun" >&2; exit 2; }
  mpirun=$prefix/bin/mpirun
  [ ! -x "$prefix/bin/prterun" ] || export OPAL_PREFIX=$prefix  # Open MPI 5 finds its messages by this
  for folder in "$prefix"/{lib,lib64,lib/x86_64-linux-gnu}; do
    [ ! -e "$folder/libmpi.so.40" ] || export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  done
fi
exec "$mpirun" --oversubscribe --bind-to none "$@"
