"""Processes: one row a situation, most of them over a small C program and the fake libtorch
(test/processes), some over PyTorch. In each: nothing hangs, every process has the status it would have
without tprof, the files of each process that should have some are sound and count what it made (kept + lost), and no
spool is left."""
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import BUILD, CLEAN, COMMAND, LIBRARY, check, spool_folder
from traces import Trace

PROGRAM = BUILD / "test" / "processes" / "processes"
DOUBLES = BUILD / "test" / "doubles"
REPEAT = int(os.environ.get("TPROF_REPEAT", "20"))  # how often each way out is tried
needs_doubles = pytest.mark.skipif(not PROGRAM.exists(), reason="make doubles has not been run")
UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc"]
needs_namespaces = pytest.mark.skipif(
    not shutil.which("unshare") or subprocess.run([*UNSHARE, "true"], capture_output=True).returncode != 0,
    reason="unshare --pid is not permitted here")


@pytest.fixture
def spool():
    return spool_folder()


def bare(command, timeout=60):
    return subprocess.run(command, env=CLEAN, capture_output=True, text=True, timeout=timeout)


class Run:
    """One run under tprof, and what it left. A hang is an error here."""

    def __init__(self, command, folder, spool, timeout=60, **settings):
        self.folder, self.spool = folder, spool
        environment = dict(CLEAN, LD_PRELOAD=str(LIBRARY), TPROF_DIR=str(folder), TPROF_SPOOL_DIR=spool,
                           TPROF_SCHEDULE="always", TPROF_BUFFER_MB="16", TPROF_CHILDREN="all", TPROF_LOG="quiet")
        environment.update(settings)
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
        self.status, self.stdout, self.stderr = result.returncode, result.stdout, result.stderr

    def made(self):
        """What each process said that it had made: pid, count."""
        return sorted((int(pid), int(count)) for pid, count in re.findall(r"^made (\d+) (\d+)$", self.stdout, re.M))

    def told(self):
        """The same from the files: of each process one trace, sound, and one summary, which agree."""
        traces = [Trace(f) for f in self.folder.glob("*.pt.trace.json.gz")]
        for trace in traces:
            check(trace.path)
        assert len({t.path for t in traces}) == len(traces) == len(list(self.folder.glob("*.summary.json")))
        assert all(f.name.endswith((".gz", ".txt", ".json")) for f in self.folder.glob("*")), "a temporary file is left"
        return sorted((t.told["pid"], t.told["kept"] + t.told["lost"]) for t in traces)

    def trace_of(self, pid):
        (trace,) = [t for t in map(Trace, self.folder.glob("*.gz")) if t.told["pid"] == pid]
        return trace

    def assert_nothing_is_left(self):
        assert os.listdir(self.spool) == []


def without_numbers(text):
    return sorted(re.sub(r"\d+", "N", text).splitlines())


SITUATIONS = {
    # name: words of the command, settings, which of the processes that made operators have files
    "fork, exit": (["fork", "exit"], {}, "all"),
    "fork, _exit": (["fork", "_exit"], {}, "all"),
    "fork, child ends by SIGTERM": (["fork", "SIGTERM"], {}, "all"),
    "fork, auto": (["fork", "exit"], {"TPROF_CHILDREN": "auto"}, "parent"),
    "fork, auto, child trains": (["fork", "trains"], {"TPROF_CHILDREN": "auto"}, "all"),
    "fork, none, child trains": (["fork", "trains"], {"TPROF_CHILDREN": "none"}, "parent"),
    "1000 forks, 8 threads record": (["fork_1000"], {}, "all"),
    "fork inside an operator": (["fork_in_operator"], {}, "all"),  # C45
    "fork in a thread": (["fork_in_thread"], {}, "all"),  # C45
    "fork in a fork": (["fork_in_fork"], {}, "all"),
    "fork in a signal handler": (["fork_in_signal_handler"], {"TPROF_BUFFER_MB": "256"}, "all"),
    "fork after all descriptors were closed": (["close_everything"], {}, "all"),
    "raw clone": (["raw_clone", "exit"], {}, "all"),
    "raw clone, child forks": (["raw_clone", "fork"], {}, "all"),
    "raw clone, child executes": (["raw_clone", "exec"], {}, "all"),
    "raw clone, child ends its thread": (["raw_clone", "pthread_exit"], {}, "all"),
    "_Fork": (["_Fork", "exit"], {}, "all"),
    "1000 children of vfork": (["share_memory", "vfork"], {}, "all"),  # C46
    "1000 children of posix_spawn": (["share_memory", "spawn"], {}, "all"),  # C46
    "1000 children of clone(CLONE_VM)": (["share_memory", "clone"], {}, "all"),  # C46
    "daemon": (["daemon"], {}, "all"),
    "the main thread ends before the others": (["leave_main_thread"], {}, "all"),
    "sigwait takes 10,000 signals": (["signals", "sigwait"], {}, "all"),  # C48
    "signalfd takes 10,000 signals": (["signals", "signalfd"], {}, "all"),  # C48
    "SIGALRM and SIGPROF, EINTR": (["timers"], {}, "all"),  # C48
    **{f"exec: {how}": (["exec", how], {}, "all")
       for how in ("execv", "execve", "execvp", "execvpe", "execl", "execlp", "execle", "execveat", "fexecve")},
    **{f"exec that fails: {how}": (["exec_fails", how], {}, "all")
       for how in ("execv", "execve", "execvp", "execvpe", "execl", "execlp", "execle", "execveat", "fexecve")},
}


