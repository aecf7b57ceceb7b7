"""Faults seen in public that tprof must not have, one test for each case and kind. The number is that of the case.

Others are tested closer to the code: C07 (printing of nanoseconds: check_json.c, here the reader's side), C09 (ties of a
coarse clock: check_chrome.c), C10 (unfinished events: check_chrome.c), C34 (names made from time: check_sink.c)."""
import gzip
import json
import os
import re
import subprocess
import sys

import pytest

from conftest import CLEAN, check, preload
from traces import Trace, nanoseconds

NAMES = {
    "C01": ["\\", "\\u12", "trailing\\", "\\\"", "a/b\\c", "\\n", '"', "</script>"],
    "C03": [chr(i) for i in range(1, 0x20)] + ["\x7f", "\uffff", "\U0001f600", "caf\u00e9", "\u2028", "x" * 100000],
}


@pytest.mark.parametrize("case", NAMES)
def test_names(run, tmp_path, case):
    """C01, C03: any text in a name; strictly valid JSON, and the name read back is equal."""
    names = tmp_path / "names.json"
    names.write_text(json.dumps(NAMES[case]))
    program = (f"import json, torch\nfor name in json.load(open({str(names)!r})):\n"
               "    with torch.profiler.record_function('<' + name + '>'): torch.ones(2)\n")
    result = run(program, TPROF_SCHEDULE="always")
    assert result.status == 0, result.stderr
    check(result.trace.path)
    got = [e.name[1:-1] for e in result.trace.events if e.name.startswith("<")]
    assert got == NAMES[case]


def test_c01_folder_and_metadata(run, tmp_path):
    """C01: text from outside that is no name: the folder, the worker, the trace id, the command line."""
    script = tmp_path / "we\\ird" / 'pro"gram\n.py'
    script.parent.mkdir()
    script.write_text("import torch; torch.ones(2)\n")
    result = run(script, TPROF_TRACE_ID='a\\b"c', folder=tmp_path / 'o"u\\t')
    assert result.trace.json["trace_id"] == 'a\\b"c'
    assert result.summary["kept"] > 0
    check(result.trace.path)


def test_c03_half_a_surrogate(run):
    """C03: PyTorch itself refuses such a name; what it says then is unchanged, and the trace is sound."""
    program = ("import torch\n"
               "try:\n    torch.profiler.record_function('\\ud800').__enter__()\nexcept Exception as e: print(type(e).__name__)\n"
               "torch.ones(2)\n")
    result = run(program, TPROF_SCHEDULE="always")
    assert (result.status, result.stdout) == (0, run.bare(program).stdout)
    check(result.trace.path)


def schema(trace):
    """Which keys each kind of event has, and what stands at the top."""
    events = {(e["ph"], e.get("cat"), tuple(sorted(set(e) - {"args"}))) for e in trace.all}
    return events, set(trace.json) - {"tprof"}


def test_c06_every_writer_one_schema(run):
    """C06: plain and gzip, schedule and exit, and TPROF_LOG=debug with odd arguments and names: one shape."""
    program = ("import torch\nw = torch.ones(3, requires_grad=True)\nsgd = torch.optim.SGD([w], lr=.1)\n"
               "for _ in range(8):\n    sgd.zero_grad(); (w * w).sum().backward(); sgd.step()\n")
    shapes = []
    for settings in ({}, {"TPROF_USE_GZIP": 0}, {"TPROF_SCHEDULE": "always"}, {"TPROF_LOG": "debug"},
                     {"TPROF_SCHEDULE": "wait=0,warmup=0,active=2,repeat=1", "TPROF_USE_GZIP": 0}):
        result = run(program, **settings)
        check(result.trace.path)
        shapes.append(schema(result.trace))
    assert all(shape == shapes[0] for shape in shapes[1:])


def assert_readable_name(file):
    """As torch_tb_profiler takes names apart: worker, then the time, which it shows as the span."""
    match = re.match(r"^(.*?)(\.\d+)?(?:\.pt)?\.trace\.json(?:\.gz)?$", file.name)
    assert match and match[1] and len(match[2]) >= 20, file.name
    assert not re.search(r"\.\d+$", match[1]), "a part of the worker's name would be taken for the time"


@pytest.mark.skipif(subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode != 0,
                    reason="unshare --uts is not permitted here")
