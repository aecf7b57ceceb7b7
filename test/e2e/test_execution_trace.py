"""Execution traces beside torch.profiler.ExecutionTraceObserver in the same run, node by node.

The observer watches the middle third of a program, tprof all of it. Nodes are matched by their record function id. Ids of
tensors and storages are one another's by a renaming: one-to-one where no address is used twice (doubles/keep.c); else torch
gives an address that is used again the old id, and ours have one of torch's each. Up to 2.9 torch knows a storage by the
address of another object than its data. What differs stands in docs/differences.md."""
import gzip
import json
import pathlib
import re
import subprocess
import tempfile
import time

import pytest

from conftest import BUILD, COMMAND, LIBRARY, VERSION
from conftest import PROGRAMS as FOLDER
from conftest import have_compiler
from test_same_run import PROGRAMS
from traces import unique

ARRAYS = ["values", "shapes", "types", "strides"]
SPECIAL = "[pytorch|profiler|execution_trace|"
BY_DATA = VERSION >= (2, 10)
pytestmark = pytest.mark.skipif(() < VERSION < (2, 6), reason="this PyTorch does not tell its operators' schemas")
older_form = pytest.mark.skipif(() < VERSION < (2, 9), reason="this PyTorch's observer writes an older form")
KEEP = BUILD / "test/doubles/libkeep.so"


class ExecutionTrace:
    def __init__(self, path):
        self.text = gzip.open(path, "rt").read() if str(path).endswith(".gz") else open(path).read()
        self.json = json.loads(self.text, parse_float=str, object_pairs_hook=unique)
        self.nodes = self.json["nodes"]
        self.by_id = {node["id"]: node for node in self.nodes}
        for node in self.nodes:
            node["attributes"] = {attr["name"]: attr["value"] for attr in node["attrs"]}
        self.operators = [node for node in self.nodes if not node["name"].startswith(SPECIAL)]
        self.by_record = {self.record(node): node for node in self.operators}
        assert len(self.by_record) == len(self.operators) and 0 not in self.by_record

    @staticmethod
    def record(node):
        return node["attributes"]["rf_id"]

    def special(self, what):
        return [node for node in self.nodes if node["name"] == f"{SPECIAL}{what}]"]


class Renaming:
    """torch's ids and ours: one to one, unless an address may have been used again."""

    def __init__(self, one_to_one=False):
        self.one_to_one, self.to, self.back = one_to_one, {}, {}

    def same(self, torch, ours, what):
        return self.back.setdefault(ours, (what, torch)) == (what, torch) and \
            (not self.one_to_one or self.to.setdefault((what, torch), ours) == ours)

    def same_values(self, torch, ours, kind):
        """Values of one type, as its text tells it."""
        if kind.startswith("Tensor("):
            names = [(torch[0], ours[0], "tensor")] + ([(torch[1], ours[1], "storage")] if torch[1] and BY_DATA else [])
            return torch[2:] == ours[2:] and bool(torch[1]) == bool(ours[1]) and all(self.same(*pair) for pair in names)
        if kind.startswith(("GenericList[", "Tuple[")):
            kinds = elements(kind)
            return len(torch) == len(ours) == len(kinds) and all(map(self.same_values, torch, ours, kinds))
        return torch == ours


def elements(kind):
    """The types in "GenericList[Int,GenericList[Int,Int]]"."""
    inside, depth, found = kind[kind.index("[") + 1:-1], 0, [""]
    for c in inside:
        depth += (c in "[(<") - (c in "])>")
        if c == "," and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return found if inside else []


def observed_twice(run, name, way, **settings):
    observed = run.root / f"{name}.{way}.{len(settings)}.et.json"
    result = run(name, WINDOW_EXECUTION_TRACE=observed, TPROF_SCHEDULE="always", TPROF_HOOK=way,
                 ENABLE_PYTORCH_EXECUTION_TRACE=1, **settings)
    assert result.status == 0, result.stderr
    assert result.lines == []
    (file,) = result.files(".et.json.gz")
    return ExecutionTrace(observed), ExecutionTrace(file), result


@pytest.fixture(scope="module", params=[(name, way) for name in PROGRAMS for way in ("interpose", "callback")],
                ids=lambda param: "-".join(param))
def pair(request, run_once):
    torch, ours, result = observed_twice(run_once, *request.param, TPROF_ON_TRACE_READY="tensorboard", TPROF_RECORD_SHAPES=1)
    return torch, ours, result.trace


