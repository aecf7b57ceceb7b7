"""`tprof check`: a folder per case (test/cases/check/NAME/input.json and expected), and real traces of torch.profiler.

A new case is a new folder; CHECK_UPDATE=1 writes what is printed into its `expected`, to be read before it is
committed.
CHECK_DRIVER names the command; by default that of build/."""

import gzip
import inspect
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "test/cases/check"
DRIVER = os.environ.get("CHECK_DRIVER", str(ROOT / "build/test/tools/check_driver"))


def check(*arguments, cwd=None):
    return subprocess.run([DRIVER, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, errors="replace")


def expected_status(name):
    return 0 if name.startswith("sound-") else 1


@pytest.mark.parametrize("name", sorted(p.name for p in CASES.iterdir()))
def test_case(name):
    got = check("input.json", cwd=CASES / name)
    assert got.stderr == ""
    assert got.returncode == expected_status(name)
    file = CASES / name / "expected"
    if os.environ.get("CHECK_UPDATE") == "1":
        file.write_text(got.stdout)
    assert got.stdout == file.read_text()


@pytest.mark.parametrize("name", sorted(p.name for p in CASES.iterdir()))
def test_json_says_the_same(name):
    """The JSON form is valid and holds the lines of the text form."""
    got = check("--json", "input.json", cwd=CASES / name)
    assert got.returncode == expected_status(name)
    form = json.loads(got.stdout)
    assert form["sound"] == (got.returncode == 0)
    lines = []
    for kind in dict.fromkeys(f["kind"] for f in form["findings"]):
        shown = [f for f in form["findings"] if f["kind"] == kind]
        for f in shown:
            place = f"event {f['event']}, " if "event" in f else ""
            place += f"byte {f['byte']}: " if "byte" in f else ""
            lines.append(f"{kind}: {place}{f['text']}")
        if form["counts"][kind] > len(shown):
            lines.append(f"{kind}: and {form['counts'][kind] - len(shown)} more")
    for note in form["notes"]:
        times = f"{note['count']} times, first " if note["count"] > 1 else ""
        place = f"event {note['event']}, " if "event" in note else ""
        place += f"byte {note['byte']}: " if "byte" in note else ""
        lines.append(f"note: {note['kind']}: {times}{place}{note['text']}")
    text = (CASES / name / "expected").read_text().splitlines()
    if name.startswith("no-events"):
        assert text == [f"input.json: no Chrome trace: {form['findings'][0]['text']}"]
    else:
        assert lines == text[:-1]


def test_gzip_is_the_same(tmp_path):
    for name in ("sound-tprof", "nesting-straddle"):
        data = (CASES / name / "input.json").read_bytes()
        half = len(data) // 2
        (tmp_path / "input.json").write_bytes(gzip.compress(data[:half]) + gzip.compress(data[half:]))
        got = check("input.json", cwd=tmp_path)
        assert got.stdout == (CASES / name / "expected").read_text()


def test_wrong_use(tmp_path):
    for arguments in ([], ["--what", "x"], ["a", "b"], [tmp_path / "missing"], [tmp_path]):
        got = check(*arguments)
        assert got.returncode == 2
        assert got.stdout == ""
        assert got.stderr.startswith("tprof check: ") and got.stderr.count("\n") == 1
    got = check("--help")
    assert got.returncode == 0 and got.stdout.startswith("usage: tprof check") and got.stderr == ""


def profile_some(path, use_python_export=False, **options):
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile, schedule

    way = {"use_python_export": True} if use_python_export else {}
    if use_python_export and "use_python_export" not in inspect.signature(profile.export_chrome_trace).parameters:
        pytest.skip("this PyTorch has no exporter in Python")

    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters())
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
                 on_trace_ready=lambda p: p.export_chrome_trace(str(path), **way),
                 **options) as profiler:
        for _ in range(6):
            optimizer.zero_grad()
            model(torch.randn(8, 16)).sum().backward()
            optimizer.step()
            profiler.step()


@pytest.mark.parametrize("suffix", ["json", "json.gz"])
@pytest.mark.parametrize("options", [{}, {"record_shapes": True}, {"profile_memory": True}, {"with_modules": True},
                                     {"record_shapes": True, "profile_memory": True, "with_flops": True, "with_stack": True}])
def test_torch_is_sound(tmp_path, suffix, options):
    path = tmp_path / ("t." + suffix)
    profile_some(path, **options)
    got = check(path)
    assert got.returncode == 0, got.stdout
    opened = gzip.open(path) if suffix == "json.gz" else open(path)
    events = json.load(opened)["traceEvents"]
    assert f": {len(events)} events, {sum(e['ph'] == 'X' for e in events)} slices on " in got.stdout
    assert f" {sum(e['ph'] in 'sf' for e in events)} flow events: sound" in got.stdout


@pytest.mark.parametrize("options", [{}, {"record_shapes": True, "profile_memory": True, "with_stack": True}])
def test_torch_s_python_exporter_is_sound(tmp_path, options):
    path = tmp_path / "t.json"
    profile_some(path, use_python_export=True, **options)
    got = check(path)
    assert got.returncode == 0, got.stdout
    assert ("note: layers: " in got.stdout) == bool(options)  # an allocation is a slice there, to the end of the window


def test_torch_s_execution_trace_is_none(tmp_path):
    torch = pytest.importorskip("torch")
    from torch.profiler import ExecutionTraceObserver

    path = tmp_path / "et.json"
    observer = ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    torch.ones(3).sum()
    observer.stop()
    observer.unregister_callback()
    got = check(path)
    assert got.returncode == 1 and got.stdout.count("\n") == 1
    assert "no Chrome trace" in got.stdout and "execution trace of PyTorch" in got.stdout


def straddling(path):
    """What the command should find, in Python: by row, slices sorted parents first, those that straddle set aside."""
    rows, found = {}, set()
    for number, e in enumerate(json.load(open(path))["traceEvents"]):
        if e["ph"] == "X":
            ts, dur = round(e["ts"] * 1000), round(e["dur"] * 1000)
            rows.setdefault((str(e["pid"]), str(e["tid"])), []).append((ts, -dur, number))
    for slices in rows.values():
        stack = []
        for ts, negative, number in sorted(slices):
            while stack and stack[-1] <= ts:
                stack.pop()
            if stack and stack[-1] < ts - negative:
                found.add(number)
            else:
                stack.append(ts - negative)
    return found


def test_torch_with_stacks_straddles(tmp_path):
    """torch records Python frames and operators apart: that they straddle is a note, as often as there is, and all."""
    path = tmp_path / "t.json"
    profile_some(path, with_stack=True)
    got = check("--json", path)
    form = json.loads(got.stdout)
    wanted = straddling(path)
    assert form["counts"] == {} and got.returncode == 0
    (note,) = form["notes"]
    assert note["kind"] == "layers" and note["count"] == len(wanted) and note["event"] in wanted
