"""Execution traces beside torch.profiler.ExecutionTraceObserver in the same run, node by node.

The observer watches the middle third of a program, tprof all of it. What differs stands in docs/differences.md, and in
test_execution_trace_file.py."""
import pathlib
import re
import subprocess

import pytest

from conftest import BUILD, LIBRARY, VERSION
from conftest import PROGRAMS as FOLDER
from conftest import have_compiler, torch_cxx_flags
from execution_traces import ARRAYS, BY_DATA, ExecutionTrace, compare_values, named, needs_schemas, older_form
from test_same_run import PROGRAMS

pytestmark = needs_schemas
KEEP = BUILD / "test/doubles/libkeep.so"


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
    if VERSION < (2, 13):
        pytest.skip("PyTorch before 2.13 says other things of communication")
    library = tmp_path_factory.mktemp("communication") / "libcommunication.so"
    subprocess.run([have_compiler(), *torch_cxx_flags(), "-O0", "-shared", "-fPIC",
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
