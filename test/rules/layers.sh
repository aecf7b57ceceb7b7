#!/usr/bin/env bash
# Who may include whom (docs/pipeline.md): reads the #include lines, fails on any other edge.
#   agent -> agent        interpose -> agent, interpose     collectors/X -> agent, collectors/X
#   output -> agent, output                                 tools -> output, and a few headers of agent
# entry.c alone knows collectors and outputs.
set -u
cd "$(dirname "$0")/../.."
bad=0
tools_may='settings.h settings_read.h nearest.h json_library.h arena.h base.h error.h log.h'
while IFS=: read -r file line; do
    target=$(sed -E 's/.*"([^"]*)".*/\1/' <<<"$line")
    path=$(realpath -m --relative-to=. "$(dirname "$file")/$target")
    case $file in collectors/*) from=$(cut -d/ -f1,2 <<<"$file") ;; *) from=${file%%/*} ;; esac
    case $path in collectors/*) to=$(cut -d/ -f1,2 <<<"$path") ;; *) to=${path%%/*} ;; esac
    [ "$file" = agent/entry.c ] && continue
    [ "$from" = "$to" ] && continue
    case $from:$to in
        interpose:agent | collectors/*:agent | output:agent | tools:output) continue ;;
        tools:agent) grep -qw "$(basename "$path")" <<<"$tools_may" && continue ;;
    esac
    echo "$file includes $path"
    bad=1
done < <(grep -nE '^#include "' agent/*.[ch] interpose/*.[ch] collectors/*/*.[ch] output/*.[ch] tools/*.[ch] | sed -E 's/:[0-9]+:/:/')
exit $bad
