#!/bin/bash
# tests/clients.sh BUILD: weights of torchvision's and transformers' models go through tutti and back
# (clients.py), with the clients' pinned versions in an environment of their own, beside setup.sh's.
set -euo pipefail
readonly root=$(dirname "$(dirname "$(readlink -f "$0")")")
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/tutti
readonly build=${1:?the build folder is missing}
readonly torch=$cache/torch-2.11.0 clients=$cache/clients-2.11.0

if [ ! -e "$clients/complete" ]; then
  rm -rf "$clients"
  "$torch/bin/python" -m venv "$clients"
  # The torch of setup.sh, not one more.
  "$torch/bin/python" -c 'import site; print(site.getsitepackages()[0])' \
    > "$("$clients/bin/python" -c 'import site; print(site.getsitepackages()[0])')/torch.pth"
  "$clients/bin/python" -m pip --disable-pip-version-check install -q transformers==5.0.0 safetensors==0.8.0
  "$clients/bin/python" -m pip --disable-pip-version-check install -q --no-deps torchvision==0.26.0
  touch "$clients/complete"
fi
TUTTI_BUILD_DIR=$build exec "$clients/bin/python" "$root/tests/clients.py"
