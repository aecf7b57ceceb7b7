"""Single events, in events.json: torch's own EventList of the same events, and torch's prof.events() of the same run."""
import gzip
import json
import subprocess

import pytest

torch = pytest.importorskip("torch")
import torch_table  # noqa: E402
from conftest import CLEAN, COMMAND  # noqa: E402
from test_same_run import PROGRAMS as OBSERVED_TWICE  # noqa: E402
from test_tables import Maker, work  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402
from traces import Trace, unique  # noqa: E402

AROUND = """
import torch
from torch.profiler import record_function
model = torch.nn.Linear(4, 4)
sgd = torch.optim.SGD(model.parameters(), lr=0.1)
with record_function("whole"):
    for epoch in range(2):
        with record_function("epoch"):
            for i in range(3):
                sgd.zero_grad()
                with record_function("same"), record_function("same"), record_function("same"):
                    model(torch.ones(2, 4)).sum().backward()
                torch.ones(2).cos_()._version
                sgd.step()
"""
# Steps that the program marks itself: then none are added.
OWN_STEPS = AROUND.replace("sgd.zero_grad()", "\n                with record_function(f'ProfilerStep#{i}'):\n"
                                              "                    sgd.zero_grad()")
# Ranges that are open longer than a segment of events.
LONG = """
import torch
from torch.profiler import record_function
a = torch.ones(2)
def many():
    for i in range(6000):
        torch.neg(a, out=a)
with record_function("long"):
    with record_function("long"):
        with record_function("long"):
            many()
            torch.ones(2).cos_()._version
        a._version
    a._version
with record_function("long"):
    many()
    with record_function("long"):
        many()
        torch.sin(a)
with record_function("long"):
    with record_function("long"):
        many()
    torch.cos(a)
with record_function("long"):
    with record_function("other"), record_function("other"):
        many()
"""
TEXTS = {"around": AROUND, "own steps": OWN_STEPS, "long": LONG}


def read(file):
    data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return json.loads(data, parse_float=str, object_pairs_hook=unique)


def nanoseconds(text):
    return int(text.replace(".", ""))


def pairs_of(result):
    """Each events.json with the trace of its cycle."""
    traces = {json.loads(gzip.decompress(file.read_bytes()))["tprof"]["cycle"]: file for file in result.files(".pt.trace.json.gz")}
    return [(read(file), traces[read(file)["cycle"]]) for file in result.files(".events.json.gz")]


def as_torch_sees_them(file):
    """By id, of the trace's events in torch's own list."""
    base = min(torch_table.nanoseconds(e["ts"]) for e in torch_table.read(file)["traceEvents"] if e["ph"] == "X"
               and e.get("cat") in torch_table.CPU)
    found = {}
    for event in torch_table.load(file):
        found[event.id] = {
            "name": event.name, "start": int(event.time_range.start * 1000) + base, "end": int(event.time_range.end * 1000) + base,
            "parent": event.cpu_parent and event.cpu_parent.id, "children": sorted(e.id for e in event.cpu_children),
            "is_async": event.is_async, "is_user_annotation": event.is_user_annotation, "sequence_nr": event.sequence_nr,
            "fwd_thread": event.fwd_thread, "input_shapes": event.input_shapes}
    return found


def as_we_wrote_them(events):
    found = {}
    for event in events:
        assert event["id"] not in found
        found[event["id"]] = {
            "start": nanoseconds(event["start_us"]), "end": nanoseconds(event["end_us"]), "children": sorted(event["children"]),
            **{key: event[key] for key in ("name", "parent", "is_async", "is_user_annotation", "sequence_nr", "fwd_thread")},
            "input_shapes": event.get("input_shapes", [])}
    return found


