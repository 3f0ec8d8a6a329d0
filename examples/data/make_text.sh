#!/bin/sh
# make_text.sh: writes king_james.txt from the Debian packages bible-kjv and bible-kjv-text, which need not be
# installed.
# One verse a line, without its number; a heading and a blank line for each chapter.
set -eu
target=$(cd "$(dirname "$0")" && pwd)/king_james.txt
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
apt-get download bible-kjv bible-kjv-text
for package in *.deb; do dpkg-deb -x "$package" .; done
for book in genesis1:1-50:26 exodus1:1-40:38 ruth1:1-4:22 1samuel1:1-31:13; do
  usr/bin/bible -p "$scratch/usr/lib" -l9999 "$book"
done | sed -E 's/^ +[0-9]+ //' | cat -s | sed '1{/^$/d}' > "$target"
wc -c "$target"
