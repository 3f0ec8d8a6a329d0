#!/bin/bash
# tests/two_hosts_test.sh TUTTI: digits.toml on 2 x 2 ranks of two hosts ends with the same bits as on 4 ranks
# of one host, and a run folder that the second host cannot see is refused with that host's name.
set -euo pipefail
readonly root=$(dirname "$(dirname "$(readlink -f "$0")")")
readonly tutti=$(readlink -f "$1")
readonly scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

train() { # RUN_DIR LAUNCHER...: a short training
  local run=$1
  shift
  "$@" "$tutti" train "$root/examples/digits.toml" --run-dir "$run" --set train.max_duration=3ep
}

status=0
train "$scratch/two" "$root/tests/two_hosts.sh" || status=$?
[ $status != 77 ] || exit 77
[ $status = 0 ] || fail "2 x 2 ranks on two hosts exit with $status"
train "$scratch/one" "$root/tools/mpirun.sh" -np 4
one=$("$tutti" inspect "$scratch/one" --digest)
two=$("$tutti" inspect "$scratch/two" --digest)
[ "$one" = "$two" ] || fail "one host: $one, two hosts: $two"
echo "the same digest on one host and on two: $one"

mkdir "$scratch/unshared"
status=0
export TWO_HOSTS_PRIVATE=$scratch/unshared
said=$(train "$scratch/unshared/run" "$root/tests/two_hosts.sh" 2>&1) || status=$?
[ $status != 0 ] || fail "a run folder that the second host cannot see is not refused"
grep -q "tutti[0-9]*b" <<< "$said" || fail "the refusal does not name the host: $said"
echo "a run folder that is not shared is refused: $(grep -m 1 "tutti[0-9]*b" <<< "$said")"
