#!/bin/sh
# A remote store for tests: the folder $1, as fake://. Verbs: put SOURCE TARGET, get SOURCE TARGET, ls FOLDER,
# rm FOLDER. Files of the folder make it fail: `broken` always, `failures` as many times as it has bytes,
# `hangs` for ever; `slow` copies a byte at a time, and then waits.
root=$1 verb=$2
shift 2
place() { echo "$root/${1#fake://}"; }
echo "$verb $*" >> "$root/calls"
if [ -e "$root/broken" ]; then echo "the store is broken, token=SECRET" >&2; exit 5; fi
if [ -s "$root/failures" ]; then truncate -s -1 "$root/failures"; exit 7; fi
if [ -e "$root/hangs" ]; then echo $$ > "$root/pid"; exec sleep 1000; fi
case $verb in
  put)
    to=$(place "$2")
    mkdir -p "${to%/*}"
    if [ -e "$root/slow" ]; then head -c 100 "$1" > "$to"; sleep 0.5; fi
    cp "$1" "$to" ;;
  get) cp "$(place "$1")" "$2" ;;
  ls) cd "$(place "$1")" && find . -type f -printf '%s %P\n' ;;
  rm) rm -r "$(place "$1")" ;;
esac
