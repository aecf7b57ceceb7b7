"""When the buffer or the memory for writing is too small: what is let go is counted to the operator, and what is kept is the newest."""
import re

from conftest import check

TAIL = """
import torch
weight = torch.ones(8, 8, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1e-3)
def step():
    optimizer.zero_grad()
    (weight @ weight).sum().backward()
    optimizer.step()
for _ in range(4):
    step()
x = torch.ones(4)
for _ in range(120000):
    x + 1
step()
print("done")
"""

NAMES = """
import torch
enter, leave = torch.ops.profiler._record_function_enter_new, torch.ops.profiler._record_function_exit._RecordFunction
for i in range(40000):
    leave(enter(f"name {i}", None))
for i in range(40000):
    leave(enter(f"long {i}" + "e" * (i % 3000), None))
open_ones = [enter(f"open {i}", None) for i in range(3000)]
for one in open_ones:
    leave(one)
print("done")
"""


def test_a_step_larger_than_the_buffer_leaves_its_newest_part(run):
    result = run(TAIL, TPROF_SCHEDULE="always", TPROF_BUFFER_MB=8)
    assert (result.status, result.stdout) == (0, "done\n")
    check(result.trace.path)
    (cycle,) = result.summary["cycles"]
    assert cycle["lost"] > 0 and result.trace.count("aten::add") > 10000
    assert result.trace.count("Optimizer.step#SGD.step") == 1  # the newest


def test_no_memory_to_write_all_of_it(run):
    result = run(NAMES, TPROF_SCHEDULE="always", TPROF_BUFFER_MB=8)
    whole = run(NAMES, TPROF_SCHEDULE="always").summary["cycles"][0]
    assert (result.status, result.stdout) == (0, "done\n")
    (cycle,) = result.summary["cycles"]
    assert whole["lost"] == 0 and cycle["kept"] + cycle["lost"] == whole["kept"]
    (line,) = [line for line in result.stderr.splitlines() if "is not complete" in line]
    said = "tprof: cycle 0 is not complete: there was no memory to write all of it (TPROF_BUFFER_MB); "
    assert re.fullmatch(re.escape(said) + r"\d+ of \d+ events are written", line)
    assert cycle["partial"] and cycle["why"] == "there was no memory to write all of it (TPROF_BUFFER_MB)"
    check(result.trace.path)
    assert result.trace.told["partial"] and result.trace.told["lost"] == cycle["lost"]


def test_keys_of_the_trace_itself_are_not_the_users(run):
    result = run("import torch\ntorch.ones(1)\n", TPROF_METADATA="traceEvents=1,mine=2", TPROF_METADATA_JSON='{"tprof": {}}')
    assert [line for line in result.lines if "METADATA" in line] == [
        'tprof: TPROF_METADATA: "traceEvents" is a key of every trace, and is left out; any other is taken',
        'tprof: TPROF_METADATA_JSON: "tprof" is a key of every trace, and is left out; any other is taken']
    check(result.trace.path)
    assert result.trace.json["mine"] == "2"
