#!/usr/bin/env bash
# What libtprof.so gives and takes: it exports the rows of symbols.def and nothing else, needs the C library alone, and calls
# neither the job's heap nor stdio nor what ends a process.
# usage: symbols.sh LIBRARY
set -u
cd "$(dirname "$0")/../.."
library=$1
bad=0
wanted=$(sed -n 's/^SYMBOL(\([^,]*\),.*/\1/p' interpose/symbols.def | sort)
found=$(nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sort)
diff <(echo "$wanted") <(echo "$found") || { echo "exports differ from interpose/symbols.def"; bad=1; }
# zlib's default allocator is in its archive; every stream of ours brings its own.
allowed='malloc free'
for symbol in $(nm -D --undefined-only "$library" | awk '{ print $2 }' | sed 's/@.*//' | sort -u); do
    case $symbol in
        malloc | calloc | realloc | free | posix_memalign | strdup | strndup | asprintf | getline | fopen | fdopen | fprintf | printf | \
            puts | fwrite | opendir | qsort | exit | abort | __assert_fail | system | popen)
            grep -qw "$symbol" <<<"$allowed" || { echo "$library calls $symbol"; bad=1; } ;;
    esac
done
for needed in $(objdump -p "$library" | awk '$1 == "NEEDED" { print $2 }'); do
    case $needed in libc.so.6 | ld-linux-x86-64.so.2) ;; *) echo "$library needs $needed"; bad=1 ;; esac
done
echo "$library: newest of glibc needed: $(objdump -T "$library" | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -1)"
exit $bad
