#!/bin/bash
# tests/fresh_machine.sh [TARGET...]: runs `make demo` (or other targets) on a fresh Debian 12 with nothing on
# it but git and make: a debootstrap chroot with a clone of this repository's HEAD. Run by hand, as root;
# takes a download of 3 GB, 12 GB of disk and a clean build. How this machine reaches the registries (apt's
# and pip's settings, certificates, proxies) is handed on. FRESH_MACHINE names a folder for the chroot, which
# is then kept and used again; without it everything is thrown away.
set -euo pipefail
readonly root=$(dirname "$(dirname "$(readlink -f "$0")")")
readonly suite=bookworm

die() {
  echo "fresh_machine: $*" >&2
  exit 2
}

[ "$(id -u)" = 0 ] || die "chroot needs root"
command -v debootstrap >/dev/null || die "no debootstrap: apt-get install debootstrap"
# In a mount namespace of its own, so that nothing stays mounted whatever happens.
if [ -z "${FRESH_MACHINE_INSIDE:-}" ]; then
  FRESH_MACHINE_INSIDE=yes exec unshare --mount --propagation private "$0" "$@"
fi

if [ -n "${FRESH_MACHINE:-}" ]; then
  machine=$FRESH_MACHINE
  mkdir -p "$machine"
else
  machine=$(mktemp -d)
  trap 'umount -R "$machine"/{proc,sys,dev} 2>/dev/null; rm -rf --one-file-system "$machine"' EXIT
fi

mirror() { # the first Debian mirror that this machine's apt knows
  local found
  found=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    grep -v '^#' | grep -o 'https\?://[^ ]*/debian/\?\( \|$\)' | head -n 1 | tr -d ' ') || true
  echo "${found:-http://deb.debian.org/debian}"
}

if [ ! -e "$machine/etc/debian_version" ]; then
  debootstrap --variant=minbase --include=git,make,ca-certificates "$suite" "$machine" "$(mirror)"
fi
for path in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs /etc/apt/apt.conf.d; do
  [ ! -e "$path" ] || cp -rL --parents "$path" "$machine/" 2>/dev/null || true
done
mount -t proc proc "$machine/proc"
mount --rbind /sys "$machine/sys"
mount --rbind /dev "$machine/dev"

rm -rf "$machine/tutti"
git clone --quiet "$root" "$machine/tutti"
# Only what reaches the registries comes from this machine's environment.
mapfile -t reach < <(env | grep -iE '^(pip_|(https?|no|all)_proxy=|ssl_cert|curl_ca|requests_ca)' |
  grep -v '^PIP_FIND_LINKS')
status=0
time env -i "${reach[@]}" HOME=/srv PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
  chroot "$machine" make -C /tutti "${@:-demo}" || status=$?
[ $status = 0 ] && echo "fresh_machine: passed" || echo "fresh_machine: exit code $status" >&2
exit $status
