"""TPROF_RECORD_SHAPES=1 beside torch.profiler(record_shapes=True) in the same run: the inputs of each event, equal to the letter.

Events are matched by their record function id. What a value looks like that PyTorch has to ask Python for is the one thing that
is not the same (docs/differences.md): the row "symbolic" says how."""
import re

import pytest

from conftest import PROGRAMS as FOLDER
from conftest import VERSION
from test_same_run import PROGRAMS, needs_all_threads
from traces import Trace

KEYS = ["Concrete Inputs", "Input type", "Input Strides", "Input Dims"]
ROWS = [name.rstrip("_") for name in re.findall(r"^@row\ndef (\w+)\(", (FOLDER / "inputs.py").read_text(), re.M)]


def inputs(event):
    return {key: event.args.get(key) for key in KEYS}


class Pair:
    def __init__(self, torch, ours):
        self.torch, self.ours = torch, ours
        by_id = {e.id: e for e in ours.operators()}
        self.both = [(e, by_id[e.id]) for e in torch.operators()]


def observed_twice(run, name, **settings):
    window = run.root / f"{name}.inputs.json"
    result = run(name, WINDOW=window, WINDOW_SHAPES=1, TPROF_SCHEDULE="always", TPROF_RECORD_SHAPES=1,
                 TPROF_ON_TRACE_READY="tensorboard", **settings)
    assert result.status == 0, result.stderr
    assert result.lines == []
    return Pair(Trace(window), result.trace)


@pytest.fixture(scope="module")
def rows(run_once):
    pair = observed_twice(run_once, "inputs")
    found = {}
    for torch, ours in pair.both:
        above = torch
        while above and not above.name.startswith("row "):
            above = above.parent
        if above:
            found.setdefault(above.name[4:], []).append((torch, ours))
    return found


def test_every_row_ran(rows):
    assert sorted(rows) == sorted(ROWS)


@pytest.mark.parametrize("row", [row for row in ROWS if row != "symbolic"])
def test_row(rows, row):
    if len(rows[row]) < 2 and () < VERSION < (2, 9):
        pytest.skip("not in this PyTorch")
    assert any(inputs(torch)["Input Dims"] for torch, _ in rows[row]), "nothing was given anything"
    for torch, ours in rows[row]:
        assert (torch.name, inputs(torch)) == (ours.name, inputs(ours))


def test_symbols_have_no_value(rows):
    """torch asks Python for their names (s0); looking on runs no Python."""
    symbols = 0
    for torch, ours in rows["symbolic"]:
        for key in KEYS[1:]:
            assert torch.args.get(key) == ours.args.get(key)
        for theirs, value in zip(torch.args.get("Concrete Inputs", []), ours.args.get("Concrete Inputs", []), strict=True):
            assert value == theirs or (value == "" and re.search(r"\bs\d+", theirs))
            symbols += value != theirs
    assert symbols > 0


def test_what_rows_cover(rows):
    """That the rows hold what their names say: else two empty answers would be equal."""
    def shown(row, key):
        return [value for torch, _ in rows[row] for value in torch.args.get(key) or []]
    assert {"ScalarList", "Scalar", "TensorList", "float", "long int", ""} <= {t for row in rows for t in shown(row, "Input type")}
    assert "(1.+2.j)".strip("()") in shown("complex", "Concrete Inputs")
    assert {"True", "False"} & set(shown("bool", "Concrete Inputs"))
    assert str(-2 ** 63) in shown("int", "Concrete Inputs") and "inf" in shown("double", "Concrete Inputs")
    assert [2 ** 31 + 5, 3] in shown("huge", "Input Dims")
    assert max(len(value) for value in shown("dimensions", "Input Dims")) == 40
    assert any(len(value) == 30 for value in shown("list_of_tensors", "Input Dims"))
    assert [] in shown("list_of_tensors", "Input Dims")
    assert {"c10::qint8", "c10::quint8"} & set(shown("quantized", "Input type"))
    assert len({*shown("dtype", "Input type")}) > 25


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(run_once, program):
    if program == "inference_threads":
        needs_all_threads()
    pair = observed_twice(run_once, program, WINDOW_ALL_THREADS=int(program == "inference_threads"))
    assert len(pair.both) > 100
    assert sum(bool(inputs(torch)["Input Dims"]) for torch, _ in pair.both) > 50
    for torch, ours in pair.both:
        assert (torch.name, inputs(torch)) == (ours.name, inputs(ours))
    assert pair.ours.json["record_shapes"] == 1
    assert pair.ours.told["inputs_cut"] == 0


