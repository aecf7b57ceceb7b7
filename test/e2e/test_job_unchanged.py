"""The job is unchanged: the same bits, the same output, the same status; and its own torch.profiler sees the same."""
import collections
import re

import pytest

from conftest import check
from test_same_run import PROGRAMS, WATCHES_ALL_THREADS
from traces import Trace


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("schedule, step", [(None, None), ("always", None), ("wait=2,warmup=1,active=2,repeat=3", "every:2ms")])
def test_same_output(run, run_once, program, schedule, step):
    bare = bare_run(run_once, program)
    result = run(program, TPROF_SCHEDULE=schedule, TPROF_STEP=step)
    assert (result.status, result.stdout) == (bare.status, bare.stdout)
    assert bare.stdout and bare.status == 0
    assert result.lines == []
    said = re.sub(r"^tprof: events are cleared .*\n", "", result.stderr, flags=re.M)  # of several cycles (test_cycles.py)
    said = re.split(r"^(?:=====|tprof: all \d+ cycles)", said, flags=re.M)[0]  # what comes before the report
    assert plain(said) == plain(bare.stderr)
    for trace in result.traces():
        check(trace.path)


def plain(text):
    """Lines without the time and the thread that torch's own logging puts in front."""
    return [re.sub(r"^([IWE]\d{4}) \S+ \d+ ", r"\1 ", line) for line in text.splitlines()]


results = {}


def bare_run(run_once, program):
    if program not in results:
        results[program] = run_once.bare(program)
    return results[program]


def is_unpacking(event):
    """Which of a DataLoader's calls unpacks a batch depends on when the workers sent it."""
    return event is not None and (event.name.startswith("enumerate(DataLoader)") or is_unpacking(event.parent))


def by_thread(trace):
    """For each thread what it did, in order; threads have no names that hold from run to run."""
    threads = collections.defaultdict(list)
    for e in sorted(trace.operators(), key=lambda e: (e.start, -e.end)):
        if not is_unpacking(e.parent):
            threads[e.thread].append((e.name, e.category, e.sequence, e.forward_thread, e.depth))
    return sorted(threads.values())


@pytest.mark.parametrize("program", PROGRAMS)
def test_own_profiler_sees_the_same(run, tmp_path, program):
    bare, with_us = tmp_path / "bare.json", tmp_path / "with.json"
    first = run.bare(program, WINDOW=bare, WINDOW_ALL_THREADS=int(WATCHES_ALL_THREADS))
    second = run(program, WINDOW=with_us, WINDOW_ALL_THREADS=int(WATCHES_ALL_THREADS))
    assert (first.status, first.stdout) == (second.status, second.stdout)
    assert by_thread(Trace(bare)) == by_thread(Trace(with_us))