def matched(torch, ours):
    assert len(torch.operators) > 100
    return matched_any(torch, ours)


def matched_any(torch, ours):
    assert [node["name"] for record, node in torch.by_record.items() if record not in ours.by_record] == []
    return [(node, ours.by_record[record]) for record, node in torch.by_record.items()]


@older_form
def test_same_form(pair):
    """Keys and their order, of the file and of each node, the schema, and the special nodes."""
    torch, ours, _ = pair
    assert len(ours.by_id) == len(ours.nodes)
    assert list(torch.json) == list(ours.json)
    assert torch.json["schema"] == ours.json["schema"]
    assert torch.json["pid"] == ours.json["pid"]

    def form(trace):
        return {(*node, *node["inputs"], *node["outputs"], *((a["name"], a["type"]) for a in node["attrs"]))
                for node in trace.nodes}
    assert len(form(torch)) == 1
    assert form(ours) == form(torch)
    for what in ("process", "thread"):
        for node in ours.special(what):
            assert {k: v for k, v in node["attributes"].items() if k != "tid"} == \
                {k: v for k, v in torch.special(what)[0]["attributes"].items() if k != "tid"}
            assert (node["ctrl_deps"], node["inputs"], node["outputs"]) == (1, torch.special(what)[0]["inputs"],
                                                                            torch.special(what)[0]["outputs"])
    assert [node["id"] for node in ours.special("process")] == [1] and ours.nodes[-1]["id"] == 1
    threads = [node["attributes"]["tid"] for node in ours.special("thread")]
    assert len(threads) == len(set(threads))
    assert {node["attributes"]["tid"] for node in torch.special("thread")} <= set(threads)


@older_form
def test_same_layout(pair):
    """Character by character, but for what the values are."""
    torch, ours, _ = pair

    def layout(trace, lines):
        return [re.sub(r'"[^"]*"(?!:)|\d+', "", line) for line in trace.text.splitlines()[lines]]
    for lines in (slice(8), slice(-8, None)):
        assert layout(torch, lines) == layout(ours, lines)
    assert not ours.text.endswith("\n") and not torch.text.endswith("\n")


def test_same_names_and_attributes(pair):
    torch, ours, _ = pair
    for a, b in matched(torch, ours):
        assert a["name"] == b["name"]
        assert {k: v for k, v in a["attributes"].items() if k != "fw_parent"} == \
            {k: v for k, v in b["attributes"].items() if k != "fw_parent" and (k in a["attributes"] or VERSION >= (2, 9))}


def above(trace, node, key):
    """What a node names as its parent: a record function id, or what special node it is."""
    at = node["ctrl_deps"] if key == "ctrl_deps" else node["attributes"][key]
    if at == 0:
        return "none"
    parent = trace.by_id.get(at)
    if parent is None:
        return "missing"
    return trace.record(parent) or (parent["name"], parent["attributes"]["tid"])


def left_out(torch, ours):
    """Ours that the observer began to see and has no node of: what threw gave no outputs, and is left out; after that
    the observer's stack of the thread is one too high."""
    found = [node for record, node in ours.by_record.items()
             if min(torch.by_record) < record < max(torch.by_record) and record not in torch.by_record]
    assert [node["name"] for node in found if node["outputs"]["values"] or not node["attributes"]["op_schema"]] == []
    return found


@pytest.mark.parametrize("key", ["ctrl_deps", "fw_parent"])
def test_same_parents(pair, key):
    """Where the observer was started inside a range, it knows the thread alone."""
    torch, ours, _ = pair
    threw = {}
    for node in left_out(torch, ours):
        thread = node["attributes"]["tid"]
        threw[thread] = min(threw.get(thread, ours.record(node)), ours.record(node))
    compared = 0
    for a, b in matched(torch, ours):
        of_torch, of_ours = above(torch, a, key), above(ours, b, key)
        thread = a["attributes"]["tid" if key == "ctrl_deps" else "fw_tid"]
        assert of_ours != "missing"
        if torch.record(a) > threw.get(thread, torch.record(a)):
            continue
        if isinstance(of_ours, int) and of_ours not in torch.by_record:
            assert of_torch == "missing" or isinstance(of_torch, tuple), (a, b)
        else:
            assert of_torch == of_ours, (a, b)
            compared += 1
    assert compared > 100 or threw


