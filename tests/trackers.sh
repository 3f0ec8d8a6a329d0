#!/bin/bash
# tests/trackers.sh BUILD: `wandb sync` sends the folders of kind = "wandb" to a server of our own, on
# loopback, and MLflow's own server and readers show the runs of kind = "mlflow"; runs that are killed, and
# servers that are dead (trackers.py). The packages are in an environment of their own, beside setup.sh's.
set -euo pipefail
readonly root=$(dirname "$(dirname "$(readlink -f "$0")")")
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/tutti
readonly build=${1:?the build folder is missing}
readonly trackers=$cache/trackers

if [ ! -e "$trackers/complete" ]; then
  rm -rf "$trackers"
  python3 -m venv "$trackers"
  "$trackers/bin/python" -m pip --disable-pip-version-check install -q wandb==0.31.0 mlflow==3.17.2
  touch "$trackers/complete"
fi

TUTTI_BUILD_DIR=$build "$trackers/bin/python" "$root/tests/trackers.py" "${@:2}"
