#!/bin/bash
# tests/fuzz.sh BUILD [TARGET...]: gives made-up bytes to tutti's readers, by libFuzzer, AddressSanitizer and
# UndefinedBehaviorSanitizer, and prints a line for each target of tests/fuzz/targets.h: how many inputs, how
# much of the code they reach, and what was found. Exit code 1 if an input crashes a reader, leaks, or takes
# too long or too much memory: it is then in BUILD/fuzz/TARGET/found.
#
# Configures and builds BUILD/fuzz with clang-16 of Debian, which it installs where it may. Inputs that reach
# more code are kept in BUILD/fuzz/TARGET/corpus: the next run begins with them.
#   TUTTI_FUZZ_SECONDS  for each target; 60 by default
#   JOBS                targets at once; 2 by default
set -euo pipefail
readonly here=$(dirname "$(readlink -f "$0")")/..
mkdir -p "${1:?usage: tests/fuzz.sh BUILD [TARGET...]}"
readonly build=$(readlink -f "$1")/fuzz
shift
readonly seconds=${TUTTI_FUZZ_SECONDS:-60}
readonly jobs=${JOBS:-2}
readonly program=$build/build/tutti_fuzz
TMPDIR=$(mktemp -d -p /dev/shm tutti-fuzz.XXXXXX)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

build_program() {
  "$here/tools/setup.sh" --fuzz
  CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja} cmake -S "$here" -B "$build/build" -DTUTTI_FUZZ=ON \
    -DTUTTI_TESTS=OFF -DTUTTI_BENCH=OFF -DTUTTI_CUDA=OFF \
    -DCMAKE_C_COMPILER=clang-16 -DCMAKE_CXX_COMPILER=clang++-16
  cmake --build "$build/build" --parallel "$jobs" --target tutti_fuzz
}

# The names, which the program lists.
targets() { TUTTI_FUZZ_TARGET='' "$program" 2>&1 | tail -n +2 || true; }

# Copies of the target's files in the source tree.
seed() {
  local target=$1 folder=$2 name path
  if [ -d "$here/tests/fuzz/corpus/$target" ]; then cp "$here/tests/fuzz/corpus/$target"/* "$folder"; fi
  while read -r name path; do
    if [ "$name" = "$target" ]; then cp "$here/$path" "$folder"; fi
  done < "$here/tests/fuzz/seeds.txt"
}

# libtorch and libhdf5 are not instrumented, so that memory that one of them allocates and tutti frees looks
# freed by the wrong function. A size that no memory has is an error that readers report; 2 GiB are too many.
fuzz() {
  local target=$1 folder=$build/$1
  mkdir -p "$folder/corpus" "$folder/seeds" "$folder/found" "$TMPDIR/$target"
  seed "$target" "$folder/seeds"
  local code=0
  TMPDIR=$TMPDIR/$target TUTTI_FUZZ_TARGET=$target OMP_NUM_THREADS=1 \
    ASAN_OPTIONS=alloc_dealloc_mismatch=0:allocator_may_return_null=1:suppressions=$here/cmake/foreign.supp \
    LSAN_OPTIONS=suppressions=$here/cmake/leaks.supp:print_suppressions=0 \
    ASAN_SYMBOLIZER_PATH=$(command -v llvm-symbolizer-16 || true) \
    "$program" "$folder/corpus" "$folder/seeds" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=2048 \
    -max_len=65536 -artifact_prefix="$folder/found/" -print_final_stats=1 -verbosity=1 \
    > "$folder/log" 2>&1 || code=$?
  rm -rf "${TMPDIR:?}/$target"
  line "$target" "$folder/log" "$code"
  return "$code"
}

line() {
  local target=$1 log=$2 code=$3 runs reached what
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  reached=$(sed -n 's/.* ft: \([0-9]*\).*/\1/p' "$log" | tail -1)
  what=$(sed -n 's/^SUMMARY: //p' "$log" | head -1)
  if [ "$code" = 0 ]; then what=nothing; fi
  printf '%-18s %9s runs %8s features  found: %s\n' "$target" "${runs:-?}" "${reached:-?}" \
    "${what:-exit code $code, see $log}"
}

build_program
export -f fuzz seed line
export here build seconds program
if [ $# = 0 ]; then mapfile -t all < <(targets); else all=("$@"); fi
printf '%s\0' "${all[@]}" | xargs -0 -n 1 -P "$jobs" bash -c 'fuzz "$1"' fuzz || exit 1