@pytest.mark.parametrize("host", ["dots.in.the.name", "ends.in.7", "x" * 64, "under_score", 'quo"te', "sp ace"])
def test_c37_host_names(tmp_path, host):
    """C06, C37: odd host names; the name of the file is still WORKER.TIME.pt.trace.json.gz."""
    environment = dict(CLEAN, TPROF_DIR=str(tmp_path / "out"))
    preload(environment)
    inside = "import socket, sys, os; socket.sethostname(sys.argv[1]); os.execv(sys.executable, [sys.executable, '-c', " \
             "'import torch; torch.ones(2)'])"
    got = subprocess.run(["unshare", "--uts", sys.executable, "-c", inside, host], env=environment, capture_output=True, text=True)
    assert got.returncode == 0, got.stderr
    (file,) = (tmp_path / "out").glob("*.pt.trace.json.gz")
    check(file)
    trace = Trace(file)
    assert trace.json["host_name"] == host
    assert_readable_name(file)


@pytest.mark.parametrize("worker", ["a/b", "..", "../up", "sp ace", "dot.s", "dot.7", "", "w" * 300])
def test_c37_worker_names(run, tmp_path, worker):
    """C37: a worker's name stays inside its folder, and readers still split the file's name."""
    folder = tmp_path / "in" / "out"
    result = run("import torch; torch.ones(2)", TPROF_WORKER_NAME=worker, folder=folder)
    (file,) = result.files(".pt.trace.json.gz")
    assert file.parent == folder
    assert_readable_name(file)
    assert [p for p in (tmp_path / "in").iterdir()] == [folder]
    check(file)
    for said in result.files(".gz") + result.files(".txt"):
        assert str(said) in result.stderr


def test_c37_gunzip_is_whole(run):
    """C37: what gunzip gives is the JSON, to its last byte."""
    result = run("import torch\nfor _ in range(5000): torch.ones(2)", TPROF_SCHEDULE="always")
    (file,) = result.files(".gz")
    told = subprocess.run(["gzip", "-dc", file], capture_output=True)
    assert told.returncode == 0 and told.stderr == b""
    assert told.stdout == gzip.decompress(file.read_bytes()) == Trace(file).bytes


def test_c07_times_are_exact(run):
    """C07: every time has three digits after the point, and agrees with what the trace says in whole nanoseconds."""
    result = run("mlp_adam", TPROF_SCHEDULE="always")
    trace = result.trace
    for e in trace.all:
        if e["ph"] == "X":
            nanoseconds(e["ts"]), nanoseconds(e["dur"])  # asserts the three digits
    window = trace.told["window"]
    for step, slice in zip(trace.told["steps"], trace.steps()):
        # Slices of neighbours are kept apart by more than the last digit of a double.
        assert abs(slice.start + trace.base - step["start_ns"]) < 1000
        assert abs(slice.end + trace.base - step["end_ns"]) < 1000
    assert all(window["begin_ns"] <= e.start + trace.base and e.end + trace.base <= window["end_ns"] for e in trace.operators())


OPEN = {
    "at _exit": "outer = torch.profiler.record_function('open'); outer.__enter__(); torch.ones(2); os._exit(0)",
    "at exit by a signal": "outer = torch.profiler.record_function('open'); outer.__enter__(); torch.ones(2); os.kill(os.getpid(), 15)",
    "at exec": "outer = torch.profiler.record_function('open'); outer.__enter__(); torch.ones(2); os.execv('/bin/true', ['true'])",
    "in a thread that waits": "def work():\n    with torch.profiler.record_function('open'): torch.ones(2); time.sleep(60)\n"
                              "threading.Thread(target=work, daemon=True).start(); time.sleep(0.3)",
}


@pytest.mark.parametrize("where", OPEN)
def test_c10_unfinished(run, where):
    """C10: a range still open: inside the window, no negative duration, marked and counted."""
    result = run("import os, threading, time, torch\n" + OPEN[where], TPROF_SCHEDULE="always")
    trace = result.trace
    check(trace.path)
    (open_range,) = [e for e in trace.events if e.name == "open"]
    assert open_range.args["finished"] is False
    window = trace.told["window"]
    assert window["begin_ns"] <= open_range.start + trace.base <= open_range.end + trace.base <= window["end_ns"]
    assert trace.told["unfinished"] == result.summary["unfinished"] == 1


def test_c10_an_operator_that_throws(run):
    """C10: it ends where it threw."""
    result = run("throws", TPROF_SCHEDULE="always")
    check(result.trace.path)
    assert result.trace.told["unfinished"] == 0


@pytest.mark.parametrize("end", ["", "import sys; sys.exit(2)", "raise SystemExit(1)", "1 / 0", "import os; os._exit(4)",
                                 "import os; os.kill(os.getpid(), 15)"])