def compare_values(nodes, one_to_one=False):
    """How many tensors and storages they are of."""
    renaming = Renaming(one_to_one)
    for a, b in nodes:
        for side in ("inputs", "outputs"):
            for array in ARRAYS[1:]:
                assert a[side][array] == b[side][array], (a["name"], side)
            kinds = a[side]["types"]
            assert len(a[side]["values"]) == len(b[side]["values"]) == len(kinds)
            for value in zip(a[side]["values"], b[side]["values"], kinds):
                assert renaming.same_values(*value), (a["name"], side, value)
    return len(renaming.back)


def test_same_inputs_and_outputs(pair):
    torch, ours, _ = pair
    assert compare_values(matched(torch, ours)) > 20


@pytest.mark.skipif(not KEEP.exists(), reason="make doubles has not been run")
@pytest.mark.parametrize("name", ["mlp_adam", "conv_batchnorm", "transformer", "embeddings", "custom_function", "autocast"])
def test_same_tensors(run_once, name):
    """One to one where nothing is freed: no tensor that lives gets a second id."""
    torch, ours, _ = observed_twice(run_once, name, "interpose", LD_PRELOAD=f"{LIBRARY} {KEEP}")
    assert compare_values(matched(torch, ours), one_to_one=True) > 20


ADDRESSES = """
import os, torch
from torch.profiler import ExecutionTraceObserver, record_function
observer = ExecutionTraceObserver().register_callback(os.environ["OBSERVED"])
observer.start()
a = torch.rand(100)
kept = [a + i for i in range(3)]
where = {(t.data_ptr(), id(t)) for t in kept}
for i in range(20):
    with record_function("freed at once"):
        a.mul(kept[0])
for i in range(20):
    with record_function("views"):
        a.view(10, 10)
with record_function("in place"):
    a.add_(kept[0]).mul_(kept[1])
    a.view(10, 10).t().add_(1)
with record_function("lists and tuples"):
    parts = torch.split(a, 30)
    torch.cat(parts)
    values, indices = torch.sort(a)
    parts[0].mul_(2)
with record_function("out"):
    torch.add(a, kept[0], out=kept[1])
observer.stop()
observer.unregister_callback()
"""


def inside(trace, name, operator):
    """What each of these operators gave back, inside the ranges of this name."""
    ranges = {node["id"] for node in trace.operators if node["name"] == name}
    return [node for node in trace.operators if node["ctrl_deps"] in ranges and node["name"] == operator]


@pytest.mark.skipif(not BY_DATA, reason="this PyTorch's observer knows storages by another address")
def test_addresses_that_are_used_again(run, tmp_path):
    """torch knows things by their addresses; ours are told apart where the operator says that its output is new."""
    if "address" in LIBRARY.parent.name:
        pytest.skip("a sanitizer uses no address again soon")
    result = run(ADDRESSES, OBSERVED=tmp_path / "torch.json", TPROF_SCHEDULE="always",
                 TPROF_ON_TRACE_READY="execution_trace", TPROF_USE_GZIP=0)
    assert result.status == 0, result.stderr
    torch, (ours,) = ExecutionTrace(tmp_path / "torch.json"), map(ExecutionTrace, result.files(".et.json"))
    compare_values(matched(torch, ours))

    def outputs(trace, name, operator):
        return [node["outputs"]["values"][0] for node in inside(trace, name, operator)]
    freed, views = outputs(ours, "freed at once", "aten::mul"), outputs(ours, "views", "aten::view")
    assert len(freed) == len(views) == 20
    for which in (0, 1):
        assert len({value[which] for value in freed}) == 20
        assert len({value[which] for value in outputs(torch, "freed at once", "aten::mul")}) < 20
    assert len({value[0] for value in views}) == 20
    assert len({value[0] for value in outputs(torch, "views", "aten::view")}) < 20
    (data,) = {value[1] for value in views}
    (first,) = inside(ours, "in place", "aten::add_")[:1]
    a = first["inputs"]["values"][0]
    assert a[1] == data and first["outputs"]["values"] == [a]
    (view,), (turned,), added = (inside(ours, "in place", f"aten::{name}") for name in ("view", "t", "add_"))
    assert len({value[0] for value in (a, view["outputs"]["values"][0], turned["outputs"]["values"][0])}) == 3
    assert view["outputs"]["values"][0][1] == turned["outputs"]["values"][0][1] == data
    assert added[1]["inputs"]["values"][0] == added[1]["outputs"]["values"][0] == turned["outputs"]["values"][0]
    (split,), (cat,), (sort,) = (inside(ours, "lists and tuples", f"aten::{name}") for name in ("split", "cat", "sort"))
    parts = split["outputs"]["values"][0]
    assert [part[1:3] for part in parts] == [[data, 30 * i] for i in range(4)]
    assert len({part[0] for part in parts}) == 4 and cat["inputs"]["values"][0] == parts
    assert cat["outputs"]["values"][0][1] != data
    assert [value[1] for value in sort["outputs"]["values"]].count(data) == 0
    assert len({value[0] for value in sort["outputs"]["values"]}) == 2
    (halved,) = inside(ours, "lists and tuples", "aten::mul_")
    assert halved["outputs"]["values"] == [parts[0]]
    (out,) = inside(ours, "out", "aten::add")
    assert out["outputs"]["values"] == [out["inputs"]["values"][3]]


