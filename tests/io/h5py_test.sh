#!/bin/sh
# h5py_test.sh PYTHON WRITER: h5py reads whole tensors by name from what WRITER wrote with 1, 2 and 3 ranks.
set -e
python=$1 writer=$2
if ! "$python" -c "import h5py" 2>/dev/null; then
  echo "skipped: $python has no h5py"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for world in 1 2 3; do
  "$writer" "$scratch/ep1-ba$world" "$world"
  "$python" "$(dirname "$0")/h5py_test.py" "$scratch/ep1-ba$world/checkpoint.h5"
done
"$python" "$(dirname "$0")/h5py_test.py" "$scratch/latest/checkpoint.h5"
rm "$scratch"/ep1-ba3/rank-1.h5
"$python" "$(dirname "$0")/h5py_test.py" "$scratch/ep1-ba3/checkpoint.h5" missing
