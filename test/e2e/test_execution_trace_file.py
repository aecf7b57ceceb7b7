"""Execution traces where torch.profiler.ExecutionTraceObserver is no judge: what its files have in another way
(docs/differences.md), operators that are run again by what a trace says, and how a file begins, ends and is asked for."""
import json
import re
import subprocess
import tempfile
import time

import pytest

from conftest import COMMAND
from execution_traces import ExecutionTrace, elements, named, needs_schemas, older_form

pytestmark = needs_schemas


# What differs, each as often as the program does it. docs/differences.md has the list.
DIFFERENCES = """
import os, threading, torch
from torch.profiler import ExecutionTraceObserver, record_function
observer = ExecutionTraceObserver().register_callback(os.environ["OBSERVED"])
observer.start()
x = torch.ones(3)
for number in range(2):
    with record_function(f'a "quoted"\\n{number}'):
        x + 1
for number in range(3):
    with record_function(f"argument {number}", f"é€{number}"):
        x + 1
for number in range(4):
    try:
        torch.mm(x, x)
    except RuntimeError:
        pass
    torch.neg(x)
still_open = record_function("still open")
still_open.__enter__()
torch.sqrt(x)
observer.stop()
observer.unregister_callback()
handle = torch.ops.profiler._record_function_enter_new("across threads", None)
torch.sin(x)
def end():
    torch.ops.profiler._record_function_exit(handle)
    torch.cos(x)
other = threading.Thread(target=end)
other.start()
other.join()
for layout in (torch.sparse_csr, torch.sparse_csc):
    torch.eye(3).to_sparse(layout=layout).clone()
"""


@pytest.fixture(scope="module", params=["interpose", "callback"])
def differences(request, run_once):
    observed = run_once.root / f"differences.{request.param}.json"
    result = run_once(DIFFERENCES, OBSERVED=observed, TPROF_SCHEDULE="always", TPROF_HOOK=request.param, TZ="Asia/Tokyo",
                      TPROF_ON_TRACE_READY="execution_trace", TPROF_USE_GZIP=0)
    assert result.status == 0, result.stderr
    (file,) = result.files(".et.json")
    return observed.read_text(), ExecutionTrace(file)


def test_names_are_escaped(differences):
    torch, ours = differences
    with pytest.raises(json.JSONDecodeError):
        json.loads(torch)
    assert torch.count('"name": "a "quoted"\n') == 2
    assert [node["name"] for node in named(ours, "a .*")] == [f'a "quoted"\n{number}' for number in range(2)]


@older_form
def test_texts_are_utf8(differences):
    torch, ours = differences
    assert torch.count("\\uffffffc3\\uffffffa9\\uffffffe2\\uffffff82\\uffffffac") == 3
    assert [node["inputs"]["values"] for node in named(ours, "argument .")] == [[f"é€{number}"] for number in range(3)]


@older_form
def test_what_threw_has_a_node(differences):
    """And what follows it has its thread for a parent; torch's parent is what threw, which has no node."""
    torch, ours = differences
    assert torch.count('"name": "aten::mm"') == 0
    threw, after = named(ours, "aten::mm"), named(ours, "aten::neg")
    assert len(threw) == len(after) == 4
    assert all(node["outputs"]["values"] == [] and len(node["inputs"]["values"]) == 2 for node in threw)
    thread = ours.special("thread")[0]["id"]
    assert {node["ctrl_deps"] for node in threw + after} == {thread}
    nodes = set(re.findall(r'"id": (\d+)', torch))
    parents = re.findall(r'"name": "aten::neg", "ctrl_deps": (\d+)', torch)
    assert len(parents) == 4 and not nodes & set(parents)


def test_what_is_open_at_the_end_has_a_node(differences):
    torch, ours = differences
    assert torch.count('"name": "still open"') == 0
    (still_open,), (within,) = named(ours, "still open"), named(ours, "aten::sqrt")
    assert within["ctrl_deps"] == still_open["id"] and still_open["outputs"]["values"] == []


