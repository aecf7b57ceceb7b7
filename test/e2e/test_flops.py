"""FLOPs that `tprof table` finds in a file: torch's formulas are those of torch.profiler(with_flops=True), row by row;
the extended ones are those of torch.utils.flop_counter."""
import json
import pathlib
import re
import subprocess

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from conftest import CLEAN, COMMAND  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402


def rows_of(path, *arguments):
    got = subprocess.run([COMMAND, "table", "--json", "--row-limit=-1", "--sort-by=none", *arguments, str(path)],
                         capture_output=True, text=True, env=CLEAN)
    assert got.returncode == 0, got.stderr
    return json.loads(got.stdout)["rows"]


def ones(*shape, **options):
    return torch.ones(*shape, **options)


# Each a call that torch has a formula for, or one that is next to such a call and has none.
CALLS = {
    "mm": lambda: ones(3, 4) @ ones(4, 5),
    "mm of nothing": lambda: torch.mm(ones(3, 0), ones(0, 5)),
    "mm without rows": lambda: torch.mm(ones(0, 4), ones(4, 5)),
    "addmm": lambda: torch.addmm(ones(5), ones(3, 4), ones(4, 5)),
    "linear": lambda: F.linear(ones(2, 3, 4), ones(6, 4), ones(6)),
    "bmm": lambda: torch.bmm(ones(2, 3, 4), ones(2, 4, 5)),
    "bmm without batch": lambda: torch.bmm(ones(0, 3, 4), ones(0, 4, 5)),
    "baddbmm": lambda: torch.baddbmm(ones(2, 3, 5), ones(2, 3, 4), ones(2, 4, 5)),
    "add": lambda: ones(3, 3) + ones(3, 3),
    "add of a number": lambda: ones(3, 3) + 1,
    "add to a number": lambda: 1 + ones(7),
    "add that broadcasts": lambda: ones(1, 3) + ones(3, 1),
    "add of a scalar tensor": lambda: torch.tensor(1.0) + ones(5),
    "add in place": lambda: ones(3).add_(1),
    "mul": lambda: ones(2, 3) * 2.5,
    "mul of many dimensions": lambda: ones(1, 2, 1, 2, 1, 2, 1, 2, 1, 3) * 2,
    "mul, half": lambda: ones(4, dtype=torch.half) * 2,
    "mul, complex": lambda: ones(4, dtype=torch.complex64) * 2,
    "sub has none": lambda: ones(3) - 1,
    "conv2d": lambda: F.conv2d(ones(2, 3, 9, 8), ones(4, 3, 3, 2)),
    "conv2d with all": lambda: F.conv2d(ones(2, 4, 19, 18), ones(6, 2, 3, 2), ones(6), (2, 3), (1, 2), (3, 2), 2),
    "conv2d, depthwise": lambda: F.conv2d(ones(1, 8, 6, 6), ones(8, 1, 3, 3), groups=8),
    "conv2d without batch": lambda: F.conv2d(ones(3, 9, 8), ones(4, 3, 3, 2)),
    "conv2d, same": lambda: F.conv2d(ones(2, 3, 9, 8), ones(4, 3, 3, 3), padding="same"),
    "conv2d, one number": lambda: F.conv2d(ones(2, 3, 9, 9), ones(4, 3, 3, 3), stride=2, padding=1),
    "conv2d in bfloat16": lambda: F.conv2d(ones(1, 1, 4, 4, dtype=torch.bfloat16), ones(1, 1, 2, 2, dtype=torch.bfloat16)),
    "conv1d has none": lambda: F.conv1d(ones(2, 3, 9), ones(4, 3, 3)),
    "conv3d has none": lambda: F.conv3d(ones(1, 1, 4, 4, 4), ones(1, 1, 2, 2, 2)),
    "attention has none": lambda: F.scaled_dot_product_attention(*[ones(1, 2, 4, 8)] * 3),
    "mv has none": lambda: ones(3, 4).mv(ones(4)),
}


