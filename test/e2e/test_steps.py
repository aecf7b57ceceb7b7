"""Real programs, and where their steps end. Each tells its own edges: the time right after what should end a step.

The rule is described in docs/steps.md; test/unit/check_steps.c compares many more sequences of marks."""
import re

import pytest

from conftest import check
from traces import STEP, Trace

HEAD = """
import time, torch
from torch import nn
from torch.utils.data import DataLoader
torch.manual_seed(0); torch.set_num_threads(1)
def edge(kind="training"):  # a step ends with its optimizer, or just before the next batch is asked for
    if kind == "batch":
        time.sleep(0.012)
    print("edge", kind, time.time_ns())
    if kind == "training":
        time.sleep(0.012)  # no other edge is near
def model():
    return nn.Linear(4, 1)
def loss(of, x):
    return of(x).square().mean()
def data(count, **options):
    return DataLoader(torch.randn(2 * count, 4), batch_size=2, **options)
net = model()
sgd = torch.optim.SGD(net.parameters(), lr=0.01)
"""

# Loaders say their end by one more look for a batch: with it an evaluation has one step more than it has batches.
PLAIN = """
for epoch in range(2):
    for x in data(5):
        sgd.zero_grad(); loss(net, x).backward(); sgd.step(); edge()
"""
ACCUMULATION = """
for i, x in enumerate(data(16)):
    loss(net, x).backward()
    if i % 4 == 3:
        sgd.step(); sgd.zero_grad(); edge()
"""
SHORT_GROUP = """
for epoch in range(3):
    for i, x in enumerate(data(10)):
        loss(net, x).backward()
        if i % 4 == 3:
            sgd.step(); sgd.zero_grad(); edge()
"""
GAN = """
critic = model()
first = torch.optim.SGD(critic.parameters(), lr=0.01)
second = torch.optim.{}(net.parameters(), lr=0.01)
for x in data(8):
    first.zero_grad(); (loss(critic, x) - loss(critic, net(x).expand(2, 4))).backward(); first.step()
    second.zero_grad(); loss(critic, net(x).expand(2, 4)).backward(); second.step(); edge()
"""
N_CRITIC = """
critic = model()
often, seldom = torch.optim.RMSprop(critic.parameters()), torch.optim.Adam(net.parameters())
for x in data(6):
    for _ in range(5):
        often.zero_grad(); loss(critic, x).backward(); often.step()
    seldom.zero_grad(); loss(net, x).backward(); seldom.step(); edge()
"""
TWO_OF_ONE_CLASS = """
other = model()
a, b = torch.optim.Adam(net.parameters()), torch.optim.Adam(other.parameters())
for x in data(8):
    a.zero_grad(); b.zero_grad(); (loss(net, x) + loss(other, x)).backward(); a.step(); b.step(); edge()
"""
LBFGS = """
lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=4)
for x in data(6):
    def closure():
        lbfgs.zero_grad(); value = loss(net, x); value.backward(); return value
    lbfgs.step(closure); edge()
"""
NO_LOADER = """
for _ in range(8):
    sgd.zero_grad(); loss(net, torch.randn(2, 4)).backward(); sgd.step(); edge()
"""
TWO_OF_ONE_CLASS_NO_LOADER = """
other = model()
a, b = torch.optim.Adam(net.parameters()), torch.optim.Adam(other.parameters())
def half(net, optimizer, x):
    optimizer.zero_grad(); loss(net, x).backward()
for _ in range(8):
    half(net, a, torch.randn(2, 4)); a.step()
    half(other, b, torch.randn(2, 4)); b.step(); edge()
"""
FEW_BATCHES = """
with torch.inference_mode():
    for x in data(4):
        net(x); edge("batch")
"""
EVALUATION = """
for epoch in range(2):
    for x in data(6):
        sgd.zero_grad(); loss(net, x).backward(); sgd.step(); edge()
    with torch.no_grad():
        for x in data(8):
            loss(net, x); edge("batch")
"""
INFERENCE = """
with torch.inference_mode():
    for x in data(12, num_workers={}):
        net(x); edge("batch")
"""
ZERO_GRAD_ALONE = """
for x in data(24):
    sgd.zero_grad(); loss(net, x).backward(); edge("batch")
"""
RANGE = """
for x in data(7):
    with torch.profiler.record_function("iteration"):
        sgd.zero_grad(); loss(net, x).backward(); sgd.step()
    edge()
"""
OWN_PROFILER = """
from torch.profiler import profile, schedule, ProfilerActivity
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as p:
    for _ in range(6):
        sgd.zero_grad(); loss(net, torch.randn(2, 4)).backward(); sgd.step()
        print("edge training", time.time_ns()); p.step()  # which may go on for long, where it starts the profiler
        time.sleep(0.012)
edge()  # the profiler's stop ends the range of a step that was just begun
"""

# name, program, TPROF_STEP
ROWS = [
    ("plain", PLAIN, "auto"),
    ("plain, by its optimizer", PLAIN, "optimizer"),
    ("accumulation", ACCUMULATION, "auto"),
    ("accumulation, a short last group", SHORT_GROUP, "auto"),
    ("GAN, two classes", GAN.format("Adam"), "auto"),
    ("GAN, one class", GAN.format("SGD"), "auto"),
    ("n-critic", N_CRITIC, "auto"),
    ("two optimizers of one class", TWO_OF_ONE_CLASS, "auto"),
    ("two optimizers of one class, no DataLoader", TWO_OF_ONE_CLASS_NO_LOADER, "auto"),
    ("LBFGS", LBFGS, "auto"),
    ("no DataLoader", NO_LOADER, "auto"),
    ("inference", INFERENCE.format(0), "auto"),
    ("inference, four batches", FEW_BATCHES, "auto"),
    ("inference, two workers", INFERENCE.format(2), "auto"),
    ("inference, asked for", INFERENCE.format(0), "dataloader"),
    ("zero_grad without step", ZERO_GRAD_ALONE, "auto"),
    ("a named range", RANGE, "range:iteration"),
    ("its own profiler", OWN_PROFILER, "auto"),
]
NEAR_NS = 10_000_000  # less than the pause beside each edge: no other edge is so near


