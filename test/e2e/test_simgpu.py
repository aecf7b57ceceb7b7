"""The simulated GPU: PyTorch's real CUDA build computes and trains on it, and its own profiler writes a GPU trace over it.

TORCH_CUDA names a python that has such a build; `make simgpu TORCH_CUDA=...` builds the libraries."""
import collections
import json
import os
import socket
import subprocess

import pytest

from conftest import BUILD, CLEAN, ROOT, preload

LIBRARIES = BUILD / "test/doubles/simgpu"
PYTHON = os.environ.get("TORCH_CUDA")
PROGRAMS = ROOT / "test/e2e/programs"

if not PYTHON:
    pytest.skip("simgpu: TORCH_CUDA names no python with a CUDA build of PyTorch", allow_module_level=True)
if not (LIBRARIES / "libnccl.so.2").exists():
    pytest.skip("simgpu: its libraries are not built (make simgpu TORCH_CUDA=...)", allow_module_level=True)


@pytest.fixture(scope="session")
def farm(tmp_path_factory):
    return tmp_path_factory.mktemp("simgpu") / "farm"


def start(farm, program, *arguments, **settings):
    return subprocess.Popen([ROOT / "test/doubles/simgpu/farm.sh", LIBRARIES, farm, PYTHON, program, *arguments],
                            env=dict(CLEAN, **settings), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process):
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return output


class Run:
    def __init__(self, farm, folder, **settings):
        self.output = finish(start(farm, PROGRAMS / "simgpu_job.py", folder / "found", **settings))
        self.found = json.loads((folder / "found").read_text())
        events = json.loads((folder / "found.trace.json").read_text())["traceEvents"]
        self.events = [event for event in events if event.get("ph") == "X"]
        self.flows = [event for event in events if event.get("cat") == "ac2g"]

    def of(self, *categories):
        return [event for event in self.events if event.get("cat") in categories]

    def counts(self):
        return collections.Counter(event["cat"] for event in self.of("cpu_op", "cuda_runtime", "kernel", "gpu_memcpy", "gpu_memset"))


@pytest.fixture(scope="session")
def job(farm, tmp_path_factory):
    return Run(farm, tmp_path_factory.mktemp("job"))


@pytest.fixture(scope="session")
def launches(job):
    return {event["args"]["correlation"]: event for event in job.of("cuda_runtime", "cuda_driver")}


def gpu(run):
    return run.of("kernel", "gpu_memcpy", "gpu_memset")


@pytest.mark.parametrize("what", ["round_trip", "pinned", "batched", "half", "linear", "captured", "replay", "out_of_memory"])
def test_results_are_the_cpus(job, what):
    assert job.found[what]


def test_a_regression_learns_what_it_learns_on_the_cpu(job):
    assert job.found["regression"]
    first, last = job.found["losses"]
    assert 0 <= last < first / 100


def test_events_tell_the_time_that_the_device_took(job):
    assert 0.001 < job.found["elapsed"] < 100


def test_nothing_was_called_that_is_not_simulated(job):
    assert "is not simulated" not in job.output


def test_the_profiler_sees_kernels_copies_and_calls(job):
    kernels = collections.Counter(event["name"] for event in job.of("kernel"))
    for name, count in (("simgpu_fprop_implicit_gemm_nchw", 3), ("simgpu_wgrad_implicit_gemm_nchw", 3)):
        assert kernels[name] == count
    assert any("elementwise_kernel" in name for name in kernels)
    copies = collections.Counter(event["name"] for event in job.of("gpu_memcpy"))
    assert copies["Memcpy HtoD (Pageable -> Device)"] == 6
    calls = collections.Counter(event["name"] for event in job.of("cuda_runtime"))
    assert calls["cudaLaunchKernel"] + calls["cudaLaunchKernelExC"] >= len(job.of("kernel")) - 1
    assert calls["cudaGraphLaunch"] == 1
    assert calls["cudaDeviceSynchronize"] >= 1
    assert job.of("overhead")