@pytest.mark.parametrize("program", sorted(set(OBSERVED_TWICE) - {"throws"}) + list(TEXTS))
@pytest.mark.parametrize("shapes", [0, 1])
def test_as_torchs_event_list(run, program, shapes):
    """Every event of ours is one of torch's list of the same trace, and the other way round: with the same parent and
    children, so that only children of their parent's name are one with it, and steps lie around what ran in them."""
    result = run(TEXTS.get(program, program), TPROF_ON_TRACE_READY="tensorboard,events", TPROF_RECORD_SHAPES=shapes,
                 TPROF_SCHEDULE="always" if shapes else None)
    assert result.status == 0 and result.lines == []
    for written, trace in pairs_of(result):
        ours, theirs = as_we_wrote_them(written["events"]), as_torch_sees_them(trace)
        assert written["count"] == len(ours) and written["base_ns"] == Trace(trace).base
        assert ours == theirs
        if program == "long":
            assert [sorted(e["name"] for e in written["events"]).count(name) for name in ("long", "other")] == [6, 1]
        elif program in TEXTS and shapes:
            names = {e["id"]: e["name"] for e in written["events"]}
            assert list(names.values()).count("same") == 6 and "aten::_version" not in names.values()
            assert {e["trace_name"] for e in written["events"] if e["name"] == "ProfilerStep*"} > {"ProfilerStep#0", "ProfilerStep#1"}
            around = {names.get(e["parent"]) for e in written["events"] if e["name"] == "ProfilerStep*"}
            assert "epoch" in around


SAME_RUN = """
import json, sys
import torch
from torch.profiler import ProfilerActivity, profile, record_function

model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(32, 5))
sgd = torch.optim.SGD(model.parameters(), lr=0.1)

def work():
    for i in range(3):
        sgd.zero_grad()
        with record_function("forward"), record_function("forward"):
            loss = model(torch.randn(4, 1, 6, 6)).pow(2).mean() + torch.ones(3, 4).mm(torch.ones(4, 5)).sum() * 0
        loss.backward()
        torch.cat([torch.ones(2), torch.ones(3)])
        sgd.step()

work()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as p:
    work()
p.export_chrome_trace(sys.argv[1])
work()
json.dump([{"id": e.id, "name": e.name, "thread": e.thread, "start_us": e.time_range.start, "end_us": e.time_range.end,
            "parent": e.cpu_parent and e.cpu_parent.id, "children": [c.id for c in e.cpu_children], "scope": e.scope,
            "input_shapes": e.input_shapes, "flops": e.flops, "is_async": e.is_async, "sequence_nr": e.sequence_nr,
            "fwd_thread": e.fwd_thread, "is_user_annotation": e.is_user_annotation} for e in p.events()], sys.stdout)
"""


@pytest.mark.parametrize("way", ["interpose", "callback"])
def test_as_torchs_events_of_the_same_run(run, way, tmp_path):
    """What prof.events() is inside of torch.profiler's window: matched by record function ids, which both traces have."""
    window = tmp_path / "window.json"
    program = SAME_RUN.replace("sys.argv[1]", repr(str(window)))
    result = run(program, TPROF_SCHEDULE="always", TPROF_STEP="none", TPROF_HOOK=way, TPROF_RECORD_SHAPES=1, TPROF_WITH_FLOPS=1,
                 TPROF_ON_TRACE_READY="tensorboard,events")
    assert result.status == 0 and result.lines == []
    ((written, trace),) = pairs_of(result)
    ids = {e.args["External id"]: e.id for e in Trace(window).operators()}
    ours_ids = {e.args["External id"]: e.id for e in Trace(trace).operators()}

    def named(event, ids):
        return {**event, "id": ids[event["id"]], "children": [ids[c] for c in event["children"]],
                "parent": event["parent"] and ids.get(event["parent"])}
    theirs = [named(e, ids) for e in json.loads(result.stdout)]
    wanted = {e["id"] for e in theirs}
    ours = {ours_ids[e["id"]]: named(e, ours_ids) for e in written["events"] if ours_ids.get(e["id"]) in wanted}
    assert len(theirs) > 200 and len(ours) == len(theirs)
    assert sum(e["name"] == "forward" for e in theirs) == 3 and any(e["flops"] for e in theirs)
    for event in theirs:
        own = ours[event["id"]]
        keys = set(event) - {"start_us", "end_us", "parent"}
        assert {key: own[key] for key in keys} == {key: event[key] for key in keys}
        # Around torch's outermost events may be one of ours that began before its window.
        assert own["parent"] == event["parent"] or (event["parent"] is None and own["parent"] not in wanted)
        assert abs((float(own["end_us"]) - float(own["start_us"])) - (event["end_us"] - event["start_us"])) < 5000


