#!/usr/bin/env bash
# The end-to-end tests with each interpreter, which has a PyTorch and pytest; then a table of how they went.
# usage: matrix.sh "PYTHON..." TEST...
set -u
interpreters=$1
shift
[ -n "$interpreters" ] || { echo 'matrix: which interpreters? MATRIX="/a/bin/python /b/bin/python"' >&2; exit 2; }
status=0 table=
for python in $interpreters; do
    version=$("$python" -c 'import torch; print(torch.__version__)' 2>/dev/null) ||
        { echo "matrix: $python has no torch" >&2; status=1; continue; }
    way=$(LD_PRELOAD=build/libtprof.so TPROF_DIR=/nonexistent TPROF_LOG=info "$python" -c 'import torch' 2>&1 |
        sed -n 's/^tprof: observes PyTorch [^ ]* by //p')
    echo "== PyTorch $version"
    said=$("$python" -m pytest -q -rf "$@" | tee /dev/stderr | tail -1) || status=1
    table="$table| $version | ${way:-not observed} | $said |
"
done
printf '\n| PyTorch | observed by | tests |\n|---|---|---|\n%s' "$table"
exit $status