def test_what_ends_on_another_thread(differences):
    _, ours = differences
    (across,), (within,), (after,) = (named(ours, name) for name in ("across threads", "aten::sin", "aten::cos"))
    threads = {node["attributes"]["tid"]: node["id"] for node in ours.special("thread")}
    assert len(threads) == 2
    assert across["ctrl_deps"] == threads[across["attributes"]["tid"]]
    assert within["ctrl_deps"] == across["id"]
    assert after["ctrl_deps"] == threads[after["attributes"]["tid"]] and after["attributes"]["tid"] != across["attributes"]["tid"]


def test_compressed_sparse_tensors(differences):
    _, ours = differences
    clones = [node for node in named(ours, "aten::clone") if node["inputs"]["shapes"][0] == [3, 3]
              and node["inputs"]["values"][0][1:] == [0, 0, 0, 0, ""]]
    assert len(clones) == 2


def test_the_time_is_utc(differences):
    torch, ours = differences

    def seconds(text):
        return time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S"))
    local = seconds(re.search(r'"time": "([^"]*)"', torch)[1])
    assert 8.9 < (local - seconds(ours.json["time"])) / 3600 < 9.1


DTYPES = {"float": "float32", "double": "float64", "long int": "int64", "int": "int32", "bool": "bool", "c10::Half": "float16",
          "c10::BFloat16": "bfloat16", "unsigned char": "uint8"}


class Replay:
    """Runs operators anew, by what a trace says alone: schemas, inputs, and one memory for each id of a storage."""

    def __init__(self, torch):
        self.torch, self.storages, self.given = torch, {}, set()

    def tensor(self, value, kind, shape, strides):
        dtype = getattr(self.torch, DTYPES[kind[len("Tensor("):-1]])
        _, storage, offset, elements_in, item, device = value
        assert (item, device) == (dtype.itemsize, "cpu")
        last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides)) if elements_in else 0
        if elements_in:  # what has none may get its memory from the operator
            self.given.add(storage)
        memory = self.storages.setdefault(storage, self.torch.zeros(0, dtype=self.torch.uint8).untyped_storage())
        if memory.nbytes() < (last + 1) * item:
            memory.resize_((last + 1) * item)
            self.torch.empty(0, dtype=self.torch.uint8).set_(memory, 0, [memory.nbytes()], [1]).zero_()
        return self.torch.empty(0, dtype=dtype).set_(memory, offset, shape, strides)

    def value(self, value, kind, shape, strides):
        if kind.startswith("GenericList["):
            return list(map(self.value, value, elements(kind), shape, strides))
        if kind.startswith("Tensor(") and "nullptr" not in kind:
            return self.tensor(value, kind, shape, strides)
        makes = {"Double": float, "Device": self.torch.device, "Int": int, "Bool": bool, "String": str}
        return makes.get(kind, lambda _: None)(value)

    def arguments(self, node):
        return [self.value(*each) for each in zip(*(node["inputs"][array] for array in ("values", "types", "shapes", "strides")))]

    def check(self, node):
        """The same sizes, strides and types come out, and what shares memory with an input does so again."""
        names, overload = re.match(r"([\w:]+)\.?(\w*)\(", node["attributes"]["op_schema"]).groups()
        space, name = names.split("::")
        operator = getattr(getattr(getattr(self.torch.ops, space), name), overload or "default")
        self.given.clear()
        given = self.arguments(node)
        schema = operator._schema.arguments
        assert len(given) == len(schema), node
        plain = [value for value, argument in zip(given, schema) if not argument.kwarg_only]
        named = {argument.name: value for value, argument in zip(given, schema) if argument.kwarg_only}
        results = operator(*plain, **named)
        results = [] if results is None else list(results) if isinstance(results, tuple) else [results]
        assert len(results) == len(node["outputs"]["values"]), node
        for result, *told in zip(results, *(node["outputs"][array] for array in ("values", "types", "shapes", "strides"))):
            self.compare(node, result, *told)

    def compare(self, node, result, value, kind, shape, strides):
        if isinstance(result, list):
            for each in zip(result, value, elements(kind), shape, strides):
                self.compare(node, *each)
        elif "nullptr" in kind:
            assert result is None, node
        elif kind.startswith("Tensor("):
            assert (list(result.shape), list(result.stride()), result.storage_offset(), result.numel()) == \
                (shape, strides, value[2], value[3]), node
            where = result.untyped_storage().data_ptr()
            shared = {storage for storage in self.given if where and self.storages[storage].data_ptr() == where}
            assert shared == {value[1]} & self.given, node
        else:
            assert type(result).__name__.lower() in (kind.lower(), "float" if kind == "Double" else ""), node


