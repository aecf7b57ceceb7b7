"""The ways out that a training takes, its children, and processes that never load PyTorch."""
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import CLEAN, check, finish, preload

LOOP = "import os, sys, torch\na = torch.ones(4)\nfor _ in range(1000): torch.add(a, a)\n"
WAYS = {
    "return": "",
    "sys.exit(3)": "sys.exit(3)",
    "sys.exit with a text": "sys.exit('why')",
    "an unhandled exception": "raise ValueError('deep')",
    "os._exit(5)": "sys.stdout.flush(); os._exit(5)",
    "SIGTERM": "os.kill(os.getpid(), 15)",
    "SIGINT": "os.kill(os.getpid(), 2)",
    "SIGTERM to a sleeping thread": "import threading, time\n"
                                   "threading.Timer(0.2, lambda: os.kill(os.getpid(), 15)).start(); time.sleep(60)",
    "SIGINT that is handled": "try:\n    os.kill(os.getpid(), 2); import time; time.sleep(9)\n"
                              "except KeyboardInterrupt:\n    print('handled'); sys.exit(4)",
    "SIGTERM that is handled": "import signal\nsignal.signal(15, lambda *a: sys.exit(6))\nos.kill(os.getpid(), 15)",
    "exec": "sys.stdout.flush(); os.execv('/bin/echo', ['echo', 'executed'])",
    "atexit": "import atexit; atexit.register(lambda: print(torch.add(a, a).sum().item()))",
    "daemon threads that wait": "import threading, time\n"
                                "def work():\n    torch.add(a, a); time.sleep(60)\n"
                                "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
                                "time.sleep(0.3)",
}


def plain(text):
    """stderr without the report, addresses and process ids."""
    return re.sub(r"0x[0-9a-f]+|\b\d{3,}\b", "N", text[:text.find("=" * 100)] if "=" * 100 in text else text)


@pytest.mark.parametrize("way", WAYS)
def test_status_and_files(run, way):
    program = LOOP + "print('ran', flush=True)\n" + WAYS[way]
    bare = run.bare(program)
    result = run(program, TPROF_SCHEDULE="always")
    assert (result.status, result.stdout) == (bare.status, bare.stdout)
    assert plain(result.stderr) == plain(bare.stderr)
    trace = result.trace
    check(trace.path)
    assert trace.count("aten::add") >= 1000
    assert len(result.files(".summary.json")) == 1
    assert result.files(".table.txt")
    assert [f for f in result.folder.iterdir() if not f.name.endswith((".gz", ".txt", ".json"))] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_in_the_midst_of_training(run, number):
    """The signal comes from outside, at any moment of a training."""
    program = ("import torch\nfrom torch import nn\nmodel = nn.Linear(8, 8)\nsgd = torch.optim.SGD(model.parameters(), lr=.1)\n"
               "print('go', flush=True)\n"
               "while True:\n    sgd.zero_grad(); model(torch.randn(4, 8)).sum().backward(); sgd.step()\n")
    process, folder = run.start(program, TPROF_SCHEDULE="always")
    assert process.stdout.readline() == b"go\n"
    time.sleep(0.5)
    process.send_signal(number)
    result = finish(process, folder)
    assert result.status == -number
    check(result.trace.path)
    assert result.trace.step_numbers() == list(range(len(result.trace.steps())))
    assert result.summary["ended"] == number.name


MILLION = ("import torch, time\na, b = torch.ones(4), torch.ones(4)\n"
           "for _ in range(1000000): torch.add(a, a, out=b)\nprint('go', flush=True)\ntime.sleep(60)\n")


def test_sigterm_to_the_end_with_a_million_operators(run, capsys):
    """Files written and the process gone, gzip included; the bound for users is 2 s."""
    process, folder = run.start(MILLION, TPROF_SCHEDULE="always")
    assert process.stdout.readline() == b"go\n"
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    result = finish(process, folder)
    took = time.monotonic() - began
    with capsys.disabled():
        print(f"\n  SIGTERM to process end, a million operators: {took:.2f} s")
    assert result.status == -signal.SIGTERM
    told = result.summary
    assert told["kept"] + told["lost"] >= 1_000_000 and told["lost"] == 0
    (file,) = result.files(".pt.trace.json.gz")
    check(file)
    assert took < 6


def test_further_signals_do_not_cut_files_short(run):
    """Supervisors send SIGTERM to the process and to its group; the second goes to a thread that is not in our handler."""
    second = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    process, folder = run.start(second + MILLION, TPROF_SCHEDULE="always")
    assert process.stdout.readline() == b"go\n"
    for _ in range(3):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.02)
    result = finish(process, folder)
    assert result.status == -signal.SIGTERM
    assert result.summary["ended"] == "SIGTERM" and result.summary["kept"] >= 1_000_000
    check(result.trace.path)


