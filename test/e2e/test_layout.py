"""What calibration finds is what PyTorch's own headers say (test/matrix/layout.cpp), and is found in every PyTorch that is tried."""
import pathlib
import re
import subprocess

import pytest

from conftest import ROOT, VERSION, have_compiler, torch_cxx_flags

torch = pytest.importorskip("torch")


def headers_agree(places):
    """places: -D options."""
    include = pathlib.Path(torch.__file__).parent / "include"
    if not (include / "ATen/record_function.h").exists():
        pytest.skip("this PyTorch comes without its headers")
    result = subprocess.run([have_compiler(), *torch_cxx_flags(), "-fsyntax-only", "-fno-access-control", *places,
                             ROOT / "test/matrix/layout.cpp"], capture_output=True, text=True)
    assert result.returncode == 0 or "static assertion failed" in result.stderr, result.stderr
    return result.returncode == 0


@pytest.mark.skipif(not have_compiler(), reason="no C++ compiler")
def test_calibration_agrees_with_the_headers(run):
    result = run("import torch\n", TPROF_LOG="debug")
    (said,) = re.findall(r"RecordFunction: sequence number at (\d+), forward thread at (\d+), id at (\d+)", result.stderr)
    places = [f"-D{name}={place}" for name, place in zip(("SEQUENCE", "FORWARD_THREAD", "ID"), said)]
    assert headers_agree(places)
    assert not headers_agree([*places, "-UID", "-DID=8"])  # that it can fail


def test_nothing_is_missing_here(run):
    """On a PyTorch that is known the interposed way is taken, and shapes are known; schemas from 2.6 on."""
    result = run("import torch\ntorch.ones(1)\n", TPROF_LOG="info", ENABLE_PYTORCH_EXECUTION_TRACE="1")
    assert f"tprof: observes PyTorch {torch.__version__} by interposed functions" in result.stderr.splitlines()
    missing = [line for line in result.stderr.splitlines() if " PyTorch" in line and " not " in line]
    assert missing == ([] if VERSION >= (2, 6) else [f"tprof: operators' schemas are not known in PyTorch {torch.__version__}"])
