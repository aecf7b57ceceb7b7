"""Sudden death: what a process leaves when nothing of it may run any more, and what tprof recover, and the next process, make of
it. Over the fake libtorch to the operator; on the real PyTorch for the ways a training dies. C62."""
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from conftest import BUILD, CLEAN, COMMAND, LIBRARY, check, finish

ENDLESS = BUILD / "test" / "threads" / "endless"
THREADS = BUILD / "test" / "threads" / "threads"
DOUBLES = BUILD / "test" / "doubles"
KILLS = int(os.environ.get("TPROF_TEST_KILLS", 200))

no_doubles = pytest.mark.skipif(not ENDLESS.exists(), reason="make doubles has not been run")
no_memory_folder = pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no /dev/shm")


@pytest.fixture
def spools():
    """A folder in memory, of this test alone."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="tprof-test-") as folder:
        yield Path(folder)


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Victim:
    """The endless program, and what it has counted."""

    def __init__(self, root, spools, *arguments, threads=3, **settings):
        self.folder, self.counts = root / "out", root / "counts"
        settings = {"TPROF_SCHEDULE": "always", "TPROF_BUFFER_MB": "8", **settings}
        environment = dict(CLEAN, TPROF_DIR=str(self.folder), TPROF_SPOOL_DIR=str(spools), **settings)
        self.process = subprocess.Popen([ENDLESS, DOUBLES, self.counts, str(threads), *arguments], env=environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def wait_until_it_runs(self, begins=1):
        wait_for(lambda: self.process.poll() is not None or self.bounds()[0] >= begins)
        assert self.process.poll() is None

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.communicate()
        assert self.process.returncode == -how

    def bounds(self):
        """Begins done, and tried: between the two lies what was just being stored."""
        data = self.counts.read_bytes() if self.counts.exists() else b""
        pairs = [struct.unpack_from("QQ", data, at) for at in range(0, len(data) - 63, 64)]
        return sum(done for _, done in pairs), sum(tried for tried, _ in pairs)

    @property
    def summary(self):
        (file,) = self.folder.glob("*.summary.json")
        return json.loads(file.read_text())

    def cycles(self):
        return self.summary["cycles"]

    def accounted(self):
        return sum(cycle["kept"] + cycle["lost"] for cycle in self.cycles())

    def check_files(self):
        traces = list(self.folder.glob("*.pt.trace.json.gz"))
        for trace in traces:
            check(trace)
        return len(traces)


def recover(*what, status=0):
    result = subprocess.run([COMMAND, "recover", *what], env=CLEAN, capture_output=True, text=True)
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout + result.stderr


@no_doubles
@no_memory_folder
def test_killed_at_random_moments(tmp_path, spools):
    """Whatever the moment: not one operator that is neither in the files nor counted as lost."""
    random.seed(62)
    attached = traces = 0
    for number in range(KILLS):
        root = tmp_path / str(number)
        root.mkdir()
        is_windowed = number % 4 == 3
        victim = Victim(root, spools, **({"TPROF_SCHEDULE": "wait=1,warmup=1,active=2"} if is_windowed else {}))
        time.sleep(random.uniform(0, 0.2))
        victim.kill()
        left = list(spools.iterdir())
        done, tried = victim.bounds()
        assert len(left) == 1 or (not left and done == 0)
        said = recover(*left) if left else ""
        assert not list(spools.iterdir()) and not list(root.rglob("*.tmp*"))
        if not victim.folder.exists():
            assert done == 0 or "nothing" in said, said
            continue
        attached += 1
        traces += victim.check_files()
        assert victim.summary["ended"] == "died"
        if not is_windowed:
            assert done <= victim.accounted() <= tried, (number, said)
        for file in root.rglob("*"):
            file.is_file() and file.unlink()
    assert attached > KILLS // 2 and traces > KILLS // 2


@no_doubles
@no_memory_folder
def test_the_next_process_writes_them(tmp_path, spools):
    victim = Victim(tmp_path, spools)
    victim.wait_until_it_runs(10000)
    victim.kill()
    (left,) = spools.iterdir()
    (tmp_path / "next").mkdir()
    following = Victim(tmp_path / "next", spools, threads=1)
    wait_for(lambda: not left.exists())
    following.process.terminate()
    _, said = following.process.communicate()
    (line,) = [line for line in said.decode().splitlines() if left.name in line]
    assert line.startswith(f"tprof: {left.name}: wrote 3 files of endless (") and str(victim.folder) in line
    done, tried = victim.bounds()
    assert victim.check_files() == 1 and done <= victim.accounted() <= tried
    assert not list(spools.iterdir())


@no_doubles
@no_memory_folder
def test_recovery_may_be_killed_too(tmp_path, spools):
    random.seed(1)
    victim = Victim(tmp_path, spools)
    victim.wait_until_it_runs(200000)
    victim.kill()
    (left,) = spools.iterdir()
    killed = 0
    for _ in range(40):
        process = subprocess.Popen([COMMAND, "recover", left], env=CLEAN, stdout=subprocess.DEVNULL)
        time.sleep(random.uniform(0, 0.15))
        process.kill()
        if process.wait() == 0:
            break
        killed += 1
    assert killed > 0
    if left.exists():
        recover(left)
    done, tried = victim.bounds()
    assert done <= victim.accounted() <= tried
    assert victim.check_files() == 1
    assert len(list(victim.folder.iterdir())) == 3 and not list(spools.iterdir())


@no_doubles
@no_memory_folder
@pytest.mark.parametrize("arguments", [[], ["close"]], ids=["plain", "closes_all_descriptors"])
def test_the_spool_of_a_living_process_is_left_alone(tmp_path, spools, arguments):
    victim = Victim(tmp_path, spools, *arguments)
    victim.wait_until_it_runs(10000)
    (spool,) = spools.iterdir()
    assert "is in use" in recover(spool, status=1)
    recover(spools)  # of a folder: what belongs to the living is no fault
    environment = dict(CLEAN, TPROF_DIR=str(tmp_path / "next"), TPROF_SPOOL_DIR=str(spools))
    result = subprocess.run([THREADS, DOUBLES], env=environment, capture_output=True, text=True, timeout=120)
    assert spool.name not in result.stderr and spool.exists()
    assert not victim.folder.exists() and victim.process.poll() is None
    victim.kill()
    recover(spool)
    done, tried = victim.bounds()
    assert victim.check_files() == 1 and done <= victim.accounted() <= tried


@no_doubles
def test_on_a_disk_what_was_handed_over_survives(tmp_path):
    spools = tmp_path / "spools"
    spools.mkdir()
    filesystem = subprocess.run(["stat", "-f", "-c", "%T", spools], capture_output=True, text=True).stdout.strip()
    if filesystem == "tmpfs":
        pytest.skip("the temporary folder is in memory")
    victim = Victim(tmp_path, spools)
    victim.wait_until_it_runs()
    before, _ = victim.bounds()
    time.sleep(2)  # the background thread fetches also what lies in chunks that are not full, every 50 ms
    victim.kill()
    said = recover(spools)
    assert "missing is what its threads had not handed over, as its spool lay on a disk" in said
    assert victim.check_files() == 1 and before <= victim.accounted() <= victim.bounds()[1]


@no_doubles
def test_no_room_for_a_spool_is_said(tmp_path):
    """Records then wait in memory, and die with the process: nothing is left, and nothing is claimed."""
    victim = Victim(tmp_path, "/proc")
    victim.wait_until_it_runs(1000)
    victim.process.kill()
    _, said = victim.process.communicate()
    assert b"records wait in memory and do not outlive the process" in said
    assert not victim.folder.exists()


@pytest.mark.parametrize("what", ["nothing", "text", "folder", "old"])
def test_what_is_no_spool_is_refused_in_one_line(tmp_path, what):
    path = tmp_path / f"tprof.1.{what}.spool"
    if what == "text":
        path.write_text("hello\n" * 4000)
    elif what == "old":
        path.write_bytes(b"TPSPOOL1" + bytes(1 << 20))
    elif what == "folder":
        path.mkdir()
    if what == "folder":
        assert recover(path) == ""
    else:
        (line,) = recover(path, status=1).splitlines()
        assert line.startswith("tprof recover: ") and path.name in line
    assert what == "nothing" or path.exists()


# -- the ways a training dies --

TRAINING = """
import os, signal, sys, torch
MODEL = torch.nn.Linear(8, 8)
OPTIMIZER = torch.optim.SGD(MODEL.parameters(), lr=0.1)
def step():
    OPTIMIZER.zero_grad()
    MODEL(torch.ones(4, 8)).sum().backward()
    OPTIMIZER.step()
