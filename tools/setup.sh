#!/usr/bin/env bash
# Gets what is needed to build, to try and to test: packages by apt where it may, a virtual environment with a CPU PyTorch
# (.venv), and with --judges one with the programs that read our files (.judges). What cannot be had is named in one line.
set -eu
cd "$(dirname "$0")/.."

may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

missing=
for tool in gcc make pkg-config; do command -v "$tool" >/dev/null || missing="$missing $tool"; done
command -v pkg-config >/dev/null && for library in check jansson zlib; do
    pkg-config --exists "$library" || missing="$missing $library"
done
python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
if [ -n "$missing" ]; then
    packages="gcc make pkg-config check libsubunit-dev libjansson-dev zlib1g-dev python3 python3-venv"
    if may_install; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $packages
    else
        echo "setup: missing:$missing; on Debian: apt-get install $packages" >&2
        exit 1
    fi
fi

environment() { # FOLDER MODULES PACKAGES...
    local folder=$1 modules=$2
    shift 2
    [ -x "$folder/bin/python" ] && "$folder/bin/python" -c "import $modules" 2>/dev/null && return
    python3 -m venv "$folder" && "$folder/bin/pip" install -q "$@"
}

if [ -z "${PYTHON:-}" ]; then
    environment .venv torch,numpy,pytest torch==2.13.0 numpy pytest ||
        echo "setup: no PyTorch could be installed in .venv; what needs it is left out (PYTHON=... names an interpreter)" >&2
fi
if [ "${1:-}" = --judges ]; then
    # Readers in JavaScript; without them their tests are left out.
    for tool in node:nodejs chromium:chromium; do
        command -v "${tool%:*}" >/dev/null || { may_install && DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "${tool#*:}" >/dev/null; } ||
            echo "setup: ${tool#*:} is not here, what needs it is left out" >&2
    done
fi
if [ "${1:-}" = --judges ] && [ -z "${JUDGES:-}" ]; then
    environment .judges tensorboard,torch_tb_profiler,hta,perfetto,viztracer 'tensorboard==2.21.*' torch-tb-profiler==0.4.3 \
        HolisticTraceAnalysis==0.5.0 'pandas<3' 'setuptools<81' viztracer perfetto ||
        echo "setup: the readers of our files could not be installed in .judges; their tests are left out" >&2
fi
