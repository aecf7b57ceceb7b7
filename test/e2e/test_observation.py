"""What is observed, and what is not, in both ways of observing."""
import pytest
from conftest import VERSION

both_ways = pytest.mark.parametrize("way", ["interpose", "callback"])


@both_ways
def test_nothing_under_disabled_record_functions(run, way):
    """No event of ours where the program switched observation off; what comes after is seen again."""
    program = """
import torch
a = torch.ones(4)
torch.autograd._enable_record_function(False)
for _ in range(50): torch.neg(a)
torch.autograd._enable_record_function(True)
for _ in range(10): torch.sin(a)
"""
    trace = run(program, TPROF_SCHEDULE="always", TPROF_HOOK=way).trace
    assert (trace.count("aten::neg"), trace.count("aten::sin")) == (0, 10)


@both_ways
def test_overload_names(run, way):
    """PyTorch up to 2.6 does not tell them, which is one line."""
    result = run("import torch\na = torch.ones(4)\ntorch.add(a, a)\n", TPROF_SCHEDULE="always", TPROF_HOOK=way,
                 TPROF_EXPERIMENTAL_CONFIG='{"capture_overload_names": true}')
    assert result.status == 0
    known = not any("does not tell them; names stand alone" in line for line in result.lines)
    assert len(result.lines) == (0 if known else 1) and (known or VERSION < (2, 9))
    assert [result.trace.count(name) for name in ("aten::add.Tensor", "aten::add")] == ([1, 0] if known else [0, 1])


CLEARS = """
import ctypes, glob, os, torch
a = torch.ones(4)
for _ in range(10): torch.neg(a)
library = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))[0])
library._ZN2at14clearCallbacksEv()
for _ in range(10): torch.sin(a)
"""


def test_cleared_observers_are_noticed(run):
    """A program may remove all callbacks: the end of it says so once, and what was seen before is kept."""
    result = run(CLEARS, TPROF_SCHEDULE="always", TPROF_HOOK="callback")
    assert (result.trace.count("aten::neg"), result.trace.count("aten::sin")) == (10, 0)
    (line,) = result.lines
    assert "removed all observers" in line


def test_interposed_functions_are_not_cleared(run):
    result = run(CLEARS, TPROF_SCHEDULE="always", TPROF_HOOK="interpose")
    assert (result.trace.count("aten::neg"), result.trace.count("aten::sin")) == (10, 10)
    assert result.lines == []