@pytest.mark.parametrize("steps", [0, 1, 3, 6])
def test_c17_the_program_ends_when_it_likes(run, end, steps):
    """C17: in each phase of wait=1,warmup=1,active=3, by each way: what was recorded is written, or one line says why not."""
    program = ("import torch\nw = torch.ones(3, requires_grad=True)\nsgd = torch.optim.SGD([w], lr=.1)\n"
               f"for _ in range({steps}):\n    sgd.zero_grad(); (w * w).sum().backward(); sgd.step()\n" + end)
    result = run(program, TPROF_SCHEDULE="wait=1,warmup=1,active=3,repeat=1")
    if steps >= 3:
        check(result.trace.path)
        assert result.trace.told["partial"] is (steps < 5)
        assert result.trace.step_numbers()[0] == 2
    else:
        assert result.traces() == []
        assert len([line for line in result.lines if "step" in line]) == 1


def test_c19_all_threads(run):
    """C19: threads begun before and inside the window, 200 short ones, autograd's and the inter-op pool's: every operator."""
    program = """
import threading, torch
torch.set_num_threads(1)
a = torch.ones(4)
stop = threading.Event()
counts = [0]
def long():
    while not stop.is_set():
        torch.sub(a, a); counts[0] += 1; stop.wait(0.001)
def short():
    torch.mul(a, a)
before = threading.Thread(target=long); before.start()
for _ in range(200):
    t = threading.Thread(target=short); t.start(); t.join()
futures = [torch.jit.fork(torch.div, a, a) for _ in range(10)]
for f in futures: torch.jit.wait(f)
w = torch.ones(4, requires_grad=True)
for _ in range(10): torch.exp(w).sum().backward()
stop.set(); before.join()
print(counts[0])
"""
    result = run(program, TPROF_SCHEDULE="always")
    trace = result.trace
    check(trace.path)
    assert trace.told["lost"] == 0
    assert trace.count("aten::mul") >= 200  # backward has some of its own
    assert len({e.thread for e in trace.events if e.name == "aten::mul"}) >= 100  # the kernel gives ids again
    assert trace.count("aten::sub") == int(result.stdout)
    assert trace.count("aten::div") == 10
    assert trace.count("ExpBackward0") == 10


def test_c19_ten_thousand_short_threads(run):
    """What is not kept is counted, to the operator."""
    program = """
import threading, torch
torch.set_num_threads(1)
a = torch.ones(4)
def work(): torch.neg(a); torch.neg(a)
for _ in range(1250):
    ts = [threading.Thread(target=work) for _ in range(8)]
    for t in ts: t.start()
    for t in ts: t.join()
"""
    result = run(program, TPROF_SCHEDULE="always")
    trace = result.trace
    check(trace.path)
    others = len(trace.operators()) - trace.count("aten::neg")
    assert trace.told["kept"] + trace.told["lost"] - others == 20000
    assert trace.count("aten::neg") >= 19800  # on a machine that keeps the background thread waiting, a few find no room


def background_cpu_us(run, program):
    return run(program, TPROF_SCHEDULE="always").summary["cost"]["background_cpu_us"]


@pytest.mark.parametrize("shape, program", [
    ("flat", "import torch\na = torch.ones(2)\nfor _ in range({n}): torch.neg(a)\n"),
    ("deep", "import torch\nfrom torch.profiler import record_function\na = torch.ones(2)\n"
             "for _ in range({n} // 500):\n    open = [record_function('r') for _ in range(500)]\n"
             "    for r in open: r.__enter__()\n    for r in reversed(open): r.__exit__(None, None, None)\n"),
    ("names", "import torch\nfrom torch.profiler import record_function\n"
              "for i in range({n}):\n    with record_function(f'range {i % 5000}'): pass\n")])
def test_c22_growth(run, capsys, shape, program):
    """C22: ten times as many events cost about ten times as much, however they are nested and named."""
    costs = [background_cpu_us(run, program.replace("{n}", str(n))) for n in (20000, 200000)]
    with capsys.disabled():
        print(f"\n  {shape}: {costs[0] / 20000:.3f} us an event at 20,000, {costs[1] / 200000:.3f} at 200,000")
    assert costs[1] < 20 * costs[0]


