# Sourced by tests that need a fresh Debian: a debootstrap chroot, in a mount namespace of its own. As root.

die() {
  echo "$(basename "$0" .sh): $*" >&2
  exit 2
}

# Starts the script again in a mount namespace, so that nothing stays mounted whatever happens.
enter_mount_namespace() {
  [ "$(id -u)" = 0 ] || die "chroot needs root"
  command -v debootstrap >/dev/null || die "no debootstrap: apt-get install debootstrap"
  [ -n "${DEBIAN_CHROOT_INSIDE:-}" ] ||
    DEBIAN_CHROOT_INSIDE=yes exec unshare --mount --propagation private "$0" "$@"
}

mirror() { # the first Debian mirror that this machine's apt knows
  local found
  found=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    grep -v '^#' | grep -o 'https\?://[^ ]*/debian/\?\( \|$\)' | head -n 1 | tr -d ' ') || true
  echo "${found:-http://deb.debian.org/debian}"
}

# make_chroot FOLDER SUITE PACKAGES: PACKAGES has commas. A FOLDER that has a Debian stays as it is.
make_chroot() {
  local path
  [ -e "$1/etc/debian_version" ] || debootstrap --variant=minbase "--include=$3" "$2" "$1" "$(mirror)"
  for path in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs /etc/apt/apt.conf.d; do
    [ ! -e "$path" ] || cp -rL --parents "$path" "$1/" 2>/dev/null || true
  done
  mount -t proc proc "$1/proc"
  mount --rbind /sys "$1/sys"
  mount --rbind /dev "$1/dev"
}

remove_chroot() {
  umount -R "$1"/{proc,sys,dev} 2>/dev/null || true
  rm -rf --one-file-system "$1"
}

# in_chroot FOLDER COMMAND...: only what reaches the registries comes from this machine's environment.
in_chroot() {
  local reach
  mapfile -t reach < <(env | grep -iE '^(pip_|(https?|no|all)_proxy=|ssl_cert|curl_ca|requests_ca)' |
    grep -v '^PIP_FIND_LINKS')
  env -i "${reach[@]}" HOME=/srv PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 chroot "$@"
}
