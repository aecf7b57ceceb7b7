"""CUDA without a GPU: over the simulated one's CUPTI, loaded beside a CPU build of PyTorch as a CUDA build has it."""
import json
import subprocess
import sys

import pytest

from conftest import BUILD, CLEAN, COMMAND

CUPTI = {major: BUILD / f"test/doubles/simgpu/libcupti.so.{major}" for major in (12, 13)}

if not all(path.exists() for path in CUPTI.values()):
    pytest.skip("cuda: the simulated CUPTI is not built (make simgpu CUDA=...)", allow_module_level=True)


def program(major):
    return f"import ctypes; ctypes.CDLL({str(CUPTI[major])!r})\nimport torch\nfor i in range(3): torch.ones(2) + 1\n"


def told(result):
    return [line for line in result.lines if "CUDA" in line]


@pytest.mark.parametrize("major, version, toolkit", [(13, 130301, ", as of CUDA 13.3,"),
                                                     (12, 28, ", as of CUDA 12.9 Update 1,"), (12, 25, "")])
def test_the_cupti_of_the_program_is_told(run, major, version, toolkit):
    result = run(program(major), TPROF_LOG="info", SIMGPU_CUPTI=version)
    assert result.status == 0
    assert told(result) == [f"tprof: CUDA: CUPTI {version}{toolkit} is there, {CUPTI[major]}; "
                            "the device is not recorded in this build yet"]


def test_nothing_is_called_but_the_version(run):
    """Whoever calls cuptiSubscribe first has CUPTI for the life of the process: that is left to the program."""
    result = run(program(13), SIMGPU_LOG=1)
    assert result.status == 0 and not told(result)
    assert [line for line in result.stderr.splitlines() if line.startswith("simgpu: ")] == ["simgpu: cuptiGetVersion"]


def test_a_cupti_that_fails_costs_nothing(run):
    result = run(program(13), TPROF_LOG="info", SIMGPU_FAULTS="cuptiGetVersion=15")
    assert result.status == 0
    assert told(result) == [f"tprof: CUDA: {CUPTI[13]} does not tell its version: cuptiGetVersion gives error 15"]
    assert result.trace.count("aten::add") == 3


def test_nothing_is_told_where_there_is_none(run):
    assert not told(run("import torch\ntorch.ones(2) + 1\n", TPROF_LOG="info"))


def test_doctor_tells_it():
    out = subprocess.run([COMMAND, "doctor", "--json", sys.executable, "-c", program(13)], env=dict(CLEAN, SIMGPU_CUPTI="130000"),
                         capture_output=True, text=True).stdout
    texts = [finding["text"] for finding in json.loads(out)["findings"]]
    assert any(text.startswith("CUDA: CUPTI 130000, as of CUDA 13.0, is there") for text in texts)
