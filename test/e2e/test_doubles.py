"""The whole agent over a fake libtorch (test/doubles): exact counts with eight threads, calibrations that fail, and, in a
build with the thread sanitizer (TPROF_BUILD=build-thread), no race. Needs no PyTorch."""
import json
import re
import subprocess

import pytest

from conftest import BUILD, CLEAN, COMMAND
from traces import Trace

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


def shapes(folder):
    """What each operator was given."""
    (file,) = folder.glob("*.pt.trace.json.gz")
    return [(e.args.get("Input Dims"), e.args.get("Input Strides"), e.args.get("Input type"), e.args.get("Concrete Inputs"))
            for e in Trace(file).operators()]


@pytest.mark.parametrize("deviation", [None, "shifted"])
def test_a_value_of_each_tag(tmp_path, deviation):
    """Of a tag that is not known nothing is looked at: those values hold addresses that are none."""
    settings = {"FAKE_TORCH": deviation} if deviation else {}
    operators, _, stderr = run(tmp_path, TPROF_SCHEDULE="always", TPROF_RECORD_SHAPES="1", TPROF_BUFFER_MB="64", **settings)
    assert "not known" not in stderr
    shown = {1: ("float", ""), 3: ("Scalar", "0.25"), 4: ("Scalar", "1.5-2.j"), 5: ("Scalar", "-7"), 7: ("Scalar", ""), 8: ("Scalar", ""),
             9: ("Scalar", ""), 10: ("Scalar", "True"), 14: ("ScalarList", "[-7, -7]")}
    tags = [1, *range(32)]
    expected = ([[2, 3] if tag == 1 else [] for tag in tags], [[1, 2] if tag == 1 else [] for tag in tags],
                [shown.get(tag, ("", ""))[0] for tag in tags], [shown.get(tag, ("", ""))[1] for tag in tags])
    told = shapes(tmp_path)
    assert len(told) > 1000  # eight threads write a GB a second here: most find no room, and are counted
    assert all(one == expected for one in told)
    assert counts(tmp_path) == operators


@pytest.mark.parametrize("deviation, why", [
    ("no_inputs", "operators' inputs"), ("no_tensors", "cannot be made"), ("other_sizes", "sizes"), ("no_strides", "sizes"),
    ("other_types", "types"), ("other_keys", "dispatch keys"), ("other_flags", "flags"), ("other_tags", "numbered"),
    ("other_lists", "lists")])
def test_without_shapes_operators_go_on(tmp_path, deviation, why):
    operators, callbacks, stderr = run(tmp_path, TPROF_SCHEDULE="always", TPROF_RECORD_SHAPES="1", FAKE_TORCH=deviation)
    (line,) = [line for line in stderr.splitlines() if "not known" in line]
    assert re.fullmatch(f"tprof: PyTorch: shapes are not known in PyTorch .*: .*{why}.*; operators are recorded without them", line)
    assert counts(tmp_path) == operators
    assert callbacks == 0  # those of the calibration are gone
    assert set(shapes(tmp_path)) == {(None, None, None, None)}