def told(result):
    return [(m[1], int(m[2])) for m in re.finditer(r"^edge (\w+) (\d+)$", result.stdout, re.M)]


def found(result):
    return [(s["kind"], s["start_ns"] + round(s["duration_us"] * 1000)) for s in result.summary["steps"]]


def assert_same(steps, edges):
    assert [kind for kind, _ in steps] == [kind for kind, _ in edges]
    for (_, end), (_, time) in zip(steps, edges):
        assert abs(end - time) < NEAR_NS


@pytest.mark.parametrize("program, rule", [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_edges(run, program, rule):
    result = run(HEAD + program, TPROF_STEP=rule, TPROF_SCHEDULE="always", TPROF_ON_TRACE_READY="tensorboard")
    assert result.status == 0, result.stderr
    edges = told(result)
    assert len(edges) >= 4
    assert_same(found(result), edges)
    numbers = [s["number"] for s in result.summary["steps"]]
    assert numbers == list(range(len(edges)))
    # In the trace: a slice for each step, and for what came after the last edge; or the program's own ranges.
    trace = result.trace
    slices = trace.steps() or sorted((e for e in trace.events if STEP.match(e.name)), key=lambda e: e.start)
    assert [int(STEP.match(e.name)[1]) for e in slices][:len(numbers)] == numbers
    for slice, (_, time) in zip(slices, edges):
        assert abs(slice.end + trace.base - time) < NEAR_NS


def test_evaluation_between_training(run):
    """Training steps end with the optimizer; the batches of an evaluation are steps of their own kind."""
    result = run(HEAD + EVALUATION, TPROF_SCHEDULE="always", TPROF_ON_TRACE_READY="none")
    edges, steps = told(result), found(result)
    assert_same([s for s in steps if s[0] == "training"], [e for e in edges if e[0] == "training"])
    batches = [e for e in edges if e[0] == "batch"]
    ends = [end for kind, end in steps if kind == "batch"]
    for _, time in batches:
        assert any(abs(end - time) < NEAR_NS for end in ends)
    assert len(batches) <= len(ends) <= len(batches) + 4  # where one loader ends and another begins


def test_every(run):
    program = "import time, torch\na = torch.ones(4)\nuntil = time.monotonic() + 1.2\nwhile time.monotonic() < until: a + a"
    result = run(program, TPROF_STEP="every:100ms", TPROF_SCHEDULE="always")
    steps = result.summary["steps"]
    assert len(steps) >= 11
    assert {s["kind"] for s in steps} == {"time"}
    middle = sorted(s["duration_us"] for s in steps)[len(steps) // 2]
    assert 90_000 < middle < 130_000
    assert result.trace.step_numbers()[:len(steps)] == [s["number"] for s in steps]


def test_no_mark_at_all(run):
    """The whole run is one step, and its trace is complete."""
    result = run("import torch\na = torch.ones(4)\nfor _ in range(50): a + a")
    (step,) = result.summary["steps"]
    assert step["kind"] == "whole"
    assert result.trace.step_numbers() == [0]
    assert result.trace.count("aten::add") == 50


def test_own_profiler_keeps_its_steps(run, tmp_path):
    """What the program's own profiler writes has its own ProfilerStep ranges, as without us."""
    program = HEAD + OWN_PROFILER.replace("as p:", "as p:\n    p.on_trace_ready = lambda p: p.export_chrome_trace('own.json')", 1)
    run(program, cwd=tmp_path)
    names = [e.name for e in Trace(tmp_path / "own.json").events if e.name.startswith("ProfilerStep")]
    assert sorted(names) == ["ProfilerStep#2", "ProfilerStep#3"]


def test_places_are_read_while_other_threads_run(run):
    """Each of four threads steps its own optimizer deep in its own stack, the others run Python meanwhile."""
    program = HEAD + """
import gc, sys, threading
def deep(n, f):
    return f() if n == 0 else deep(n - 1, f)
def train():
    own = model(); a, b = torch.optim.Adam(own.parameters()), torch.optim.Adam(own.parameters())
    def iteration():
        loss(own, torch.randn(2, 4)).backward(); a.step(); b.step()
    for i in range(200):
        deep(i % 90, iteration); gc.collect(0); sys._current_frames()
threads = [threading.Thread(target=train) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print("done")
"""
    result = run(program, TPROF_ON_TRACE_READY="none")
    assert (result.status, result.stdout) == (0, "done\n"), result.stderr
    training = [s for s in result.summary["steps"] if s["kind"] == "training"]
    assert 150 <= len(training) <= 800  # one edge an iteration; those of threads that do not lead are left out


def test_a_program_with_several_profilers_of_its_own(run):
    """Each numbers its steps from 0: ranges of the program, whatever their names."""
    result = run("""
import torch
from torch.profiler import profile, schedule
for _ in range(2):
    with profile(schedule=schedule(wait=1, warmup=1, active=2)) as profiler:
        for _ in range(6):
            torch.ones(4)
            profiler.step()
""", TPROF_SCHEDULE="always")
    check(result.trace.path)
    assert result.trace.count("ProfilerStep#0") == 2
