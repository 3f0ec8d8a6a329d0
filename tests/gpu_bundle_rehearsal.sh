#!/bin/bash
# tests/gpu_bundle_rehearsal.sh BUILD: runs the bundle of tools/gpu_bundle.sh as a machine would that has
# libtorch somewhere else and nothing of Open MPI, HDF5 and this build: those are hidden, in a mount namespace
# of its own. It trains there on the CPU, alone and under mpirun, and says that no driver is there. As root.
set -euo pipefail
readonly source=$(dirname "$(dirname "$(readlink -f "$0")")")
readonly build=$(readlink -f "${1:-$source/build}")
readonly venv=${XDG_CACHE_HOME:-$HOME/.cache}/tutti/torch-2.11.0

die() { printf 'gpu_bundle_rehearsal: %s\n' "$*" >&2; exit 1; }

if [ "${2:-}" != inside ]; then
  readonly scratch=$(mktemp -d -p "$(dirname "$venv")" rehearsal-XXXXXX)
  trap 'rm -rf "$scratch"' EXIT
  "$source/tools/gpu_bundle.sh" "$build" "$scratch/bundle"
  cp -al "$venv" "$scratch/venv"  # the second libtorch: links, no copies
  cp -r "$source/examples" "$scratch"
  unshare --mount "$0" "$build" inside "$scratch"
  exit
fi

readonly scratch=$3
hide() { if [ -d "$1" ]; then mount -t tmpfs none "$1"; else mount --bind /dev/null "$1"; fi; }
pythons=$(ldd "$(readlink -f "$venv/bin/python")" /usr/lib/python3*/lib-dynload/*.so)  # stay
for library in "$scratch"/bundle/lib/*.so*; do
  path=/usr/lib/x86_64-linux-gnu/$(basename "$library")
  if [[ -e $path && $pythons != *$(basename "$library")* ]]; then hide "$(readlink -f "$path")"; fi
done
for path in /usr/lib/x86_64-linux-gnu/{openmpi,pmix2} /usr/share/openmpi /etc/openmpi "$build" "$venv"; do
  if [ -e "$path" ]; then hide "$path"; fi
done

run() {
  env -i PATH=/usr/bin:/bin HOME="$scratch" TUTTI_PYTHON="$scratch/venv/bin/python" \
    "$scratch/bundle/run" "$@"
}
train() {  # launcher... -- settings...
  local launcher=()
  while [ "$1" != -- ]; do launcher+=("$1"); shift; done
  shift
  run "${launcher[@]}" tutti train "$scratch/examples/digits.toml" --run-dir "$scratch/$RANDOM" \
    --set train.max_duration=3ba --set data.eval.subset_num_batches=1 "$@"
}

cd "$scratch"
run tutti --version
train -- --set device.kind=cpu
train mpirun -np 2 -- --set device.kind=cpu
code=0
text=$(train -- --set device.kind=gpu 2>&1) || code=$?
[[ $code = 2 && $text = *driver* ]] || die "a machine without a GPU: code $code, $text"
printf 'gpu_bundle_rehearsal: trained, and said of the GPU: %s\n' "$text"