@pytest.mark.parametrize("name", ["mlp_adam", "conv_batchnorm", "transformer"])
def test_operators_can_be_run_again(run, name):
    torch = pytest.importorskip("torch")
    result = run(name, TPROF_SCHEDULE="wait=1,warmup=1,active=1,repeat=1", TPROF_ON_TRACE_READY="execution_trace")
    replay, done = Replay(torch), 0
    with torch.no_grad():
        for node in ExecutionTrace(*result.files(".et.json.gz")).operators:
            if node["attributes"]["op_schema"].startswith("aten::"):
                replay.check(node)
                done += 1
    assert done > 50


THREADS = """
import os, signal, threading, time, torch
from torch.profiler import record_function
def work():
    end = time.monotonic() + 2
    while time.monotonic() < end:
        with record_function("outer"):
            for _ in range(20):
                with record_function("inner"):
                    x = torch.ones(4, requires_grad=True)
                    (x * x).sum().backward()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
work()
for thread in threads:
    thread.join()
"""


def check_closed(trace):
    """Each parent is there, and has a smaller id; each thread has one node."""
    assert len(trace.by_id) == len(trace.nodes)
    for node in trace.nodes:
        above = trace.by_id[node["ctrl_deps"]]
        assert above["id"] < node["id"] or node["id"] == 1
        assert above["id"] == 1 or above["attributes"]["tid"] == node["attributes"]["tid"]
        assert node["attributes"]["fw_parent"] in trace.by_id or node["attributes"]["fw_tid"] == 0
    threads = [node["attributes"]["tid"] for node in trace.special("thread")]
    assert sorted(threads) == sorted({node["attributes"]["tid"] for node in trace.operators})


def test_the_graph_is_closed(run):
    """Windows that begin and end inside nested operators of four threads."""
    result = run(THREADS, TPROF_STEP="every:100ms", TPROF_SCHEDULE="wait=1,warmup=1,active=1,repeat=0",
                 TPROF_ON_TRACE_READY="execution_trace")
    assert (result.status, result.lines) == (0, []), result.stderr
    traces = [ExecutionTrace(file) for file in result.files(".et.json.gz")]
    assert len(traces) > 2
    for trace in traces:
        check_closed(trace)
    assert sum(len(trace.special("thread")) == 4 for trace in traces) > 1


ENDINGS = {
    "returns": ("", 0),
    "raises": ("raise SystemExit(3)", 3),
    "exits": ("os._exit(4)", 4),
    "sigterm": ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -15),
    "forks": ("os.fork() or os._exit(5)", 0),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_end_in_the_middle(run, ending):
    """Of a range, while there are operators of which nothing is written yet."""
    statement, status = ENDINGS[ending]
    result = run("import os, signal, time, torch\nfrom torch.profiler import record_function\n"
                 "for i in range(50): torch.ones(3) + i\n"
                 f"with record_function('middle'):\n    torch.ones(3)\n    {statement or 'pass'}\n",
                 TPROF_SCHEDULE="always", TPROF_ON_TRACE_READY="execution_trace")
    assert result.status == status, result.stderr
    (file,) = result.files(".et.json.gz")
    trace = ExecutionTrace(file)
    check_closed(trace)
    (middle,) = named(trace, "middle")
    assert [node["name"] for node in trace.operators if node["ctrl_deps"] == middle["id"]] == ["aten::ones"]