def test_activities_that_are_not_shown(run):
    """As in the trace; what ran in one that is not shown lies in the one around it."""
    result = run(AROUND, TPROF_SCHEDULE="always", TPROF_ON_TRACE_READY="tensorboard,events", TPROF_ACTIVITIES="cpu:[user_annotation]")
    ((written, trace),) = pairs_of(result)
    assert as_we_wrote_them(written["events"]) == as_torch_sees_them(trace)
    assert {e["name"] for e in written["events"]} == {
        "whole", "epoch", "same", "ProfilerStep*",
        "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"}


def test_trace_only_refuses_them(run):
    """In torch's words; the trace is written."""
    result = run(AROUND, TPROF_ON_TRACE_READY="events,table", TPROF_EXPERIMENTAL_CONFIG='{"trace_only": true}')
    assert result.lines == ["tprof: TPROF_EXPERIMENTAL_CONFIG: events() is not available when trace_only=True in ExperimentalConfig; "
                            "the trace is written without table and events"]
    assert result.trace.count("aten::ones") > 0 and result.files(".events.json.gz") == result.files(".table.txt") == []
    assert "no table: events() is not available when trace_only=True" in result.stderr and "# of Calls" not in result.stderr


# tprof events FILE.

def events_of(file, *arguments, status=0):
    got = subprocess.run([COMMAND, "events", *arguments, str(file)], capture_output=True, text=True, env=CLEAN)
    assert (got.returncode, got.stderr) == (status, "")
    return json.loads(got.stdout, parse_float=str, object_pairs_hook=unique) if "--json" in arguments else got.stdout


def check_file(file, memory, flops):
    """Each event by its number in the file."""
    loaded = torch_table.load(file)
    events = torch_table.read(file)
    events = events if isinstance(events, list) else events["traceEvents"]
    theirs = {}
    for event in loaded:
        cpu = event.device_type.name == "CPU"
        at = torch_table.nanoseconds(events[event.number]["ts"])
        at += (event.device_type.name != "CPU" and events[event.number]["cat"] == "gpu_user_annotation")
        theirs[event.number] = {
            "name": event.name, "start": at, "length": int((event.time_range.end - event.time_range.start) * 1000),
            "parent": event.cpu_parent and event.cpu_parent.number, "children": sorted(e.number for e in event.cpu_children),
            "is_async": event.is_async, "is_user_annotation": event.is_user_annotation, "input_shapes": event.input_shapes,
            "is_python_function": event.is_python_function, "device": cpu, "link": event.link, "stack": event.stack,
            "memory": (event.cpu_memory_usage, event.device_memory_usage) if memory else None,
            "flops": event.flops if flops else None}
    written = events_of(file, "--json")
    ours = {}
    for event in written["events"]:
        assert event["id"] not in ours
        start = nanoseconds(event["start_us"])
        ours[event["id"]] = {
            "start": start, "length": nanoseconds(event["end_us"]) - start, "children": sorted(event["children"]),
            **{key: event[key] for key in ("name", "parent", "is_async", "is_user_annotation", "is_python_function", "input_shapes",
                                           "stack")},
            "device": event["device_type"] == "CPU", "link": event.get("linked_correlation_id", 0),
            "memory": (event["cpu_memory_usage"], event["device_memory_usage"]) if memory else None,
            "flops": event["flops"] if flops else None}
        assert ("flops" in event) == flops
        # Calls of a runtime lie on the thread of the operator that they name.
        assert events[event["id"]]["tid"] == event["tid"] or events[event["id"]]["cat"] in torch_table.RUNTIME
    assert written["count"] == len(ours) and ours == theirs
    return written


@pytest.mark.parametrize("seed", range(60))
def test_random_events(seed, tmp_path):
    file = tmp_path / ("t.json.gz" if seed % 5 == 0 else "t.json")
    with_memory, with_flops = seed % 3 == 1, seed % 4 == 1
    Maker(seed, seed % 2 == 1, with_memory, with_flops, seed % 7 == 3).write(file)
    check_file(file, with_memory, with_flops)