@pytest.mark.parametrize("name", CALLS)
def test_as_torch_counts(name, tmp_path):
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as p:
        CALLS[name]()
    path = tmp_path / "t.json"
    p.export_chrome_trace(str(path))
    theirs = {(row.key, str(row.input_shapes)): row.flops for row in p.key_averages(group_by_input_shape=True)}
    ours = {(row["name"], str(row["input_shapes"])): row["flops"] for row in rows_of(path, "--group-by", "input_shape")}
    assert ours == theirs
    assert any(ours.values()) == ("none" not in name and "nothing" not in name and "without" not in name
                                  and "same" not in name and name != "add in place")


IN_PROCESS = """
import json, sys
import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

CALLS = [%s]

with profile(activities=[ProfilerActivity.CPU], with_flops=True) as p:
    for call in CALLS:
        call()
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(32, 5))
    model(torch.ones(4, 1, 6, 6)).sum().backward()
json.dump({row.key: [row.count, row.flops] for row in p.key_averages()}, sys.stdout)
"""


@pytest.mark.parametrize("way", ["interpose", "callback"])
def test_counted_in_the_process(run, way):
    """Of the same run as torch's: in the summary, in both printed tables, and from the file. It brings inputs along as in
    torch, where the file does not say record_shapes."""
    calls = re.search(r"^CALLS = \{\n(.*?)^\}", pathlib.Path(__file__).read_text(), re.M | re.S)[1]
    calls = calls.replace("ones(", "torch.ones(")
    program = IN_PROCESS % re.sub(r'^ *"[^"]*": ', "", calls, flags=re.M)
    result = run(program, TPROF_SCHEDULE="always", TPROF_WITH_FLOPS=1, TPROF_HOOK=way, TPROF_ROW_LIMIT=-1)
    assert (result.status, result.lines) == (0, [])
    theirs = {name: flops for name, (count, flops) in json.loads(result.stdout).items() if flops}
    assert len(theirs) == 7
    rows = {row["name"]: row["flops"] for row in result.summary["operators"]}
    assert {name: flops for name, flops in rows.items() if flops} == theirs
    (trace,) = result.files(".pt.trace.json.gz")
    assert {row["name"]: row["flops"] for row in rows_of(trace) if row["flops"]} == theirs
    assert result.trace.json["with_flops"] == 1 and "record_shapes" not in result.trace.json
    assert [[3, 4], [4, 5]] in [e.args.get("Input Dims") for e in result.trace.operators()]
    (table,) = result.files(".table.txt")
    for text in (table.read_text(), result.stderr):
        (head,) = [line for line in text.splitlines() if "# of Calls" in line]
        assert head.rstrip().endswith("  Total FLOPs")
        cells = {line.split()[0]: line.split()[-1] for line in text.splitlines() if line.startswith(" ") and "aten::" in line}
        shown = {name: float(cell) for name, cell in cells.items() if cell != "--"}
        assert shown == theirs and cells["aten::view"] == "--"
    assert max(len(line) for line in result.stderr.splitlines() if "aten::" in line and line.startswith(" ")) <= 120


def test_without_it_nothing_is_counted(run):
    result = run("import torch\ntorch.ones(3, 4) @ torch.ones(4, 5)\n", TPROF_SCHEDULE="always", TPROF_RECORD_SHAPES=1)
    assert "FLOPs" not in result.stderr and "with_flops" not in result.trace.json
    assert not any("flops" in row for row in result.summary["operators"])


def gradient(call, *inputs):
    inputs = [i.requires_grad_() for i in inputs]
    return lambda: call(*inputs).sum().backward()