@needs_doubles
@pytest.mark.parametrize("situation", SITUATIONS)
def test_situation(tmp_path, spool, situation):
    words, settings, have_files = SITUATIONS[situation]
    command = [PROGRAM, DOUBLES, *words]
    expected = bare(command)
    run = Run(command, tmp_path / "out", spool, **settings)
    assert (run.status, without_numbers(run.stdout), run.stderr) == (
        expected.returncode, without_numbers(expected.stdout), expected.stderr)
    made = run.made()
    assert len(made) > 0 and len({pid for pid, _ in made}) == len(made)
    assert run.told() == (made if have_files == "all" else made[:1])
    run.assert_nothing_is_left()


@needs_doubles
def test_a_child_has_its_own_ids_and_none_of_the_parents_records(tmp_path, spool):
    """C45: the child's events bear its own ids; nothing of the parent is among them, nor the other way round."""
    run = Run([PROGRAM, DOUBLES, "fork_in_thread"], tmp_path / "out", spool)
    assert run.status == 0
    for pid, count in run.made():
        trace = run.trace_of(pid)
        assert len(trace.operators()) == trace.told["kept"] == count
        threads = {e.thread for e in trace.operators()}
        # The child's only thread bears its process id; the parent's operators are those of two threads.
        assert (pid in threads) and len(threads) == (1 if count == 10 else 2)


WAYS = ["return", "exit", "exit in a handler", "quick_exit", "_exit", "_Exit", "exit_group", "abort", "segv",
        *(f"signal {int(s)}" for s in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGQUIT, signal.SIGBUS))]
DIES = ("exit_group", "abort", "segv", "signal 9", "signal 3", "signal 7")


@needs_doubles
@pytest.mark.parametrize("way", WAYS)
def test_c52_ways_out(tmp_path, spool, way):
    """C52: whatever way out, with threads in operators: status, signal, stdout and stderr as without tprof, every
    time. Where nothing of ours can run, the spool has it all."""
    command = [PROGRAM, DOUBLES, "leave", way]
    expected = bare(command)
    for i in range(REPEAT):
        run = Run(command, tmp_path / str(i), spool)
        assert (run.status, run.stdout, run.stderr) == (expected.returncode, expected.stdout, expected.stderr)
        if way in DIES:
            (left,) = os.listdir(spool)
            recovered = subprocess.run([COMMAND, "recover", os.path.join(spool, left)], capture_output=True, text=True,
                                       timeout=60)
            assert recovered.returncode == 0, recovered.stdout + recovered.stderr
        ((_, count),) = run.told()
        assert count >= 100
        run.assert_nothing_is_left()


@needs_doubles
def test_fork_while_a_signal_ends_the_process(tmp_path, spool):
    """The children made in that moment end by themselves: one that waited for the signal would hold the pipe."""
    run = Run([PROGRAM, DOUBLES, "fork_while_dying"], tmp_path / "out", spool, TPROF_BUFFER_MB="256")
    assert run.status == -signal.SIGTERM
    ((_, count),) = run.told()
    assert count == 200000
    run.assert_nothing_is_left()


@needs_doubles
@needs_namespaces
@pytest.mark.parametrize("argument, processes", [("plain", 2), ("signal", 1)])
def test_process_1(tmp_path, spool, argument, processes):
    """SIGTERM does not end process 1 of a namespace. tprof takes it for the end, as a container's is, and the process
    goes on unrecorded; its later exit waits for nobody."""
    command = [*UNSHARE, PROGRAM, DOUBLES, "first", argument]
    expected = bare(command)
    run = Run(command, tmp_path / "out", spool)
    assert (run.status, run.stdout, run.stderr) == (expected.returncode, expected.stdout, expected.stderr)
    assert run.status == 5
    told = run.told()
    assert len(told) == processes and told[0] == (1, 50)
    run.assert_nothing_is_left()


@needs_doubles
@needs_namespaces
def test_pid_namespaces_share_a_folder(tmp_path, spool):
    """Four processes, each of them process 1 on the same host, write at the same time."""
    shell = " & ".join(f"{' '.join(UNSHARE)} {PROGRAM} {DOUBLES} plain" for _ in range(4)) + " & wait"
    run = Run(["sh", "-c", shell], tmp_path / "out", spool)
    assert run.status == 0
    assert [pid for pid, _ in run.made()] == [1] * 4
    assert run.told() == run.made()
    run.assert_nothing_is_left()


