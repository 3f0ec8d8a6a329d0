#!/bin/bash
# tests/libtorch_versions.sh BUILD [VERSION ...]: builds tutti against other libtorchs than that of
# tools/setup.sh, and runs the tests that ctest labels "fast": against VERSIONs of PyPI's wheel, by default
# the oldest that tutti takes and the newest there is. BUILD reads programs that they export. Each is
# installed beside setup.sh's own (8 GB of disk; older ones may be removed), and built in BUILD/torch-VERSION.
# The last lines say which failed, and in what; then the exit code is 1.
#   JOBS   compilers at a time; the number of cores by default
set -euo pipefail
readonly oldest=2.9.0  # cmake/torch.cmake refuses older ones
readonly root=$(dirname "$(dirname "$(readlink -f "$0")")")
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/tutti
readonly build=${1:?the build folder is missing}
readonly jobs=${JOBS:-$(nproc)}
shift

die() { printf 'libtorch_versions: %s\n' "$*" >&2; exit 1; }

newest() {  # of the wheels that suit this Python
  local scratch found
  scratch=$(mktemp -d)
  /usr/bin/python3 -m venv "$scratch"
  found=$("$scratch/bin/python" -m pip --disable-pip-version-check index versions torch 2>/dev/null |
    sed -n 's/^torch (\(.*\))$/\1/p') || true
  rm -rf "$scratch"
  printf '%s\n' "$found"
}

fast_tests() { ctest --test-dir "$1" -N -L '^fast$' | sed -n 's/^ *Test *#[0-9]*: //p'; }

run_fast_tests() {
  ctest --test-dir "$1" -L '^fast$' --parallel $((2 * jobs)) --output-on-failure --no-tests=error
}

failed_tests() { { sed 's/^[0-9]*://' "$1/Testing/Temporary/LastTestsFailed.log" || true; } | paste -sd ' '; }

# Sets `verdict`.
try() {
  local version=$1 folder=$build/torch-$1 torch tests
  env -u TUTTI_TORCH_DIR "$root/tools/setup.sh" "$version" ||
    { verdict="FAILED: no such wheel installed"; return; }
  torch=$(echo "$cache/torch-$version"/lib/python3*/site-packages/torch)
  TUTTI_TORCH_DIR=$torch cmake -S "$root" -B "$folder" -DTUTTI_CUDA=OFF -DTUTTI_BENCH=OFF ||
    { verdict="FAILED: cmake refuses $torch"; return; }
  mapfile -t tests < <(fast_tests "$folder")
  cmake --build "$folder" --parallel "$jobs" --target tutti "${tests[@]}" ||
    { verdict="FAILED: does not compile"; return; }
  run_fast_tests "$folder" || { verdict="FAILED: $(failed_tests "$folder")"; return; }
  reads_programs "$version" || { verdict="FAILED: its exported programs are not read"; return; }
  verdict="built, ${#tests[@]} test programs pass, and its exported programs are read"
}

reads_programs() {
  local scratch good=0
  scratch=$(mktemp -d)
  "$cache/torch-$1/bin/python" "$root/tests/golden/make_exported.py" --to "$scratch" &&
    TUTTI_GOLDEN_DIR=$scratch "$build/tests/golden_test" --gtest_filter='*ExportedGolden*' || good=1
  rm -rf "$scratch"
  return $good
}

[ $# != 0 ] || set -- "$oldest" "$(newest)"
[ -n "${!#}" ] || die "pip does not say which torch is the newest: is PyPI within reach?"
summary=
for version in "$@"; do
  printf 'libtorch %s\n' "$version"
  try "$version"
  summary+="libtorch $version: $verdict"$'\n'
done
printf '\n%s' "$summary"
[[ $summary != *FAILED* ]]
