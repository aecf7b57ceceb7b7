"""What the end-to-end tests share: programs run with and without the agent, and what they left behind.

TPROF_BUILD in the environment of pytest names another build folder (build-address-undefined); CC is that of the build."""
import atexit
import dataclasses
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from traces import Trace  # noqa: E402

try:
    VERSION = tuple(map(int, importlib.metadata.version("torch").split(".")[:2]))  # of PyTorch
except importlib.metadata.PackageNotFoundError:
    VERSION = ()

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "test/e2e/programs"
BUILD = ROOT / os.environ.get("TPROF_BUILD", "build")
LIBRARY, COMMAND = BUILD / "libtprof.so", BUILD / "tprof"
# Programs get signals as a shell in front of a person gives them: in the background of a script pytest has two ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
# The program's own variables are the test's business: none of ours comes in from outside.
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("TPROF_", "PYTEST")) and k != "LD_PRELOAD"}
CLEAN["PYTHONDONTWRITEBYTECODE"] = "1"
# What a program that was killed leaves behind is written by the next one in the same folder: each run has one of its own.
SPOOLS = tempfile.mkdtemp(prefix="tprof-e2e.", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
atexit.register(shutil.rmtree, SPOOLS, ignore_errors=True)
CLEAN["TPROF_SPOOL_DIR"] = SPOOLS


def spool_folder():
    return tempfile.mkdtemp(dir=SPOOLS)


def preload(environment):
    """A sanitizer's runtime comes first, or it refuses to start; PyTorch's leaks are not ours."""
    runtimes = []
    if "address" in BUILD.name:
        runtimes = [subprocess.run([os.environ.get("CC", "gcc"), f"-print-file-name={name}"], capture_output=True,
                                   text=True).stdout.strip() for name in ("libasan.so", "libstdc++.so.6")]
        environment["ASAN_OPTIONS"] = "detect_leaks=0"
    environment["LD_PRELOAD"] = " ".join([*runtimes, str(LIBRARY)])


@dataclasses.dataclass
class Result:
    status: int
    stdout: str
    stderr: str
    folder: pathlib.Path

    def files(self, suffix):
        return sorted(self.folder.rglob("*" + suffix)) if self.folder.exists() else []

    def traces(self):
        return [Trace(file) for file in self.files(".pt.trace.json.gz") + self.files(".pt.trace.json")]

    @property
    def trace(self):
        (trace,) = self.traces()
        return trace

    @property
    def summary(self):
        (file,) = self.files(".summary.json")
        return json.loads(file.read_text())

    @property
    def lines(self):
        """What the agent said, but for the report and what it says of any run of several cycles (test_cycles.py)."""
        return [line for line in self.stderr.splitlines() if line.startswith("tprof: ")
                and not re.match(r"tprof: (steps? \d|cycle \d|\d+ cycles|all \d+ cycles|the whole run|events are cleared)", line)]


def arguments_of(program):
    """A file of programs/, a path, or text that is a program itself."""
    if isinstance(program, pathlib.Path):
        return [sys.executable, str(program)]
    if "\n" not in program and (PROGRAMS / f"{program}.py").exists():
        return [sys.executable, str(PROGRAMS / f"{program}.py")]
    return [sys.executable, "-c", program]


def start(arguments, environment, **options):
    return subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def finish(process, folder, timeout=180):
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Result(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"), folder)


class Runner:
    """run(program, TPROF_X=..., OTHER=...): under the agent. run.bare: without it. run.start: not waited for."""

    def __init__(self, root):
        self.root, self.count = root, 0

    def environment(self, settings):
        self.count += 1
        folder = pathlib.Path(settings.pop("folder", self.root / f"run{self.count}"))
        environment = dict(CLEAN, TPROF_DIR=str(folder), TPROF_SPOOL_DIR=spool_folder())
        preload(environment)
        environment.update(settings)
        environment = {k: str(v) for k, v in environment.items() if v is not None}
        return environment, folder

    def start(self, program, cwd=None, **settings):
        environment, folder = self.environment(settings)
        return start(arguments_of(program), environment, cwd=cwd), folder

    def __call__(self, program, cwd=None, timeout=180, **settings):
        process, folder = self.start(program, cwd, **settings)
        return finish(process, folder, timeout)

    def bare(self, program, cwd=None, timeout=180, **settings):
        environment = dict(CLEAN, **{k: str(v) for k, v in settings.items()})
        return finish(start(arguments_of(program), environment, cwd=cwd), self.root / "none", timeout)


@pytest.fixture
def run(tmp_path):
    return Runner(tmp_path)


@pytest.fixture(scope="session")
def run_once(tmp_path_factory):
    """For results that several tests look at."""
    return Runner(tmp_path_factory.mktemp("shared"))


def check(path):
    """`tprof check`: it must find nothing."""
    result = subprocess.run([COMMAND, "check", path], capture_output=True, text=True, env=CLEAN)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def have_compiler():
    return shutil.which("g++") or shutil.which("clang++")


def torch_cxx_flags():
    """With which what includes PyTorch's headers is compiled."""
    import torch
    return [f"-std=c++{17 if VERSION < (2, 9) else 20}",
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
            f"-I{pathlib.Path(torch.__file__).parent / 'include'}"]


def pytest_collection_modifyitems(items):
    """torch.compile needs a C++ compiler of its own."""
    if not have_compiler():
        for item in items:
            if "compiled" in item.name:
                item.add_marker(pytest.mark.skip(reason="torch.compile needs g++ or clang++"))


@pytest.fixture(scope="session", autouse=True)
def inductor_cache(tmp_path_factory):
    CLEAN["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path_factory.mktemp("inductor"))