@needs_doubles
@needs_namespaces
def test_a_process_id_comes_again(tmp_path, spool):
    """The first process of that id is killed, the second writes the files of both."""
    shell = (f"echo 100 > /proc/sys/kernel/ns_last_pid || exit 77; {PROGRAM} {DOUBLES} leave 'signal 9'\n"
             f"echo 100 > /proc/sys/kernel/ns_last_pid || exit 77; {PROGRAM} {DOUBLES} plain")
    run = Run([*UNSHARE, "sh", "-c", shell], tmp_path / "out", spool)
    if run.status == 77:
        pytest.skip("ns_last_pid cannot be written here")
    ((pid, count),) = run.made()
    told = run.told()
    assert [p for p, _ in told] == [pid, pid] == [101, 101]
    assert count in [c for _, c in told]
    run.assert_nothing_is_left()


TORCH = subprocess.run([sys.executable, "-c", "import torch"], env=CLEAN, capture_output=True).returncode == 0
needs_torch = pytest.mark.skipif(not TORCH, reason="this Python has no torch")
HEAD = """
import concurrent.futures, multiprocessing, os, subprocess, sys, threading
import torch, torch.multiprocessing as mp
torch.set_num_threads(1)
a = torch.ones(4)
def work(n):
    for _ in range(n): torch.sub(a, a)
    return os.getpid()
def train(rank):
    w = torch.ones(3, requires_grad=True); (w * 2).sum().backward(); work(20)
"""
PYTHON_ROWS = {
    # program, how many processes have files under "auto", how many under "all" (None: as many as the pool has workers)
    "subprocess.run in 4 threads": ("""
def run(): # C46
    for i in range(25):
        work(10)
        try: assert subprocess.run(['true' if i % 5 else '/none/such']).returncode == 0 and i % 5
        except FileNotFoundError: assert i % 5 == 0
ts = [threading.Thread(target=run) for _ in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]
""", 1, 1),
    "os.posix_spawn": ("""
work(1000)
for _ in range(20): assert os.waitpid(os.posix_spawn('/bin/true', ['true'], os.environ), 0)[1] == 0
""", 1, 1),
    "os.fork while threads record": ("""
stop = threading.Event() # C45
def run():
    while not stop.is_set(): work(10)
ts = [threading.Thread(target=run) for _ in range(4)]
[t.start() for t in ts]
for i in range(20):
    pid = os.fork()
    if pid == 0:
        if i == 7: work(30)
        os._exit(i)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == i
stop.set(); [t.join() for t in ts]; work(1000)
""", 1, 2),
    "os.fork inside a range and a hook": ("""
w = torch.ones(3, requires_grad=True) # C45: in a callback of the backward pass
children = []
def fork_here(gradient):
    pid = os.fork()
    if pid == 0:
        work(30); os._exit(3)
    children.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
w.register_hook(fork_here)
with torch.profiler.record_function('range'): (w * 2).sum().backward()
work(1000)
assert children == [3]
""", 1, 2),
    "ProcessPoolExecutor, fork": ("""
work(1000) # C53
with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('fork')) as pool:
    assert len(list(pool.map(work, [10] * 8, chunksize=4))) == 8
""", 1, None),
    "mp.spawn inside a fork": ("""
if __name__ == '__main__': # C53
    work(1000)
    pid = os.fork()
    if pid == 0:
        mp.spawn(train, nprocs=2)
        sys.exit(6)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 6
""", 3, 3),
}


@needs_torch
@pytest.mark.parametrize("row, children", [(row, children) for row in PYTHON_ROWS for children in ("auto", "all")] +
                         [("mp.spawn inside a fork", "none")])
def test_python(tmp_path, spool, row, children):
    program, auto, everyone = PYTHON_ROWS[row]
    script = tmp_path / "program.py"
    script.write_text(HEAD + program)
    run = Run([sys.executable, script], tmp_path / "out", spool, timeout=170, TPROF_CHILDREN=children,
              TPROF_BUFFER_MB="64")
    assert (run.status, run.stdout) == (0, ""), run.stderr
    told = run.told()
    run.assert_nothing_is_left()
    wanted = {"auto": auto, "all": everyone, "none": 1}[children]
    if wanted is not None:
        assert len(told) == wanted
    assert len({pid for pid, _ in told}) == len(told)
    subs = sorted(Trace(f).count("aten::sub") for f in (tmp_path / "out").glob("*.gz"))
    assert subs[-1] >= 1000
    assert all(n in (10, 20, 30, 40, 50, 60, 70, 80) for n in subs[:-1])


@needs_torch
def test_torchrun(tmp_path, spool):
    """C53: one file for each rank, none for torchrun itself, which loads PyTorch and runs no operator of a training."""
    script = tmp_path / "rank.py"
    script.write_text(HEAD + "train(0)\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", script]
    run = Run(command, tmp_path / "out", spool, timeout=170, TPROF_CHILDREN="auto", TPROF_BUFFER_MB="64")
    assert run.status == 0, run.stderr
    assert sorted(run.stdout.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    ranks = [Trace(f) for f in (tmp_path / "out").glob("*.gz") if Trace(f).count("aten::sub")]
    assert sorted(t.json["distributedInfo"]["rank"] for t in ranks) == [0, 1]
    assert all(t.count("aten::sub") == 20 for t in ranks)
    run.told()
    run.assert_nothing_is_left()
