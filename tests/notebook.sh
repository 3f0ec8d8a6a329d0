#!/bin/bash
# tests/notebook.sh BUILD: nbconvert runs examples/notebook.ipynb, with torchvision, in an environment of its
# own beside setup.sh's; then the outputs are looked at.
set -euo pipefail
readonly root=$(dirname "$(dirname "$(readlink -f "$0")")")
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/tutti
readonly build=$(readlink -f "${1:?the build folder is missing}")
readonly torch=$cache/torch-2.11.0 notebook=$cache/notebook-2.11.0

if [ ! -e "$notebook/complete" ]; then
  rm -rf "$notebook"
  "$torch/bin/python" -m venv "$notebook"
  # The torch of setup.sh, not one more.
  "$torch/bin/python" -c 'import site; print(site.getsitepackages()[0])' \
    > "$("$notebook/bin/python" -c 'import site; print(site.getsitepackages()[0])')/torch.pth"
  "$notebook/bin/python" -m pip --disable-pip-version-check install -q nbconvert ipykernel pytest mypy
  "$notebook/bin/python" -m pip --disable-pip-version-check install -q --no-deps torchvision==0.26.0
  touch "$notebook/complete"
fi

export TUTTI_PROGRAM=$build/tutti PATH=$build:$notebook/bin:$PATH TUTTI_NIGHTLY=1
export PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1
"$notebook/bin/python" -m mypy --strict "$root/python/tutti"
"$notebook/bin/python" -m pytest -q -p no:cacheprovider "$root/tests/python/python_test.py"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r "$root/examples/notebook.ipynb" "$root/examples/data" "$folder"
"$notebook/bin/python" -m jupyter nbconvert --to notebook --execute --output run.ipynb \
  "$folder/notebook.ipynb"
"$notebook/bin/python" - "$folder/run.ipynb" <<'END'
import json, re, sys

cells = json.load(open(sys.argv[1]))["cells"]
texts = [json.dumps(cell.get("outputs", [])) for cell in cells]
progress = [output for output in cells[1]["outputs"] if output["output_type"] == "display_data"]
assert len(progress) == 1 and "100%" in "".join(progress[0]["data"]["text/plain"]), progress
everything = "".join(texts)
assert "same bits True" in everything, everything
assert float(re.search(r"accuracy ([0-9.]+)", everything)[1]) > 0.8, everything
assert "unknown key" in everything and "report.html" in everything, everything
END
echo "the notebook runs"