def test_results_and_errors_are_the_same(run):
    with_shapes = run("inputs", TPROF_SCHEDULE="always", TPROF_RECORD_SHAPES=1)
    without = run.bare("inputs")
    assert with_shapes.status == without.status == 0
    assert with_shapes.stdout == without.stdout
    assert re.search("^error: .*mat1 and mat2 shapes cannot be multiplied", without.stdout, re.M)


REFERENCES = """
import sys, weakref
import numpy, torch

def counts(tensor):
    return sys.getrefcount(tensor), torch._C._storage_Use_Count(tensor.untyped_storage()._cdata), tensor._version

events = []
class Watched(torch.Tensor):
    pass

memory = numpy.ones((4, 5), dtype=numpy.float32)
for turn in range(200):
    tensor = torch.from_numpy(memory)
    print(counts(tensor), sys.getrefcount(memory))
    other = tensor.t() @ tensor
    torch.cat([tensor, tensor])
    torch._foreach_add_([tensor, tensor], [0, 0.0])
    print(counts(tensor), counts(other), sys.getrefcount(memory))
    name = f"tensor {turn}"
    weakref.finalize(tensor, events.append, name)
    gone = weakref.ref(tensor)
    events.append("delete")
    del tensor
    events.append("deleted")
    print(gone() is None, sys.getrefcount(memory))  # its storage let go of the array
    leaf = torch.ones(3, requires_grad=True)
    middle = leaf * 2
    weakref.finalize(middle, events.append, "middle")
    middle.sum().backward()
    del middle
    events.append("backward")
    print(counts(leaf), counts(leaf.grad))
print(events)
"""


def test_nothing_is_held(run):
    """Reference counts, the moment at which a tensor and its storage are gone: the same as without tprof."""
    result = run(REFERENCES, TPROF_SCHEDULE="always", TPROF_RECORD_SHAPES=1)
    bare = run.bare(REFERENCES)
    assert result.status == 0 and bare.stdout.count("(True") + bare.stdout.count("True ") == 200, bare.stderr
    assert result.stdout == bare.stdout
    assert result.trace.count("aten::cat") == 200


ASKED = """
import torch
from torch.utils._python_dispatch import TorchDispatchMode

asked = []
class Asked(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), dtype=inner.dtype,
                                                   dispatch_sizes_strides_policy="sizes", dispatch_layout=True,
                                                   dispatch_device=True)
    def __init__(self, inner):
        self.inner = inner
    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
        asked.append(str(function))
        inner = [a.inner if isinstance(a, Asked) else a for a in arguments]
        if "sym_size" in str(function):
            return inner[0].shape
        if "sym_stride" in str(function):
            return inner[0].stride()
        if "layout" in str(function):
            return inner[0].layout
        if "device" in str(function):
            return inner[0].device
        return Asked(function(*inner)) if isinstance(arguments[0], Asked) else function(*inner)

for _ in range(3):
    a = Asked(torch.ones(3, 4).t())
    torch.ops.aten.mul.Tensor(a, 2)
    torch.ops.aten.neg(a)
print(asked)
"""


def test_no_class_of_the_program_is_asked(run):
    result = run(ASKED, TPROF_SCHEDULE="always", TPROF_RECORD_SHAPES=1)
    assert result.status == 0, result.stderr
    assert result.stdout == run.bare(ASKED).stdout
    assert "neg" in result.stdout
    dims = [e.args["Input Dims"] for e in result.trace.operators() if e.name == "aten::neg"]
    assert [4, 3] in [d[0] for d in dims]  # as it was made


def test_without_the_setting_there_are_none(run):
    result = run("mlp_adam", TPROF_SCHEDULE="always")
    assert not any(key in e.args for e in result.trace.events for key in KEYS)
    assert "record_shapes" not in result.trace.json


WINDOWS = """
import torch
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    with torch.profiler.record_function("given", "text"):
        model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
"""


def test_windows_that_come_and_go(run):
    """Inputs are there from the first operator of each window on, for user ranges too, which are watched all the time."""
    result = run(WINDOWS, TPROF_SCHEDULE="wait=2,warmup=1,active=2,repeat=3", TPROF_RECORD_SHAPES=1)
    assert len(result.traces()) == 3
    for trace in result.traces():
        given = {e.name: [] for e in trace.operators()}
        for e in trace.operators():
            given[e.name].append(e.args.get("Input Dims"))
        assert given["aten::addmm"] == [[[2], [4, 3], [3, 2], [], []]] * 2
        assert given["given"] == [[[]]] * 2
