#!/usr/bin/env bash
# farm.sh LIBRARIES FOLDER PYTHON ARGUMENTS: a program of PyTorch's CUDA build on the simulated GPU. FOLDER gets a copy of torch and
# nvidia made of symlinks, in which LIBRARIES take the place of NVIDIA's: the files name each other by relative paths, so no
# search path could do it, and LD_PRELOAD stays free.
set -eu
libraries=$(cd "$1" && pwd) farm=$(mkdir -p "$2" && cd "$2" && pwd) python=$3
shift 3
if [ ! -e "$farm/.complete" ]; then
    "$python" -c 'import importlib.util as u
for name in ("torch", "nvidia"):
    print(list(u.find_spec(name).submodule_search_locations)[0])' | while read -r package; do cp -rs "$package" "$farm/"; done
    for library in "$libraries"/lib*.so.*; do
        find "$farm/nvidia" -name "$(basename "$library")" -exec ln -sf "$library" {} \;
    done
    touch "$farm/.complete"
fi
# cuDNN's graph API is not simulated; PyTorch then takes the old one.
export PYTHONPATH=$farm LD_LIBRARY_PATH=$libraries TRITON_LIBCUDA_PATH=$libraries TORCH_CUDNN_V8_API_DISABLED=1
exec "$python" "$@"
