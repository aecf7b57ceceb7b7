"""Several cycles in one run: what each one's files tell of, beside torch.profiler with the same schedule in the same run."""
import gzip
import inspect
import json

import pytest

pytest.importorskip("torch")
from torch.profiler import profile  # noqa: E402

pytestmark = pytest.mark.skipif("acc_events" not in inspect.signature(profile.__init__).parameters,
                                reason="this torch.profiler cannot keep the events of earlier cycles")

PROGRAM = """
import json, sys
import torch
from torch.profiler import ProfilerActivity, profile, schedule

operators = [torch.sin, torch.cos, torch.tan, torch.exp, torch.sqrt, torch.abs, torch.neg, torch.floor, torch.ceil, torch.round]
said = []

def ready(p):
    said.append({row.key: row.count for row in p.key_averages()})

with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=2), acc_events=ACC,
             on_trace_ready=ready) as p:
    for i in range(10):
        for turn in range(i + 1):
            operators[i](torch.ones(3))
        p.step()
json.dump(said, sys.stdout)
"""
CLEARED = ("tprof: events are cleared at the end of each cycle: files tell of their own cycle alone, the table at the end of all. "
           "To keep events across cycles, set TPROF_ACC_EVENTS=1")


def counts(text):
    """By name, of a printed table."""
    rows = [line.split() for line in text.splitlines() if line.startswith(" ") and "%" in line and "# of Calls" not in line]
    return {row[0]: int(row[-1]) for row in rows}


def run_both(run, acc, **settings):
    result = run(PROGRAM.replace("ACC", str(bool(acc))), TPROF_SCHEDULE="wait=1,warmup=1,active=2,repeat=2", TPROF_ACC_EVENTS=acc,
                 TPROF_ROW_LIMIT=-1, **settings)
    assert result.status == 0 and result.lines == []
    return result, json.loads(result.stdout)


@pytest.mark.parametrize("acc", [0, 1])
def test_tables_of_cycles(run, acc):
    result, torch = run_both(run, acc)
    ours = [counts(file.read_text()) for file in result.files(".table.txt")]
    assert ours == torch
    assert ("aten::tan" in torch[1]) == bool(acc) and "aten::floor" in torch[1] and torch[0]["ProfilerStep*"] == 2
    # The table at the end is of all cycles in any case, and each trace, as torch's, of its own.
    assert counts(result.stderr)["aten::tan"] == 3 and counts(result.stderr)["ProfilerStep*"] == 4
    assert [trace.count("aten::tan") for trace in sorted(result.traces(), key=lambda t: t.told["cycle"])] == [3, 0]


@pytest.mark.parametrize("settings,said", [({}, 1), ({"TPROF_ACC_EVENTS": 1}, 0), ({"TPROF_ON_TRACE_READY": "chrome"}, 0),
                                           ({"TPROF_SCHEDULE": "wait=1,warmup=1,active=2,repeat=1"}, 0)])
def test_cleared_events_are_told_once(run, settings, said):
    """torch warns at its second cycle. Where no table is asked for there is nothing to be told."""
    result = run(PROGRAM.replace("ACC", "False"), **{"TPROF_SCHEDULE": "wait=0,warmup=1,active=1,repeat=4", **settings})
    assert result.stderr.splitlines().count(CLEARED) == said


EVENTS = PROGRAM.replace("said.append({row.key: row.count for row in p.key_averages()})",
                         "said.append([[e.name, len(e.cpu_children)] for e in p.events()])")


@pytest.mark.parametrize("acc,gzipped", [(0, 1), (1, 0), (1, 1)])
def test_events_of_cycles(run, acc, gzipped):
    """Three cycles, so that a file holds what it was handed on; as in torch the newest cycle stands first."""
    program = EVENTS.replace("repeat=2", "repeat=3").replace("range(10)", "range(12)").replace("operators[i]", "operators[i % 10]")
    result = run(program.replace("ACC", str(bool(acc))), TPROF_SCHEDULE="wait=1,warmup=1,active=2,repeat=3", TPROF_ACC_EVENTS=acc,
                 TPROF_ON_TRACE_READY="events", TPROF_USE_GZIP=gzipped)
    assert result.status == 0 and result.lines == []
    torch, ours = json.loads(result.stdout), []
    for file in result.files(".events.json.gz" if gzipped else ".events.json"):
        written = json.loads(gzip.decompress(file.read_bytes()) if gzipped else file.read_bytes())
        ours.append(written)
        assert written["count"] == len(written["events"])
        cycles = [e["cycle"] for e in written["events"]] if acc else [written["cycle"]]
        assert sorted(cycles, reverse=True) == cycles and set(cycles) == set(range(written["cycle"] + 1) if acc else [written["cycle"]])
    assert len(ours) == 3
    assert [sorted([e["name"], len(e["children"])] for e in written["events"]) for written in ours] == [sorted(t) for t in torch]


def test_earlier_events_that_are_lost(run):
    """A line, and the file of the cycle is whole."""
    program = PROGRAM.replace("ACC", "True").replace("    said.append({row.key: row.count for row in p.key_averages()})", """
    import glob, os, time
    end = time.time() + 60
    while not said and time.time() < end:
        for file in glob.glob(FOLDER + '/*.events.json.gz'):
            os.unlink(file)
            said.append(file)
        time.sleep(0.1)
""")
    folder = run.root / "lost"
    result = run(program.replace("FOLDER", repr(str(folder))), folder=folder, TPROF_ACC_EVENTS=1,
                 TPROF_SCHEDULE="wait=1,warmup=1,active=2,repeat=2", TPROF_ON_TRACE_READY="events")
    (line,) = result.lines
    assert line.endswith(": No such file or directory; the events of the cycles before are left out")
    file = result.files(".events.json.gz")[-1]
    assert {e["cycle"] for e in json.loads(gzip.decompress(file.read_bytes()))["events"]} == {1}
