"""The two ways of observing (TPROF_HOOK), against each other and against torch.profiler in another run of the same program:
the same ranges, nesting and numbers; and the program, with its own observers, is as it is without us.

TPROF_TEST_RANDOM=N runs N random programs instead of two."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import CLEAN, COMMAND, PROGRAMS, finish, start, torch_cxx_flags
from traces import Trace

WAYS = {"interpose": "interposed", "callback": "callback"}
SINGLE = ["mlp_adam", "conv_batchnorm", "transformer", "embeddings", "custom_function", "torchscript", "throws", "autocast"]
SEEDS = range(int(os.environ.get("TPROF_TEST_RANDOM", 2)))


def recorded(run, program, *arguments, **settings):
    """A program of programs/ with arguments, under the agent."""
    settings = {"TPROF_SCHEDULE": "always", "TPROF_ON_TRACE_READY": "tensorboard", **settings}
    environment, folder = run.environment(settings)
    result = finish(start([sys.executable, str(PROGRAMS / program), *map(str, arguments)], environment), folder)
    assert result.status == 0, result.stderr
    assert result.summary["observed"] == WAYS[settings["TPROF_HOOK"]]
    return result


def bare(program, *arguments, **environment):
    result = subprocess.run([sys.executable, str(PROGRAMS / program), *map(str, arguments)], env=dict(CLEAN, **environment),
                            capture_output=True, text=True, timeout=180)
    assert result.returncode == 0, result.stderr
    return result.stdout


def nested(events):
    """(event, depth), in their order, of one thread. Our step slices are none of the program's ranges: they do not count."""
    open_ends = []
    for e in sorted(events, key=lambda e: (e.start, -e.end)):
        while open_ends and open_ends[-1] <= e.start:
            open_ends.pop()
        yield e, len(open_ends)
        open_ends.append(e.end)


def between(trace):
    """What the thread of the ranges begin and end did between them: name, category, depth, sequence number."""
    (begin,), (end,) = ([e for e in trace.operators() if e.name == name] for name in ("begin", "end"))
    events = [e for e in trace.operators() if e.thread == begin.thread and begin.end <= e.start and e.end <= end.start]
    return [(e.name, e.category, depth, e.sequence, e.forward_thread) for e, depth in nested(events)]


def first_difference(a, b):
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return i, a[max(0, i - 3):i + 3], b[max(0, i - 3):i + 3]
    return None if len(a) == len(b) else (min(len(a), len(b)), a[len(b):][:5], b[len(a):][:5])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", SINGLE)
def test_same_as_torch_alone(run, tmp_path, program, way):
    """tprof alone, and torch.profiler alone."""
    ours = recorded(run, "whole.py", program + ".py", TPROF_HOOK=way)
    printed = bare("whole.py", program + ".py", PROFILE=str(tmp_path / "torch.json"))
    a, b = between(ours.trace), between(Trace(tmp_path / "torch.json"))
    assert len(a) > 100
    assert first_difference(a, b) is None
    assert ours.stdout == printed == bare("whole.py", program + ".py")


@pytest.mark.parametrize("seed", SEEDS)
def test_random_program_is_seen_as_by_torch(run, tmp_path, seed):
    """One thread."""
    ours = recorded(run, "whole.py", "random_ranges.py", TPROF_HOOK="interpose", PLAIN=seed)
    bare("whole.py", "random_ranges.py", PROFILE=str(tmp_path / "torch.json"), PLAIN=str(seed))
    assert first_difference(between(ours.trace), between(Trace(tmp_path / "torch.json"))) is None


def by_thread(trace):
    """Per thread: the ranges, and how they nest."""
    threads = collections.defaultdict(list)
    for e in trace.operators():
        threads[e.thread].append(e)
    return sorted([(e.name, e.category, depth, e.sequence) for e, depth in nested(events)] for events in threads.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_random_program_is_seen_alike(run, seed):
    """Threads, and torch's own observers switched on and off; both ways see the same."""
    interposed, callback = (recorded(run, "random_ranges.py", seed, TPROF_HOOK=way) for way in WAYS)
    a, b = by_thread(interposed.trace), by_thread(callback.trace)
    assert len(a) == len(b) == 4
    for x, y in zip(a, b):
        assert first_difference(x, y) is None
    assert interposed.stdout == callback.stdout == bare("random_ranges.py", seed)
    ids = [e.id for e in interposed.trace.operators()]
    assert len(set(ids)) == len(ids) and min(ids) > 0


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    compiler = shutil.which("g++")
    if not compiler:
        pytest.skip("no g++")
    import torch
    folder = os.path.dirname(torch.__file__)
    library = tmp_path_factory.mktemp("extension") / "ranges.so"
    subprocess.run([compiler, "-O1", "-DNDEBUG", *torch_cxx_flags(), "-shared", "-fPIC", "-o", library, PROGRAMS / "ranges.cpp",
                    f"-L{folder}/lib", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{folder}/lib"], check=True, timeout=400)
    return library


CALLS = 25  # of make_ranges in ranges.cpp
EXTENSION = "import ctypes, sys, torch\nctypes.CDLL('{}').ranges(b'{}')\nprint(torch.ones(2).sum().item())\n"


@pytest.mark.parametrize("way", WAYS)
def test_ranges_and_observers_of_an_extension(run, tmp_path, extension, way):
    """Its observers see what they see without us, those that see a part of the calls the same part; and we see all."""
    result = run(EXTENSION.format(extension, tmp_path / "with"), TPROF_HOOK=way, TPROF_SCHEDULE="always",
                 TPROF_ON_TRACE_READY="tensorboard")
    assert result.status == 0, result.stderr
    assert run.bare(EXTENSION.format(extension, tmp_path / "without")).stdout == result.stdout
    saw = (tmp_path / "with").read_text()
    assert saw == (tmp_path / "without").read_text()
    assert len(saw.splitlines()) > 200
    events = [e for e in result.trace.operators() if re.match("ext|Ext", e.name)]
    names = ["ext::function", "ext user scope with a name that is longer than a short string", "ext keywords",
             "ext::keywords", "ext::heap" + "." * 100, "ext::derived", "ext::async", "ExtBackward0", "ext::throws",
             *(f"ext::scope{i}" for i in range(10))]
    assert collections.Counter(e.name for e in events) == dict.fromkeys(names, CALLS)
    sequences = {e.name: e.sequence for e in events}
    assert (sequences["ExtBackward0"], sequences["ext::keywords"], sequences["ext::function"]) == (42, 5, None)
    assert all(e.forward_thread for e in events if e.name == "ExtBackward0")
    assert {e.category for e in events if "scope7" in e.name or "user" in e.name} == {"user_annotation"}


def test_the_way_is_told(run):
    for way, word in [("interpose", "interposed functions"), ("callback", "callbacks: TPROF_HOOK is callback")]:
        result = run("import torch\ntorch.ones(2) + 1\n", TPROF_HOOK=way, TPROF_LOG="info")
        (line,) = [line for line in result.lines if "observes" in line]
        assert line.endswith("by " + word)
        assert result.summary["observed"] == WAYS[way]


def test_doctor_tells_the_way():
    for way, word in [("auto", "interposed functions"), ("callback", "callbacks")]:
        out = subprocess.run([COMMAND, "doctor", "--json", sys.executable, "-c", "import torch; torch.ones(2) + 1"],
                             env=dict(CLEAN, TPROF_HOOK=way), capture_output=True, text=True).stdout
        (told,) = [f["text"] for f in json.loads(out)["findings"] if f["text"].startswith("observes")]
        assert f"by {word}" in told