for _ in range(20):
    step()
print("trained", flush=True)
"""

OPERATOR_THAT_CRASHES = """
import ctypes
library = torch.library.Library("deadly", "DEF")
library.define("crash(Tensor x) -> Tensor")
library.impl("crash", lambda x: ctypes.string_at(0) and x, "CPU")
torch.ops.deadly.crash(torch.ones(1))
"""

DEATHS = {  # the program's last lines, and the status that it must end with
    "sigkill": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    "segfault_in_an_operator": (OPERATOR_THAT_CRASHES, -signal.SIGSEGV),
    "faulthandler": ("import faulthandler; faulthandler.enable()\n" + OPERATOR_THAT_CRASHES, -signal.SIGSEGV),
    "abort": ("os.abort()", -signal.SIGABRT),
    "sigbus": ("os.kill(os.getpid(), signal.SIGBUS)", -signal.SIGBUS),
    "sigquit": ("os.kill(os.getpid(), signal.SIGQUIT)", -signal.SIGQUIT),
}


@no_memory_folder
@pytest.mark.parametrize("death", DEATHS)
def test_a_training_that_dies(run, spools, death):
    last, status = DEATHS[death]
    result = run(TRAINING + last, TPROF_SCHEDULE="always", TPROF_SPOOL_DIR=spools)
    bare = run.bare(TRAINING + last)
    assert result.status == bare.status == status
    assert result.stdout == bare.stdout == "trained\n"
    assert re.sub("0x[0-9a-f]+", "", result.stderr) == re.sub("0x[0-9a-f]+", "", bare.stderr)  # faulthandler's
    assert not result.folder.exists()
    said = recover(spools)
    assert "wrote 3 files of python" in said
    check(result.trace.path)
    assert result.summary["ended"] == "died"
    names = [event.name for event in result.trace.events if event.category == "cpu_op"]
    assert names.count("aten::addmm") == 20
    assert ("deadly::crash" in names) == (OPERATOR_THAT_CRASHES in last)
    assert not list(spools.iterdir())


@no_memory_folder
def test_a_core_is_dumped_as_ever(run, spools):
    import resource
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        pytest.skip("no core files here")
    program = ("import resource\nresource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)\n"
               + TRAINING + "os.abort()")
    parent = "import os, subprocess, sys\np = subprocess.Popen([sys.executable, '-c', sys.argv[1]])\n" \
             "print(os.WCOREDUMP(os.waitpid(p.pid, 0)[1]), flush=True)"
    folder = run.root / "cores"
    folder.mkdir()
    seen = []
    for preload in (None, str(LIBRARY)):
        environment = dict(CLEAN, TPROF_SPOOL_DIR=str(spools), **({"LD_PRELOAD": preload} if preload else {}))
        process = subprocess.Popen([sys.executable, "-c", parent, program], env=environment, cwd=folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        seen.append(finish(process, folder).stdout)
        for core in folder.glob("core*"):
            core.unlink()
    assert seen[0] == seen[1]


def memory_group():
    """A cgroup with a limit, by either hierarchy, and the file that takes process ids; None: not here."""
    for root, limit in ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")):
        group = root / f"tprof-test-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text(str(700 << 20))
            return group
        except OSError:
            if group.exists():
                group.rmdir()
    return None


@no_memory_folder
def test_a_memory_kill(run, spools):
    group = memory_group()
    if not group:
        pytest.skip("no cgroup with a memory limit can be made here")
    try:
        program = (f"open({str(group / 'cgroup.procs')!r}, 'w').write('0')\n" + TRAINING +
                   "x = []\nwhile True:\n    x.append(torch.ones(1 << 22))")
        result = run(program, TPROF_SCHEDULE="always", TPROF_SPOOL_DIR=spools)
        assert result.status == -signal.SIGKILL
        assert "wrote 3 files of python" in recover(spools)
        check(result.trace.path)
        assert result.summary["ended"] == "died"
    finally:
        for _ in range(50):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)