def test_same_order(pair):
    """On each thread, in the order of their ends."""
    torch, ours, _ = pair

    def order(trace):
        threads = {}
        for node in trace.operators:
            if trace.record(node) in torch.by_record:
                threads.setdefault(node["attributes"]["tid"], []).append(trace.record(node))
        return threads
    assert order(torch) == order(ours)


def test_same_as_the_trace(pair):
    """Each node is an event of the trace beside it, by its record function id, and the other way round."""
    _, ours, trace = pair
    names = {record: node["name"] for record, node in ours.by_record.items()}
    assert {e.id: e.name for e in trace.operators()} == names
    for event in trace.operators():
        around = event.parent
        while around is not None and not around.id:
            around = around.parent  # a step's slice
        parent = ours.by_id[ours.by_record[event.id]["ctrl_deps"]]
        assert ours.record(parent) == (around.id if around else 0), event
    assert sum(e.args.get("Input Dims") is not None for e in trace.operators()) > 100


# Each kind of value: programs/inputs.py. torch's observer ends the program over compressed sparse tensors, and says of a
# fake tensor what it pretends: its device.
ROWS = [name.rstrip("_") for name in re.findall(r"^@row\ndef (\w+)\(", (FOLDER / "inputs.py").read_text(), re.M)
        if name not in ("sparse_compressed", "fake")]


@pytest.fixture(scope="module")
def rows(run_once):
    folder = run_once.root / "execution traces of rows"
    folder.mkdir()
    result = run_once("inputs", EXECUTION_TRACES=folder, ROWS=",".join(ROWS), TPROF_SCHEDULE="always",
                      TPROF_ON_TRACE_READY="execution_trace", TPROF_USE_GZIP=0)
    assert result.status == 0, result.stderr
    assert result.lines == []
    (file,) = result.files(".et.json")
    assert result.traces() == []
    return folder, ExecutionTrace(file)


@pytest.mark.parametrize("row", ROWS)
def test_row(rows, row):
    """What began before the row began with the observer of another one; where torch's raised an error it knows no parent."""
    folder, ours = rows
    torch = ExecutionTrace(folder / f"{row}.json")
    (first,) = [record for record, node in torch.by_record.items() if node["name"] == f"row {row}"]
    nodes = [(node, ours.by_record[record]) for record, node in torch.by_record.items()
             if record >= first and node["ctrl_deps"] != 0]
    if len(nodes) < 2 and () < VERSION < (2, 9):
        pytest.skip("not in this PyTorch")
    assert len(nodes) > 5
    assert compare_values(nodes) > (3 if BY_DATA else 1)
    for a, b in nodes:
        assert a["name"] == b["name"]
        assert a["attributes"]["op_schema"] == b["attributes"]["op_schema"]


@older_form
def test_what_rows_cover(rows):
    """That the rows hold what their names say."""
    kinds = {kind for node in rows[1].operators for side in ("inputs", "outputs") for kind in node[side]["types"]}
    values = [value for node in rows[1].operators for value in node["inputs"]["values"]]
    outer = {re.match(r"\w+", kind)[0] for kind in kinds}
    assert {"Tensor", "Double", "ComplexDouble", "Int", "UInt", "Bool", "Tuple", "String", "GenericList", "GenericDict",
            "Device", "Stream", "Object", "Generator", "Storage", "None"} <= outer
    assert {"inf", "-inf", "nan", "<Object>", "meta", "floor"} <= {value for value in values if isinstance(value, str)}
    assert {-2 ** 63, 2 ** 31} <= {value for value in values if isinstance(value, int)}
    assert "Tensor(nullptr (uninitialized))" in kinds
    assert max(len(value) for value in values if isinstance(value, list)) > 60


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


