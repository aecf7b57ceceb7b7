"""The whole agent over a fake libtorch (test/doubles): exact counts with eight threads, calibrations that fail, and, in a
build with the thread sanitizer (TPROF_BUILD=build-thread), no race. Needs no PyTorch."""
import json
import re
import subprocess

import pytest

from conftest import BUILD, CLEAN, COMMAND

PROGRAM = BUILD / "test" / "threads" / "threads"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="make doubles has not been run")


def run(folder, **settings):
    environment = dict(CLEAN, TPROF_DIR=str(folder), **settings)
    result = subprocess.run([PROGRAM, BUILD / "test" / "doubles"], env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert "ThreadSanitizer" not in result.stderr
    numbers = dict(line.split() for line in result.stdout.splitlines())
    return int(numbers["operators"]), int(numbers["callbacks"]), result.stderr


def counts(folder):
    """kept + lost, over all cycles."""
    (summary,) = folder.glob("*.summary.json")
    return sum(c["kept"] + c["lost"] for c in json.loads(summary.read_text())["cycles"])


def check_all(folder):
    traces = list(folder.glob("*.pt.trace.json.gz"))
    for trace in traces:
        result = subprocess.run([COMMAND, "check", trace], capture_output=True, text=True)
        assert result.returncode == 0, result.stdout
    return len(traces)


WAYS = [("interpose", 0), ("callback", 10)]  # and how many callbacks are registered while it records


@pytest.mark.parametrize("way, registered", WAYS)
@pytest.mark.parametrize("budget", ["8", "256"])
def test_eight_threads_are_counted_to_the_operator(tmp_path, budget, way, registered):
    operators, callbacks, _ = run(tmp_path, TPROF_SCHEDULE="always", TPROF_BUFFER_MB=budget, TPROF_HOOK=way)
    assert check_all(tmp_path) == 1
    assert counts(tmp_path) == operators
    assert callbacks == registered


def test_without_python_steps_go_by_name(tmp_path):
    _, _, stderr = run(tmp_path, TPROF_SCHEDULE="always", TPROF_LOG="info")
    assert "tprof: optimizers of one class are not told apart: the place in the program of a step cannot be read from this " \
           "Python: it lacks functions of the C API" in stderr.splitlines()


@pytest.mark.parametrize("way, registered", WAYS)
def test_windows_come_and_go(tmp_path, way, registered):
    _, callbacks, _ = run(tmp_path, TPROF_SCHEDULE="wait=1,warmup=1,active=2", TPROF_HOOK=way)
    assert check_all(tmp_path) == 10
    assert callbacks in (min(registered, 1), registered)  # the last step may be one that records


@pytest.mark.parametrize("way, registered", WAYS)
def test_members_may_lie_elsewhere(tmp_path, way, registered):
    operators, callbacks, _ = run(tmp_path, TPROF_SCHEDULE="always", FAKE_TORCH="shifted", TPROF_HOOK=way)
    assert check_all(tmp_path) == 1
    assert counts(tmp_path) == operators
    assert callbacks == registered


@pytest.mark.parametrize("deviation, why", [
    ("hidden_counter", "the counter of its record function ids was not found"),
    ("nameless", "the name of an operator is not where it was expected"),
    ("restless", "it is not built the same way twice"),
    ("bound", "objects are ended past us"),
])
def test_where_objects_cannot_be_made_callbacks_observe(tmp_path, deviation, why):
    """One line to who asked for the other way; nothing is missing."""
    operators, callbacks, stderr = run(tmp_path, TPROF_SCHEDULE="always", FAKE_TORCH=deviation, TPROF_HOOK="interpose")
    (line,) = [line for line in stderr.splitlines() if "TPROF_HOOK" in line]
    assert re.fullmatch(f"tprof: TPROF_HOOK=interpose: PyTorch .* cannot be observed that way: {why}; callbacks are used", line)
    assert callbacks == 10
    assert check_all(tmp_path) == 1
    assert counts(tmp_path) == operators


@pytest.mark.parametrize("deviation, why", [("no_ids", "ids"), ("no_sequence", "sequence numbers"), ("no_vtable", "virtual table"),
                                            ("wrong_name", "name"), ("silent", "callbacks"), ("huge", "larger")])
def test_a_failed_calibration_is_one_line(tmp_path, deviation, why):
    _, callbacks, stderr = run(tmp_path / "out", TPROF_SCHEDULE="always", FAKE_TORCH=deviation)
    (line,) = stderr.splitlines()
    assert re.fullmatch(f"tprof: PyTorch: operators cannot be observed in .*{why}.*; the program runs as if tprof were not there", line)
    assert callbacks == 0
    assert not (tmp_path / "out").exists()
