"""Settings on a real program: what is said of bad ones, and what schedules, names and outputs give."""
import gzip
import os
import re

import pytest

from conftest import COMMAND, check

TRAIN = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(4, 4); sgd = torch.optim.SGD(model.parameters(), lr=0.1)
operators = [torch.sin, torch.cos, torch.tan, torch.exp, torch.sqrt, torch.erf, torch.tanh, torch.floor, torch.ceil, torch.round]
for i in range(STEPS):
    sgd.zero_grad(); model(torch.ones(2, 4)).sum().backward(); sgd.step()
    operators[(i + 1) % 10](torch.ones(3))  # of the step that has just begun
"""


def train(steps):
    return TRAIN.replace("STEPS", str(steps))


@pytest.mark.parametrize("name, value, accepted", [
    ("ENABLED", "yes", "0 or 1"), ("STRICT", "2", "0 or 1"), ("SCHEDULE", "wait=-1", ""), ("SCHEDULE", "often", ""),
    ("SCHEDULE", "active=0", ""), ("STEP", "sometimes", ""), ("STEP", "every:fast", ""), ("ON_TRACE_READY", "pdf", "tensorboard"),
    ("CHILDREN", "some", "auto, all, none"), ("USE_GZIP", "-1", "0 or 1"), ("GZIP_LEVEL", "12", "1 to 9"),
    ("ROW_LIMIT", "ten", ""), ("BUFFER_MB", "1", ""), ("LOG", "loud", "quiet, warn, info, debug")])
def test_a_bad_value(run, name, value, accepted):
    """One line: the variable, the value, what is accepted. The program runs, and nothing is recorded."""
    result = run("import torch; print(torch.ones(2).sum().item())", **{f"TPROF_{name}": value})
    assert (result.status, result.stdout) == (0, "2.0\n")
    lines = [line for line in result.lines if f"TPROF_{name}" in line]
    assert len(lines) == 1
    wrong = value.split(":")[-1].split("=0")[0]  # what is wrong with it, where the value has parts
    assert wrong in lines[0] and "accepted: " in lines[0] and accepted in lines[0]
    assert len(result.stderr.splitlines()) <= 2
    assert not result.folder.exists()


def test_strict(run):
    """Every process of the preload ends at its start, PyTorch or not."""
    result = run("print(1)", TPROF_GZIP_LEVEL="12", TPROF_STRICT="1")
    assert (result.status, result.stdout) == (78, "")
    assert "TPROF_GZIP_LEVEL" in result.stderr
    assert run("print(1)", TPROF_STRICT="1").status == 0


def test_not_enabled(run):
    result = run(train(3), TPROF_ENABLED="0")
    assert (result.status, result.stderr) == (0, "")
    assert not result.folder.exists()


def test_empty_is_unset(run):
    result = run(train(6), TPROF_SCHEDULE="", TPROF_GZIP_LEVEL="", TPROF_LOG="")
    assert result.lines == []
    assert result.trace.step_numbers() == [2, 3, 4]


def test_unknown_names_the_nearest(run):
    result = run(train(1), TPROF_SHEDULE="always")
    (line,) = result.lines
    assert "TPROF_SHEDULE" in line and "TPROF_SCHEDULE" in line


# schedule, steps of the program, the step numbers of each file
SCHEDULES = [
    (None, 8, [[2, 3, 4]]),
    (None, 3, [[0, 1, 2, 3]]),  # it ends before its schedule: everything it did, the beginning of step 3 too
    ("wait=1,warmup=1,active=3,repeat=1", 8, [[2, 3, 4]]),
    ("wait=0,warmup=0,active=2,repeat=1", 8, [[0, 1]]),
    ("wait=2,warmup=1,active=2,repeat=2", 12, [[3, 4], [8, 9]]),
    ("wait=0,warmup=1,active=1,repeat=3", 8, [[1], [3], [5]]),
    ("wait=1,warmup=1,active=1,repeat=0", 9, [[2], [5], [8]]),
    ("skip_first=3,wait=1,warmup=0,active=2,repeat=1", 8, [[4, 5]]),
    ("skip_first=2,skip_first_wait=1,wait=2,warmup=0,active=1,repeat=2", 9, [[2], [5]]),
    ("wait=1,warmup=1,active=3,repeat=1", 4, [[2, 3, 4]]),   # partial: step 4 had only begun
    ("always", 4, [[0, 1, 2, 3, 4]]),
]


@pytest.mark.parametrize("schedule, steps, expected", SCHEDULES)
def test_schedules(run, schedule, steps, expected):
    """Every cycle is a file, with the steps of its window and nothing of others (C16)."""
    result = run(train(steps), TPROF_SCHEDULE=schedule)
    traces = sorted(result.traces(), key=lambda t: t.told["cycle"])
    assert [t.step_numbers() for t in traces] == expected
    for trace, numbers in zip(traces, expected):
        check(trace.path)
        names = ["sin", "cos", "tan", "exp", "sqrt", "erf", "tanh", "floor", "ceil", "round"]
        told = {n for n in names if trace.count(f"aten::{n}")}
        assert told == {names[n % 10] for n in numbers if n > 0}
        optimizer = trace.count("Optimizer.step#SGD.step")
        assert optimizer == sum(n < steps for n in numbers)
        partial = numbers[-1] == steps and schedule != "always"
        assert trace.told["partial"] is partial or schedule == "always"
    recorded = {s["number"] for s in result.summary["steps"] if s["recorded"]}
    assert recorded == {n for numbers in expected for n in numbers if n < steps}
    assert result.summary["step_count"] == steps


def test_one_step(run):
    """A program of one step still gets a trace. Whether that was a step is not known before a second one."""
    result = run(train(1))
    trace = result.trace
    check(trace.path)
    assert trace.step_numbers()[0] == 0
    assert trace.count("Optimizer.step#SGD.step") == trace.count("aten::cos") == 1
    assert trace.told["partial"] is True


@pytest.mark.parametrize("steps", [2, 4])
def test_a_schedule_that_was_never_reached(run, steps):
    """One line says how many steps there were."""
    result = run(train(steps), TPROF_SCHEDULE="wait=5,warmup=1,active=1")
    assert result.traces() == []
    assert any("step" in line and str(steps) in line for line in result.lines)
    assert result.summary["step_count"] == steps


def test_warmup_lets_go(run):
    """Nothing that began before the window appears, although hooks ran."""
    result = run(train(8), TPROF_SCHEDULE="wait=0,warmup=3,active=1,repeat=1")
    trace = result.trace
    begin = trace.told["window"]["begin_ns"] - trace.base
    assert all(e.start >= begin for e in trace.operators())
    assert result.summary["kept"] == len(trace.operators())


def test_gzip_is_the_same_bytes(run, tmp_path):
    """zcat of the one is the other, but for times and ids."""
    shape = []
    for use in "01":
        result = run(train(6), TPROF_USE_GZIP=use, TPROF_TRACE_ID="same")
        (trace,) = result.traces()
        assert trace.path.name.endswith(".json.gz" if use == "1" else ".json")
        check(trace.path)
        shape.append([(e["ph"], e["name"], sorted(e)) for e in trace.all])
    assert shape[0] == shape[1]


@pytest.mark.parametrize("level", [1, 6, 9])
def test_gzip_levels(run, level):
    result = run(train(6), TPROF_GZIP_LEVEL=level)
    (file,) = result.files(".gz")
    assert gzip.decompress(file.read_bytes()).endswith(b"}\n") or gzip.decompress(file.read_bytes()).rstrip().endswith(b"}")


def test_python_export(run):
    """The compact form is sound too."""
    result = run(train(6), TPROF_USE_PYTHON_EXPORT="1")
    check(result.trace.path)
    assert result.trace.count("Optimizer.step#SGD.step") == 3
    assert result.trace.path.stat().st_size > 0


@pytest.mark.parametrize("outputs, suffixes", [
    ("none", {".summary.json"}), ("table", {".table.txt", ".summary.json"}), ("chrome", {".pt.trace.json.gz", ".summary.json"}),
    ("tensorboard,table", {".pt.trace.json.gz", ".table.txt", ".summary.json"})])
def test_outputs(run, outputs, suffixes):
    result = run(train(6), TPROF_ON_TRACE_READY=outputs)
    files = {f.name for f in result.folder.iterdir()}
    assert {re.sub(r"^.*\.\d+(\..*)$", r"\1", name) for name in files} == suffixes


def test_escapes_of_the_folder(run, tmp_path):
    result = run(train(6), TPROF_DIR=str(tmp_path / "%h/%p/r%r/c%c/%%"), RANK="3", WORLD_SIZE="4")
    found = list(tmp_path.rglob("*.pt.trace.json.gz"))
    assert len(found) == 1
    parts = found[0].relative_to(tmp_path).parts
    assert parts[0] == os.uname().nodename.split(".")[0] or parts[0] == os.uname().nodename
    assert parts[1].isdigit() and parts[2:5] == ("r3", "c0", "%")
    assert result.status == 0


def test_relative_folder_and_chdir(run, tmp_path):
    """The folder is where the program was when it loaded PyTorch, wherever it goes."""
    (tmp_path / "elsewhere").mkdir()
    run("import os, torch\nos.chdir('elsewhere')\n" + train(6), cwd=tmp_path, TPROF_DIR="out")
    assert list((tmp_path / "out").glob("*.gz")) and not (tmp_path / "elsewhere" / "out").exists()


@pytest.mark.parametrize("variables, rank, size", [
    ({}, 0, 1), ({"RANK": "3", "WORLD_SIZE": "8"}, 3, 8), ({"SLURM_PROCID": "2", "SLURM_NTASKS": "4"}, 2, 4),
    ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, 1, 2)])
def test_rank(run, variables, rank, size):
    result = run(train(6), **variables)
    info = result.trace.json["distributedInfo"]
    assert (info["rank"], info["world_size"]) == (rank, size)


def test_quiet(run):
    result = run(train(6), TPROF_LOG="quiet")
    assert result.stderr == ""
    assert len(result.traces()) == 1


def test_a_later_feature_is_one_line(run):
    result = run(train(6), TPROF_WITH_STACK="1")
    (line,) = result.lines
    assert "TPROF_WITH_STACK" in line
    assert len(result.traces()) == 1


def test_table_is_at_most_120_columns(run):
    result = run(train(6))
    report = result.stderr[result.stderr.find("====="):]
    assert "Self CPU" in report and "# of Calls" in report and "steps (ms)" in report and "lost:" in report
    assert max(map(len, (line for line in report.splitlines() if "/" not in line))) <= 120
    for file in result.files(".gz") + result.files(".table.txt") + result.files(".summary.json"):
        assert str(file) in report


def test_the_command_line():
    import subprocess
    told = subprocess.run([COMMAND, "--help"], capture_output=True, text=True)
    assert told.returncode == 0 and "check" in told.stdout
    assert subprocess.run([COMMAND], capture_output=True).returncode == 2
    assert subprocess.run([COMMAND, "no-such"], capture_output=True).returncode == 2
