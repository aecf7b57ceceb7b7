#!/usr/bin/env bash
# What `make demo` runs: a small real training under the agent, and what came of it.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
folder=build/demo
rm -rf "$folder"
echo "LD_PRELOAD=\$PWD/build/libtprof.so python examples/train.py"
LD_PRELOAD="$PWD/build/libtprof.so" TPROF_DIR="$folder" "$python" examples/train.py
for trace in "$folder"/*.pt.trace.json.gz; do
    build/tprof check "$trace"
done
