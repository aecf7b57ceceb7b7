"""A program that runs for days: hundreds of profiling cycles in one process leave nothing behind but their files."""
import pytest

from jobs import needs_job, run_job

pytestmark = needs_job


def measured(text):
    """Lines in groups of three, taken while our threads may have been busy: the least of each."""
    lines = [dict(zip(words[1::2], map(int, words[2::2]))) for words in
             (line.split() for line in text.splitlines() if line.startswith("measured"))]
    return [{k: min(line[k] for line in lines[i:i + 3]) for k in lines[0]} for i in range(0, len(lines), 3)]


def assert_flat(points, slack):
    """The least of the last third is that of the first: what is taken for a moment may be seen anywhere, a leak stays."""
    third = len(points) // 3
    for name in points[0]:
        values = [point[name] for point in points]
        assert min(values[-third:]) <= min(values[:third]) + slack.get(name, 0), (name, values)


def days(tmp_path, cycles, since, **settings):
    words = []
    for cycle in range(1, cycles + 1):
        words.append(f"train 3 settle {{out}} {2 * cycle}")
        if cycle % 20 == 0 and cycle >= since:
            words.append("nap measure nap measure nap measure")
    ran = run_job(" ".join(words), tmp_path / "out", tmp_path, timeout=240,
                  TPROF_SCHEDULE="wait=1,warmup=1,active=1,repeat=0", **settings)
    assert ran.status == 0, ran.stdout + ran.stderr
    assert [line for line in ran.lines if "records wait in memory" not in line] == []
    assert f"of all {cycles} cycles" in ran.stderr
    assert len(ran.files()) == 2 * cycles + 1
    return measured(ran.stdout)


@pytest.mark.parametrize("settings", [{"TPROF_SPOOL_DIR": None}, {"TPROF_SPOOL_DIR": "{tmp}"}, {"TPROF_SPOOL_DIR": "{tmp}/missing"}],
                         ids=["/dev/shm", "a folder", "memory"])
def test_three_hundred_cycles(tmp_path, settings):
    points = days(tmp_path, 300, 60, **settings)
    assert len(points) == 13
    # The report at the end will tell of each of these cycles, which takes half a KB; a page for each would be 960.
    assert_flat(points, {"resident": 400, "size": 128, "maps": 2})


def test_when_the_report_is_full(tmp_path):
    """After the 1024th cycle nothing is kept of one."""
    points = days(tmp_path, 1400, 1060)
    assert len(points) == 18
    assert_flat(points, {"resident": 60, "size": 256, "maps": 2})  # times of steps are kept up to a number of their own


def test_on_real_pytorch(run):
    pytest.importorskip("torch")
    program = """
import os, time, torch
a = torch.ones(4)
sgd = torch.optim.SGD([torch.ones(4, requires_grad=True)], lr=.1)
def settle(n):
    for _ in range(20000):
        names = os.listdir(os.environ["TPROF_DIR"]) if os.path.isdir(os.environ["TPROF_DIR"]) else []
        if len(names) == n and not any(name.startswith(".") for name in names): return
        time.sleep(.001)
    raise SystemExit("no files")
for cycle in range(1, 61):
    for _ in range(3):
        torch.add(a, a); sgd.step()
    settle(2 * cycle)
    if cycle % 15 == 0:
        for _ in range(3):
            time.sleep(.002)
            status = dict(line.partition(":")[::2] for line in open("/proc/self/status"))
            numbers = sum(len(os.listdir(f"/proc/self/task/{t}/fd")) for t in os.listdir("/proc/self/task"))
            print("measured resident", status["VmRSS"].split()[0], "size", status["VmSize"].split()[0],
                  "threads", int(status["Threads"]), "maps", len(open("/proc/self/maps").readlines()), "numbers", numbers)
"""
    result = run(program, TPROF_SCHEDULE="wait=1,warmup=1,active=1,repeat=0", TPROF_STEP="optimizer")
    assert result.status == 0, result.stdout + result.stderr
    assert len(result.files("")) == 2 * 60 + 1
    # The program's own memory grows a little too; a cycle that left its 64 KB behind would make 2880.
    assert_flat(measured(result.stdout), {"resident": 1500, "size": 1500, "maps": 8})
