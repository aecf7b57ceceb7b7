"""TPROF_POST_PROCESSING_TIMEOUT_S: what is not worked through by then is left out, and every file says so and is sound."""
import gzip
import json

import pytest

pytest.importorskip("torch")
from conftest import check  # noqa: E402

MANY = """
import torch
a = torch.ones(2)
for i in range(200000):
    torch.neg(a, out=a)
"""
WHY = "post-processing timed out (TPROF_POST_PROCESSING_TIMEOUT_S); these are partial results"


def run_for(run, seconds, **settings):
    result = run(MANY, TPROF_SCHEDULE="always", TPROF_POST_PROCESSING_TIMEOUT_S=seconds,
                 TPROF_ON_TRACE_READY="chrome,table,events,execution_trace", **settings)
    assert result.status == 0
    return result


def check_partial(result):
    """How many events are written."""
    (line,) = [line for line in result.stderr.splitlines() if "is not complete" in line]
    (cycle,) = result.summary["cycles"]
    kept, missing = cycle["kept"], cycle["lost_why"]["not_written"]
    assert line == f"tprof: cycle 0 is not complete: {WHY}; {kept} of {kept + missing} events are written"
    assert kept + missing == cycle["kept"] + cycle["lost"] > 200000 and missing > 0
    assert cycle["partial"] and cycle["why"] == WHY
    (trace,), (table,), (events,) = result.traces(), result.files(".table.txt"), result.files(".events.json.gz")
    check(trace.path)
    assert trace.told["partial"] and trace.told["why"] == WHY and (trace.told["kept"], trace.told["lost"]) == (kept, missing)
    assert sum(f"{missing} operators lost behind this" in e["name"] for e in trace.all) == 1
    assert len(trace.operators()) == kept
    assert table.read_text().splitlines()[1] == WHY
    listed = json.loads(gzip.decompress(events.read_bytes()))
    assert listed["partial"] and listed["why"] == WHY and (listed["kept"], listed["lost"]) == (kept, missing)
    assert len(listed["events"]) == listed["count"] <= kept + 1
    (graph,) = result.files(".et.json.gz")
    assert json.loads(gzip.decompress(graph.read_bytes()))["partial"] == WHY
    assert f"cycle 0 is partial: {WHY}" in result.stderr and f"{missing} were not written" in result.stderr
    return kept


@pytest.mark.parametrize("seconds", [0, "0.0"])
def test_no_time(run, seconds):
    """No event, as in torch."""
    assert check_partial(run_for(run, seconds)) == 0


def test_partial_results(run):
    seconds, kept = 0.01, 0
    while not kept:
        kept = check_partial(run_for(run, seconds))
        seconds *= 2


def test_time_enough(run):
    result = run_for(run, 3600)
    assert "is not complete" not in result.stderr and result.trace.told["lost"] == 0 and not result.trace.told["partial"]
    (table,), (graph,) = result.files(".table.txt"), result.files(".et.json.gz")
    assert WHY not in result.stderr + table.read_text() and "partial" not in json.loads(gzip.decompress(graph.read_bytes()))


@pytest.mark.parametrize("seconds", ["-1", "-0.5", "nan", "soon"])
def test_a_bad_value(run, seconds):
    result = run("import torch\nprint(1)", TPROF_POST_PROCESSING_TIMEOUT_S=seconds)
    (line,) = result.lines
    assert (result.status, result.stdout) == (0, "1\n") and "TPROF_POST_PROCESSING_TIMEOUT_S" in line and "0 or more" in line
    assert not result.folder.exists()
