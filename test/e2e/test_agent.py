"""The agent on a real PyTorch: unchanged output, sound files, the ways out. Needs an interpreter that has torch."""
import gzip
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build" / "libtprof.so"
COMMAND = ROOT / "build" / "tprof"
EXAMPLE = ROOT / "examples" / "train.py"

pytest.importorskip("torch")


def run(arguments, folder, **settings):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TPROF_")}
    environment.update(LD_PRELOAD=str(LIBRARY), TPROF_DIR=str(folder), **settings)
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120)


def traces(folder):
    return sorted(folder.glob("*.pt.trace.json.gz")) if folder.exists() else []


def check(path):
    result = subprocess.run([COMMAND, "check", path], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_training_is_unchanged_and_its_trace_is_sound(tmp_path):
    bare = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True)
    result = run([EXAMPLE], tmp_path / "out")
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout)
    (trace,) = traces(tmp_path / "out")
    check(trace)
    with gzip.open(trace) as file:
        events = json.load(file)["traceEvents"]
    steps = [e["name"] for e in events if e["name"].startswith("ProfilerStep#")]
    assert steps == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"]
    assert "Self CPU time total" in result.stderr


LOOP = "import torch\na = torch.ones(4)\nfor _ in range(1000): torch.add(a, a)\n"


@pytest.mark.parametrize("how, status", [("", 0), ("import sys; sys.exit(3)", 3), ("raise ValueError", 1),
                                         ("import os; os._exit(5)", 5),
                                         ("import os; os.kill(os.getpid(), 15)", -signal.SIGTERM),
                                         ("import os; os.kill(os.getpid(), 2)", -signal.SIGINT)])
def test_every_way_out_keeps_its_status_and_writes(tmp_path, how, status):
    result = run(["-c", LOOP + how], tmp_path, TPROF_SCHEDULE="always")
    assert result.returncode == status
    (trace,) = traces(tmp_path)
    check(trace)
    with gzip.open(trace) as file:
        events = json.load(file)["traceEvents"]
    assert sum(e["name"] == "aten::add" for e in events) == 1000


def test_cycles_are_files_of_their_own(tmp_path):
    run([EXAMPLE], tmp_path, TPROF_SCHEDULE="wait=0,warmup=1,active=2,repeat=2")
    files = traces(tmp_path)
    assert len(files) == 2
    for file in files:
        check(file)


def test_a_full_buffer_counts_what_is_lost(tmp_path):
    program = "import torch\na = torch.ones(4)\nfor _ in range(300000): torch.add(a, a)\n"
    run(["-c", program], tmp_path, TPROF_SCHEDULE="always", TPROF_BUFFER_MB="8")
    (trace,) = traces(tmp_path)
    check(trace)
    with gzip.open(trace) as file:
        told = json.load(file)["tprof"]
    assert told["lost"] > 0
    assert 300000 <= told["kept"] + told["lost"] < 300100


def test_a_bad_setting_is_one_line_and_the_program_runs(tmp_path):
    result = run(["-c", "import torch; print(1)"], tmp_path, TPROF_GZIP_LEVEL="12")
    assert (result.returncode, result.stdout) == (0, "1\n")
    assert 'TPROF_GZIP_LEVEL: "12"; accepted: 1 to 9' in result.stderr
    strict = run(["-c", "print(1)"], tmp_path, TPROF_GZIP_LEVEL="12", TPROF_STRICT="1")
    assert strict.returncode == 78


def test_a_process_without_pytorch_leaves_nothing(tmp_path):
    result = run(["-c", "print(1)"], tmp_path / "out")
    assert (result.returncode, result.stdout, result.stderr) == (0, "1\n", "")
    assert not (tmp_path / "out").exists()


def test_forked_children_follow_the_setting(tmp_path):
    program = LOOP + "import os\npid = os.fork()\nfor _ in range(10): torch.add(a, a)\nif pid: os.waitpid(pid, 0)\n"
    for setting, files in (("all", 2), ("none", 1), ("auto", 1)):
        folder = tmp_path / setting
        run(["-c", program], folder, TPROF_SCHEDULE="always", TPROF_CHILDREN=setting)
        assert len(traces(folder)) == files