# Counted by the flop counter, all of it, and by one or two operators of ours.
EXTENDED = {
    "conv1d": (lambda: F.conv1d(ones(2, 4, 19), ones(6, 2, 3), None, 2, 1, 3, 2), ["aten::conv1d"]),
    "conv1d without batch": (lambda: F.conv1d(ones(4, 19), ones(6, 4, 3)), ["aten::conv1d"]),
    "conv3d": (lambda: F.conv3d(ones(2, 3, 9, 8, 7), ones(4, 3, 3, 2, 1), ones(4), (1, 2, 3), (1, 0, 2)), ["aten::conv3d"]),
    "conv_transpose1d": (lambda: F.conv_transpose1d(ones(2, 3, 9), ones(3, 4, 3), stride=2), ["aten::conv_transpose1d"]),
    "conv_transpose2d": (lambda: F.conv_transpose2d(ones(2, 4, 5, 6), ones(4, 3, 3, 2), groups=2), ["aten::conv_transpose2d"]),
    "conv_transpose3d": (lambda: F.conv_transpose3d(ones(1, 3, 4, 5, 6), ones(3, 2, 2, 2, 2)), ["aten::conv_transpose3d"]),
    "backward of conv2d": (gradient(F.conv2d, ones(2, 3, 9, 8), ones(4, 3, 3, 2)),
                           ["aten::conv2d", "aten::convolution_backward"]),
    "backward of conv1d's weight": (gradient(lambda w: F.conv1d(ones(2, 3, 9), w, stride=2), ones(4, 3, 3)),
                                    ["aten::conv1d", "aten::convolution_backward"]),
    "backward of conv3d's input": (gradient(lambda x: F.conv3d(x, ones(4, 3, 2, 2, 2)), ones(1, 3, 5, 6, 7)),
                                   ["aten::conv3d", "aten::convolution_backward"]),
    "backward of conv_transpose2d": (gradient(F.conv_transpose2d, ones(2, 3, 5, 6), ones(3, 4, 3, 2)),
                                     ["aten::conv_transpose2d", "aten::convolution_backward"]),
}


def extended(call, tmp_path):
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as p:
        call()
    path = tmp_path / "t.json"
    p.export_chrome_trace(str(path))
    assert not any("flops" in row for row in rows_of(path))
    torch_rows = {row["name"]: row["flops"] for row in rows_of(path, "--flops=torch")}
    rows = {row["name"]: row["flops"] for row in rows_of(path, "--flops", "extended")}
    assert all(rows[name] == flops for name, flops in torch_rows.items() if flops)
    return rows


@pytest.mark.parametrize("name", EXTENDED)
def test_as_the_flop_counter_counts(name, tmp_path):
    call, operators = EXTENDED[name]
    with FlopCounterMode(display=False) as counter:
        call()
    rows = extended(call, tmp_path)
    assert counter.get_total_flops() > 0
    assert sum(rows[operator] for operator in operators) == counter.get_total_flops()
    assert all(rows[operator] > 0 for operator in operators)


def test_matrix_times_vector(tmp_path):
    """The flop counter has no formula for them: they are products of matrices with one column."""
    with FlopCounterMode(display=False) as counter:
        ones(3, 4) @ ones(4, 1)
    for name, call in [("aten::mv", lambda: ones(3, 4).mv(ones(4))), ("aten::addmv", lambda: ones(3).addmv(ones(3, 4), ones(4)))]:
        assert extended(call, tmp_path)[name] == counter.get_total_flops() == 24


def test_a_padding_by_name_is_not_counted(tmp_path):
    """It is not in the file."""
    rows = extended(lambda: F.conv1d(ones(2, 4, 19), ones(6, 4, 3), padding="same"), tmp_path)
    assert rows["aten::conv1d"] == 0


def test_attention(tmp_path):
    """The flop counter knows the kernels of GPUs; the CPU's have the same inputs."""
    from torch.utils.flop_counter import sdpa_backward_flop_count, sdpa_flop_count
    query, key = ones(2, 3, 4, 8), ones(2, 3, 5, 8)
    rows = extended(gradient(F.scaled_dot_product_attention, query, key, key.clone()), tmp_path)
    name = "aten::_scaled_dot_product_flash_attention_for_cpu_backward"
    assert rows[name] == sdpa_backward_flop_count(query.shape, query.shape, key.shape, key.shape)
    assert rows["aten::scaled_dot_product_attention"] == sdpa_flop_count(query.shape, key.shape, key.shape)


def test_formulas_in_the_table(tmp_path):
    """The unit is that of the smallest value; without shapes there is nothing to count."""
    for shapes in (False, True):
        with profile(activities=[ProfilerActivity.CPU], record_shapes=shapes) as p:
            ones(30, 40) @ ones(40, 50)
        path = tmp_path / "t.json"
        p.export_chrome_trace(str(path))
        got = subprocess.run([COMMAND, "table", "--flops=torch", str(path)], capture_output=True, text=True, env=CLEAN)
        assert ("Total KFLOPs" in got.stdout) == shapes and ("120.000" in got.stdout) == shapes