FORK = LOOP + """
pid = os.fork()
for _ in range(10): torch.sub(a, a)
if pid == 0:
    if CHILD_TRAINS:
        w = torch.ones(3, requires_grad=True); (w * 2).sum().backward()
    sys.exit(0)
os.waitpid(pid, 0)
"""


@pytest.mark.parametrize("setting, trains, files", [("all", 0, 2), ("none", 0, 1), ("auto", 0, 1), ("auto", 1, 2), ("none", 1, 1)])
def test_forked_children(run, setting, trains, files):
    result = run(FORK.replace("CHILD_TRAINS", str(trains)), TPROF_SCHEDULE="always", TPROF_CHILDREN=setting)
    assert result.status == 0
    traces = result.traces()
    assert len(traces) == files
    parents = [t for t in traces if t.count("aten::add") == 1000]
    assert len(parents) == 1
    for trace in traces:
        check(trace.path)
        assert trace.count("aten::sub") == 10
        assert len({e.thread for e in trace.operators()} | {trace.told["pid"]}) == 1 or trace.count("aten::mul")
    assert len({t.told["pid"] for t in traces}) == files
    # Only the process at the top prints.
    assert result.stderr.count("Self CPU time total") == 1


SPAWN = """
import torch, torch.multiprocessing as mp
def work(rank):
    a = torch.ones(4)
    for _ in range(20): torch.add(a, a)
    w = torch.ones(3, requires_grad=True); (w * 2).sum().backward()
if __name__ == "__main__":
    a = torch.ones(4)
    for _ in range(30): torch.add(a, a)
    {how}
"""


@pytest.mark.parametrize("how", ["mp.spawn(work, nprocs=2)",
                                 "ps = [mp.get_context('forkserver').Process(target=work, args=(i,)) for i in range(2)]; "
                                 "[p.start() for p in ps]; [p.join() for p in ps]"], ids=["spawn", "forkserver"])
@pytest.mark.parametrize("setting, files", [("all", 3), ("none", 1), ("auto", 3)])
def test_spawned_children(run, tmp_path, how, setting, files):
    script = tmp_path / "spawned.py"
    script.write_text(SPAWN.replace("{how}", how))
    result = run(script, TPROF_SCHEDULE="always", TPROF_CHILDREN=setting)
    assert result.status == 0, result.stderr
    counts = sorted(t.count("aten::add") for t in result.traces())
    assert counts == [20] * (files - 1) + [30]
    assert result.stderr.count("Self CPU time total") == 1


@pytest.mark.parametrize("setting, files", [("all", 3), ("none", 1), ("auto", 1)])
def test_dataloader_workers(run, setting, files):
    """Workers run operators but do not train."""
    result = run("dataloader_workers", TPROF_SCHEDULE="always", TPROF_CHILDREN=setting)
    assert len(result.traces()) == files
    for trace in result.traces():
        check(trace.path)
    assert result.stderr.count("Self CPU time total") == 1


def without_pytorch(program):
    return subprocess.run(program, env=CLEAN, capture_output=True, text=True)


@pytest.mark.parametrize("program", [["true"], ["sh", "-c", "echo out; echo err >&2; exit 3"],
                                     [sys.executable, "-c", "import json, threading; print(1)"],
                                     ["sh", "-c", "ls / | sort | head -3"]],
                         ids=["true", "sh", "python", "pipeline"])
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_a_process_without_pytorch(tmp_path, program):
    """No file, no thread, no socket, no output. The loader's own work on our library aside, the system calls are the same."""
    bare = subprocess.run(program, env=CLEAN, capture_output=True)
    environment = dict(CLEAN, TPROF_DIR=str(tmp_path / "out"))
    preload(environment)
    log = tmp_path / "strace"
    inside = [f"{k}={environment[k]}" for k in ("LD_PRELOAD", "TPROF_DIR")] + ["TPROF_STRICT=1"]
    result = subprocess.run(["strace", "-f", "-o", log, *[x for i in inside for x in ("-E", i)], *program], env=CLEAN,
                            capture_output=True)
    assert (result.returncode, result.stdout, result.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert not (tmp_path / "out").exists()
    calls = log.read_text()
    assert "/dev/shm" not in calls and "tprof." not in calls.replace("libtprof.so", "")
    expected = subprocess.run(["strace", "-f", "-o", tmp_path / "bare", *program], env=CLEAN, capture_output=True)
    assert expected.returncode == bare.returncode
    for made in (r"clone3?\(.*CLONE_THREAD", r"\bsocket\(", r"\bmemfd_create\(", r"O_CREAT", r"\bwrite\("):
        assert len(re.findall(made, calls)) == len(re.findall(made, (tmp_path / "bare").read_text())), made


def test_pytorch_without_operators(run):
    """A program that loads PyTorch and does nothing with it."""
    result = run("import torch; print(1)")
    assert (result.status, result.stdout) == (0, "1\n")
    for trace in result.traces():
        check(trace.path)
