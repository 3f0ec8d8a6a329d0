#!/bin/bash
# tests/two_hosts.sh COMMAND...: runs COMMAND on 4 ranks, 2 on each of two hosts that know each other only by
# TCP. The hosts are network namespaces of their own host names, joined by a veth pair; both see this
# machine's disk, except TWO_HOSTS_PRIVATE (a folder): of that the second host has its own, empty one.
# MPIRUN_ARGS goes to mpirun. Exit code: the command's, or 77 (skipped) where the kernel or the user's rights
# do not allow namespaces.
set -euo pipefail
readonly self=$(readlink -f "$0")
readonly root=$(dirname "$(dirname "$self")")
readonly network=10.77.0

# Runs a command line on a host; mpirun calls it as it would call ssh.
on_host() {
  local host=$1
  shift
  local private=
  case $host in *b) private=${TWO_HOSTS_PRIVATE:-} ;; esac
  # shellcheck disable=SC2016 # expanded by the inner shell
  exec ip netns exec "$host" unshare --uts sh -c '
    hostname "$1"
    if [ -n "$2" ]; then mount -t tmpfs tmpfs "$2"; fi
    exec sh -c "$3"' sh "$host" "$private" "$*"
}

skip() {
  echo "two_hosts: skipped: $*" >&2
  exit 77
}

remove_hosts() {
  local host
  for host in "$a" "$b"; do
    ip netns del "$host" 2>/dev/null || true
    rm -rf "/etc/netns/$host"
  done
  rmdir --ignore-fail-on-non-empty /etc/netns 2>/dev/null || true
}

make_host() {
  local host=$1
  ip netns add "$host" 2>/dev/null || return 1
  mkdir -p "/etc/netns/$host"
  printf '127.0.0.1 localhost\n%s.1 %s\n%s.2 %s\n' $network "$a" $network "$b" > "/etc/netns/$host/hosts"
}

join_hosts() {
  ip link add veth0 netns "$a" type veth peer name veth0 netns "$b" || return 1
  ip -n "$a" addr add $network.1/24 dev veth0
  ip -n "$b" addr add $network.2/24 dev veth0
  local host
  for host in "$a" "$b"; do
    ip -n "$host" link set lo up
    ip -n "$host" link set veth0 up
  done
}

if [ "${1:-}" = --on-host ]; then
  shift
  on_host "$@"
fi
[ $# -gt 0 ] || { echo "usage: tests/two_hosts.sh COMMAND..." >&2; exit 2; }
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "no ip command: apt-get install iproute2"

readonly a=tutti$$a b=tutti$$b
trap remove_hosts EXIT
trap 'exit 130' INT TERM
make_host "$a" && make_host "$b" && join_hosts || skip "this kernel allows no network namespaces"
unshare --uts true 2>/dev/null || skip "this kernel allows no host names of our own"

command_line=$(printf '%q ' "$root/tools/mpirun.sh" -np 4 --host "$a:2,$b:2" \
  --mca plm_rsh_agent "$self --on-host" --mca btl tcp,self,vader \
  --mca btl_tcp_if_include $network.0/24 --mca oob_tcp_if_include $network.0/24)
"$self" --on-host "$a" "cd $(printf %q "$PWD") && exec $command_line ${MPIRUN_ARGS:-} $(printf '%q ' "$@")"
