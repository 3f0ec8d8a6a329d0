#!/bin/bash
# tests/remote_stores.sh BUILD: rclone, s3cmd and aws copy checkpoints and data to and from an S3 server and a
# WebDAV server on loopback (remote_stores.py). rclone and s3cmd are Debian's; the other packages are in an
# environment of their own, beside setup.sh's.
set -euo pipefail
readonly root=$(dirname "$(dirname "$(readlink -f "$0")")")
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/tutti
readonly build=${1:?the build folder is missing}
readonly stores=$cache/remote-stores

"$root/tools/setup.sh" --remote
if [ ! -e "$stores/complete" ]; then
  rm -rf "$stores"
  python3 -m venv "$stores"
  "$stores/bin/python" -m pip --disable-pip-version-check install -q 'moto[server]==5.2.5' awscli==1.45.11
  touch "$stores/complete"
fi

PATH=$stores/bin:$PATH TUTTI_BUILD_DIR=$build "$stores/bin/python" "$root/tests/remote_stores.py" "${@:2}"