def test_every_operation_has_its_launch_before_it(job, launches):
    assert gpu(job)
    for event in gpu(job):
        assert launches[event["args"]["correlation"]]["ts"] < event["ts"]


def test_every_operation_is_linked_to_an_operator(job):
    operators = {event["args"].get("External id") for event in job.of("cpu_op")}
    for event in gpu(job):
        assert event["args"]["graph id"] or event["args"]["External id"] in operators


def test_flows_lead_from_calls_to_operations(job):
    assert {flow["id"] for flow in job.flows if flow["ph"] == "f"} >= {event["args"]["correlation"] for event in gpu(job)}


def test_operations_of_a_stream_do_not_overlap(job):
    streams = collections.defaultdict(list)
    for event in gpu(job):
        streams[event["args"]["stream"]].append((event["ts"], event["ts"] + event["dur"]))
    assert len(streams) == 2
    for spans in streams.values():
        spans.sort()
        assert all(first[1] <= second[0] + 0.001 for first, second in zip(spans, spans[1:]))


def test_a_replayed_kernel_names_its_graph(job):
    replayed = [event for event in job.of("kernel") if event["args"]["graph id"]]
    assert len(replayed) == 1
    assert replayed[0]["args"]["graph node id"]


@pytest.mark.parametrize("version", ["19", "24", "26", "130300"])
def test_records_of_other_versions_tell_the_same(farm, job, tmp_path, version):
    assert Run(farm, tmp_path, SIMGPU_CUPTI=version).counts() == job.counts()


def test_shuffled_and_late_records_tell_the_same(farm, job, tmp_path):
    assert Run(farm, tmp_path, SIMGPU_FAULTS="shuffle=1000000,late=100000").counts() == job.counts()


def test_dropped_records_are_missing(farm, job, tmp_path):
    dropped = Run(farm, tmp_path, SIMGPU_FAULTS="drop=10")
    assert len(gpu(dropped)) < len(gpu(job))
    assert dropped.counts()["cpu_op"] == job.counts()["cpu_op"]


def test_without_a_subscription_there_is_no_gpu_trace(farm, job, tmp_path):
    refused = Run(farm, tmp_path, SIMGPU_FAULTS="cuptiSubscribe=39")
    assert not gpu(refused) and refused.of("cpu_op")
    assert refused.found == dict(job.found, elapsed=refused.found["elapsed"])


def test_the_profiler_under_the_agent_gets_the_same(farm, job, tmp_path):
    settings = {"TPROF_DIR": str(tmp_path / "tprof"), "TPROF_LOG": "info"}
    preload(settings)
    under = Run(farm, tmp_path, **settings)
    assert under.counts() == job.counts()
    assert collections.Counter(event["name"] for event in gpu(under)) == collections.Counter(event["name"] for event in gpu(job))
    assert len(under.flows) == len(job.flows)
    assert "tprof: CUDA: CUPTI 13" in under.output
    assert list((tmp_path / "tprof").rglob("*.pt.trace.json.gz"))


def test_devices_are_as_many_as_asked_for(farm, tmp_path):
    program = tmp_path / "devices.py"
    program.write_text("""
import torch
assert torch.cuda.device_count() == 2
a = torch.arange(1000.).to("cuda:1")
assert torch.equal(a.to("cuda:0").cpu(), torch.arange(1000.))
assert torch.cuda.memory_allocated(1) and torch.cuda.get_device_properties(1).multi_processor_count == 108
""")
    finish(start(farm, program, SIMGPU_DEVICES="2"))


def test_two_processes_add_up(farm, job, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    both = [start(farm, PROGRAMS / "simgpu_reduce.py", tmp_path / str(rank), RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                  MASTER_PORT=str(port)) for rank in range(2)]
    for process in both:
        finish(process)
    check = tmp_path / "check.py"
    check.write_text(f"""
import torch
for rank in range(2):
    total, parts = torch.load(f"{tmp_path}/{{rank}}")
    assert torch.equal(total, torch.arange(300000, dtype=torch.float32) * 3)
    assert [part.tolist() for part in parts] == [[5.0] * 4, [6.0] * 4]
""")
    finish(start(farm, check))