@pytest.mark.parametrize("stack", [False, True])
def test_of_a_file_of_torchs(stack, tmp_path):
    config = torch._C._profiler._ExperimentalConfig(verbose=True)
    work()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=stack, with_flops=True,
                 experimental_config=config if stack else None) as p:
        work()
    file = tmp_path / "t.json"
    p.export_chrome_trace(str(file))
    written = events_of(file, "--json")
    numbers = {e["external_id"]: e["id"] for e in written["events"] if e["external_id"]}
    by_id = {e["id"]: e for e in written["events"]}
    theirs = [e for e in p.events() if e.id in numbers and e.name != "[memory]"]
    assert len(theirs) > 300 and {numbers[e.id] for e in theirs} == {e["id"] for e in written["events"] if e["external_id"]}
    for event in theirs:
        own = by_id[numbers[event.id]]
        assert (own["name"], own["flops"], own["input_shapes"], own["cpu_memory_usage"], own["stack"], own["sequence_nr"]) == (
            event.name, event.flops, event.input_shapes, event.cpu_memory_usage, event.stack, event.sequence_nr)
        if not stack:  # with it there are Python functions around, which torch gives no id
            assert own["parent"] == (event.cpu_parent and numbers[event.cpu_parent.id])
            assert sorted(own["children"]) == sorted(numbers[e.id] for e in event.cpu_children)
    assert any(e["name"] == "[memory]" for e in written["events"]) == any(e.name == "[memory]" for e in p.events())


@pytest.mark.parametrize("program", ["mlp_adam", "inference_threads"])
def test_of_a_file_of_ours(run, program):
    """The same as the agent itself wrote."""
    result = run(program, TPROF_SCHEDULE="always", TPROF_RECORD_SHAPES=1, TPROF_WITH_FLOPS=1, TPROF_ON_TRACE_READY="tensorboard,events")
    ((written, trace),) = pairs_of(result)
    from_file = {e["external_id"]: e for e in events_of(trace, "--json")["events"]}
    of_id = {e["id"]: e["external_id"] for e in from_file.values()}
    assert len(from_file) == written["count"] > 100
    for event in written["events"]:
        other = from_file[event["id"]]
        other["parent"] = other["parent"] and of_id[other["parent"]]
        other["children"] = [of_id[child] for child in other["children"]]
        for key in set(event) - {"id", "thread", "scope"}:
            assert (key, sorted(event[key]) if key == "children" else event[key]) == (
                key, sorted(other[key]) if key == "children" else other[key])


def test_text_and_flops(tmp_path):
    file = tmp_path / "t.json"
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as p:
        torch.ones(3, 4) @ torch.ones(4, 5)
    p.export_chrome_trace(str(file))
    head, *lines = events_of(file).splitlines()
    assert head.split() == ["start", "(us)", "length", "(us)", "id", "parent", "tid", "name"]
    listed = events_of(file, "--json", "--flops=torch")["events"]
    assert [line.split()[-1] for line in lines] == [f'"{e["name"]}"' for e in listed]
    assert {e["name"]: e["flops"] for e in listed}["aten::mm"] == 120
    assert "flops" not in events_of(file, "--json")["events"][0] and events_of(file, "--json")["base_ns"] > 0


def test_names_that_need_escapes(tmp_path):
    """A text that is written in pieces is the same."""
    file, names = tmp_path / "t.json", ['"\\\n\x7f é', "步" * 1300 + "骤", "x" * 4095, "a" + "é" * 2000]
    file.write_text(json.dumps([{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": "a \"row\"", "ts": i * 10, "dur": 5, "args": {}}
                                for i, name in enumerate(names)]))
    assert [(e["name"], e["tid"]) for e in events_of(file, "--json")["events"]] == [(name, 'a "row"') for name in names]


@pytest.mark.parametrize("arguments,line", [
    ([], "which file? (tprof events --help)"), (["a", "b"], "one file at a time, not b too"),
    (["--what", "a"], "unknown option --what (tprof events --help)"), (["a", "--flops"], "--flops needs a value"),
    (["--flops=all", "a"], '--flops: "all" is not accepted; torch, extended and none are')])
def test_wrong_use(arguments, line):
    got = subprocess.run([COMMAND, "events", *arguments], capture_output=True, text=True, env=CLEAN)
    assert (got.returncode, got.stdout, got.stderr) == (2, "", f"tprof events: {line}\n")
