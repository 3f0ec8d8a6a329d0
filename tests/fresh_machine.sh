#!/bin/bash
# tests/fresh_machine.sh [TARGET...]: runs `make demo` (or other targets) on a fresh Debian 12 with nothing on
# it but git and make: a debootstrap chroot with a clone of this repository's HEAD. Run by hand, as root;
# takes a download of 3 GB, 12 GB of disk and a clean build. How this machine reaches the registries (apt's
# and pip's settings, certificates, proxies) is handed on. FRESH_MACHINE names a folder for the chroot, which
# is then kept and used again; without it everything is thrown away.
set -euo pipefail
readonly root=$(dirname "$(dirname "$(readlink -f "$0")")")
. "$root/tests/debian_chroot.sh"
enter_mount_namespace "$@"

if [ -n "${FRESH_MACHINE:-}" ]; then
  machine=$FRESH_MACHINE
  mkdir -p "$machine"
else
  machine=$(mktemp -d)
  trap 'remove_chroot "$machine"' EXIT
fi
make_chroot "$machine" bookworm git,make,ca-certificates
rm -rf "$machine/tutti"
git clone --quiet "$root" "$machine/tutti"
status=0
time in_chroot "$machine" make -C /tutti "${@:-demo}" || status=$?
[ $status = 0 ] && echo "fresh_machine: passed" || echo "fresh_machine: exit code $status" >&2
exit $status