def test_a_process_that_is_killed(run, tmp_path):
    """`tprof recover` writes the same nodes."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="tprof-test-") as spools:
        settings = dict(TPROF_SCHEDULE="always", TPROF_ON_TRACE_READY="execution_trace", TPROF_SPOOL_DIR=spools)
        whole = run(PROGRAM, **settings)
        killed = run(PROGRAM + "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n", **settings)
        assert killed.status == -9 and killed.files(".et.json.gz") == []
        subprocess.run([COMMAND, "recover", spools], check=True, capture_output=True)
    names = [[node["name"] for node in ExecutionTrace(*result.files(".et.json.gz")).operators] for result in (whole, killed)]
    assert names[0] == names[1] and len(names[0]) > 100


PROGRAM = """
import torch
model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
print(model.weight.sum().item())
"""


@pytest.mark.parametrize("settings", [dict(TPROF_ON_TRACE_READY="execution_trace"),
                                      dict(TPROF_ON_TRACE_READY="none", ENABLE_PYTORCH_EXECUTION_TRACE=1)],
                         ids=["output", "variable"])
def test_one_a_cycle(run, settings):
    """Of the same steps as the traces beside it, and the program computes what it does without."""
    bare = run.bare("import torch; torch.manual_seed(1)" + PROGRAM)
    result = run("import torch; torch.manual_seed(1)" + PROGRAM, TPROF_SCHEDULE="wait=1,warmup=1,active=1,repeat=2",
                 TPROF_STEP="optimizer", **settings)
    assert (result.status, result.stdout) == (bare.status, bare.stdout)
    assert result.lines == []
    traces = [ExecutionTrace(file) for file in result.files(".et.json.gz")]
    assert len(traces) == 2 and result.traces() == []
    names = [[node["name"] for node in trace.operators] for trace in traces]
    assert names[0] == names[1] and "aten::addmm" in names[0] and "Optimizer.step#SGD.step" in names[0]
    starts = [trace.json["start_ts"] for trace in traces]
    assert starts[0] <= traces[0].json["finish_ts"] <= starts[1]


@pytest.mark.parametrize("value", ["0", "yes"])
def test_only_1_asks_for_one(run, value):
    result = run(PROGRAM, ENABLE_PYTORCH_EXECUTION_TRACE=value, TPROF_ON_TRACE_READY="chrome")
    assert result.lines == [] and result.files(".et.json.gz") == []
    assert all("Input Dims" not in e.args for e in result.trace.operators())


def test_the_trace_beside_it_shows_no_inputs(run):
    """Which are not what was asked for."""
    result = run(PROGRAM, TPROF_ON_TRACE_READY="chrome,execution_trace")
    assert result.files(".et.json.gz")
    assert all("Input Dims" not in e.args for e in result.trace.operators())


FORKS = """
import os, torch
torch.ones(3).add(1).mul(2)
pid = os.fork()
if pid == 0:
    for name in "first", "second":
        with torch.autograd.profiler.record_function(name):
            pass
    torch.ones(3).add(1).mul(2)
    raise SystemExit
os.waitpid(pid, 0)
"""


@pytest.mark.parametrize("way", ["interpose", "callback"])
def test_a_forked_child_has_names_of_its_own(run, way):
    result = run(FORKS, TPROF_SCHEDULE="always", TPROF_ON_TRACE_READY="execution_trace", TPROF_CHILDREN="all", TPROF_HOOK=way)
    traces = [ExecutionTrace(file) for file in result.files(".et.json.gz")]
    assert len(traces) == 2
    for trace in traces:
        names = [node["name"] for node in trace.operators if node["name"].startswith("aten::")]
        assert {"aten::ones", "aten::add", "aten::mul"} <= set(names)
        assert [re.match(r"[^.(]*", node["attributes"]["op_schema"])[0] for node in trace.operators
                if node["name"].startswith("aten::")] == names


def test_it_asks_for_little_memory(run):
    program = "import resource, torch\ntorch.ones(3) + 1\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    with_it, without = run(program, TPROF_SCHEDULE="always", TPROF_ON_TRACE_READY="execution_trace"), run.bare(program)
    assert int(with_it.stdout) - int(without.stdout) < 64 << 10  # KiB
