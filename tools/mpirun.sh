#!/bin/bash
# mpirun with the options for root (in containers) and for more ranks than cores: ranks are not bound to
# cores, and a waiting rank yields its core. On one host ranks speak through shared memory alone, and open no
# port. mpirun itself has one, for its daemons, which Open MPI binds to all addresses.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# True if the ranks may be on several hosts: by an option, a file of hosts, or a batch system's allocation.
several_hosts() {
  local word
  for word in "$@"; do
    case $word in
      -H|-host|--host|-hostfile|--hostfile|-machinefile|--machinefile|-default-hostfile|--default-hostfile|\
      -app|--app|orte_default_hostfile) return 0 ;;
    esac
  done
  [[ -n $OMPI_MCA_orte_default_hostfile || ${SLURM_JOB_NUM_NODES:-1} -gt 1 ||
     -n $PBS_NODEFILE$PE_HOSTFILE$LSB_HOSTS$LSB_DJOB_HOSTFILE ]]
}

if ! several_hosts "$@"; then
  export OMPI_MCA_btl=${OMPI_MCA_btl-self,vader} OMPI_MCA_oob_tcp_if_include=${OMPI_MCA_oob_tcp_if_include-lo}
fi
exec mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$@"