def test_c23_bounded_output(run):
    """C23: three million operators in 16 MB: loss is counted everywhere, and the newest steps are whole."""
    program = """
import torch
w = torch.ones(2, requires_grad=True)
sgd = torch.optim.SGD([w], lr=.1)
a = torch.ones(2)
for i in range(300):
    for _ in range(10000): torch.neg(a)
    sgd.step()
"""
    result = run(program, TPROF_SCHEDULE="always", TPROF_BUFFER_MB="16", timeout=300)
    trace = result.trace
    check(trace.path)
    told = trace.told
    assert told["lost"] > 0
    assert 3_000_000 <= told["kept"] + told["lost"] <= 3_000_000 + 300 * 20 + 100
    summary = result.summary
    assert (summary["kept"], summary["lost"]) == (told["kept"], told["lost"])
    assert str(told["lost"]) in result.stderr.replace(",", "")
    assert summary["cost"]["memory_bytes"] <= summary["cost"]["memory_limit_bytes"] == 16 << 20
    whole = [e for e in trace.steps()][-4:-1]
    for step in whole:
        inside = sum(e.name == "aten::neg" and step.start <= e.start < step.end for e in trace.events)
        assert inside == 10000
    assert any(str(trace.path) in line and "iB" in line for line in result.stderr.splitlines())


GLOO = """
import datetime, os, sys, time, torch, torch.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2, timeout=datetime.timedelta(seconds=5))
w = torch.ones(2, requires_grad=True)
sgd = torch.optim.SGD([w], lr=.1)
a = torch.ones(2)
longest = 0
for step in range(6):
    for _ in range(250000 if rank == 0 and step < 4 else 10): torch.ceil(a)
    sgd.zero_grad(); (w * w).sum().backward()
    dist.all_reduce(w.grad)
    began = time.monotonic()
    sgd.step()
    longest = max(longest, time.monotonic() - began)
dist.barrier()
dist.destroy_process_group()
print("longest step end", longest)
"""


@pytest.mark.skipif(subprocess.run([sys.executable, "-c", "import torch.distributed as d; exit(not d.is_gloo_available())"],
                                   env=CLEAN).returncode != 0, reason="this PyTorch has no gloo")
def test_c25_ranks_do_not_wait_for_files(run, tmp_path):
    """C25: one rank records a million operators; the other does not time out, and the training thread is not held up."""
    script = tmp_path / "gloo.py"
    script.write_text(GLOO)
    environment, folder = run.environment({"TPROF_SCHEDULE": "wait=0,warmup=0,active=4,repeat=1"})
    processes = [subprocess.Popen([sys.executable, script, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE, text=True,
                                  env=dict(environment, RANK=str(rank), WORLD_SIZE="2", GLOO_SOCKET_IFNAME="lo"))
                 for rank in range(2)]
    out = [p.communicate(timeout=120)[0] for p in processes]
    assert [p.returncode for p in processes] == [0, 0]
    assert max(float(text.split()[-1]) for text in out) < 0.5
    traces = [Trace(f) for f in folder.glob("*.gz")]
    assert sorted(t.json["distributedInfo"]["rank"] for t in traces) == [0, 1]
    assert max(t.count("aten::ceil") for t in traces) == 1_000_000
    for trace in traces:
        check(trace.path)


def test_c34_a_thousand_cycles(run):
    """C34: many cycles in a moment, each a file of its own."""
    program = ("import torch\nw = torch.ones(2, requires_grad=True)\nsgd = torch.optim.SGD([w], lr=.1)\n"
               "for _ in range(1000): sgd.step()\n")
    result = run(program, TPROF_SCHEDULE="wait=0,warmup=0,active=1,repeat=0", TPROF_ON_TRACE_READY="chrome")
    cycles = sorted(t.told["cycle"] for t in result.traces())
    assert len(cycles) == len(set(cycles)) == result.summary["cycle_count"]
    assert len(cycles) >= 1000


def test_c36_ranks_in_one_folder(run):
    """C36: four processes with one folder and one worker name: each file whole, no half one under its name at any time."""
    program = "import torch\na = torch.ones(4)\nfor _ in range(20000): torch.neg(a)\n"
    started = [run.start(program, folder=run.root / "shared", TPROF_WORKER_NAME="same", TPROF_SCHEDULE="always", RANK=rank,
                         WORLD_SIZE=4) for rank in range(4)]
    folder = started[0][1]
    while any(process.poll() is None for process, _ in started):
        for file in list(folder.glob("*.gz")) if folder.exists() else []:
            gzip.decompress(file.read_bytes())  # whole whenever it is seen
    for process, _ in started:
        process.communicate()
        assert process.returncode == 0
    traces = [Trace(f) for f in folder.glob("*.gz")]
    assert sorted(t.json["distributedInfo"]["rank"] for t in traces) == [0, 1, 2, 3]
    assert all(t.count("aten::neg") == 20000 for t in traces)
    assert all(os.path.basename(t.path).startswith("same.") for t in traces)