def named(trace, pattern):
    return [node for node in trace.operators if re.fullmatch(pattern, node["name"], re.S)]


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


@pytest.mark.parametrize("way", ["interpose", "callback"])
def test_alone_as_under_torch(run, tmp_path, way):
    """No observer but ours: as torch's of another run, but for ids."""
    under = run("embeddings", WINDOW_EXECUTION_TRACE=tmp_path / "torch.json")
    assert under.status == 0, under.stderr
    alone = run("embeddings", TPROF_SCHEDULE="always", TPROF_HOOK=way, TPROF_ON_TRACE_READY="execution_trace")
    (file,) = alone.files(".et.json.gz")
    torch, ours = ExecutionTrace(tmp_path / "torch.json"), ExecutionTrace(file)

    def shapes(node):
        kinds = node["inputs"]["types"]
        plain = [value for value, kind in zip(node["inputs"]["values"], kinds) if "Tensor" not in kind]
        return (node["name"], plain, *(node[side][array] for side in ("inputs", "outputs") for array in ARRAYS[1:]),
                node["attributes"]["op_schema"], node["attributes"]["scope"])
    theirs = [shapes(node) for node in torch.operators if node["attributes"]["tid"] == 1]
    all_of_ours = [shapes(node) for node in ours.operators if node["attributes"]["tid"] == 1]
    first = next(i for i in range(len(all_of_ours)) if all_of_ours[i:i + len(theirs)] == theirs)
    assert first > 0 and len(theirs) > 100


COMMUNICATION = """
import ctypes, os, torch
from torch.profiler import ExecutionTraceObserver
library = ctypes.CDLL(os.environ["COMMUNICATION"])
library.communicate_all()
observer = ExecutionTraceObserver().register_callback(os.environ["OBSERVED"])
observer.start()
library.communicate_all()
observer.stop()
observer.unregister_callback()
"""


@pytest.fixture(scope="module")
def communication(tmp_path_factory):
    torch = pytest.importorskip("torch")
    package = pathlib.Path(torch.__file__).parent
    if not have_compiler() or not (package / "include/ATen/ATen.h").exists():
        pytest.skip("no C++ compiler, or no headers of PyTorch")
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
        pytest.skip("PyTorch before 2.13 says other things of communication")
    library = tmp_path_factory.mktemp("communication") / "libcommunication.so"
    subprocess.run([have_compiler(), "-std=c++20", "-O0", "-shared", "-fPIC", f"-I{package}/include",
                    FOLDER / "cpp/comms.cpp", "-o", library, f"-L{package}/lib", "-ltorch_cpu", "-lc10"], check=True)
    return library


@pytest.mark.parametrize("way", ["interpose", "callback"])
def test_communication(run, tmp_path, communication, way):
    """Attributes in torch's order, with torch's types, in nodes that torch observes with us and in those that we alone do."""
    result = run(COMMUNICATION, COMMUNICATION=communication, OBSERVED=tmp_path / "torch.json", TPROF_SCHEDULE="always",
                 TPROF_HOOK=way, TPROF_ON_TRACE_READY="execution_trace")
    assert result.status == 0, result.stderr
    # torch writes the group's description byte by byte, too.
    (tmp_path / "torch.json").write_bytes((tmp_path / "torch.json").read_bytes().replace(rb"\uffffffc3\uffffffa9", "é".encode()))
    torch, ours = ExecutionTrace(tmp_path / "torch.json"), ExecutionTrace(*result.files(".et.json.gz"))
    theirs, all_of_ours = named(torch, "record_param_comms"), named(ours, "record_param_comms")
    assert len(theirs) == 4 and len(all_of_ours) == 8
    compare_values(matched_any(torch, ours))

    def attributes(node):
        return [(a["name"], a["type"], a["value"]) for a in node["attrs"]]
    for a in theirs:
        assert attributes(a) == attributes(ours.by_record[torch.record(a)])
    for a, b in zip(all_of_ours[:4], all_of_ours[4:]):
        assert attributes(a)[6:] == attributes(b)[6:]
    assert [len(node["attrs"]) for node in theirs] == [22, 22, 22, 11]


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
