"""Bad places: full disks, limits, missing users and folders. The job's output and status are as without the agent, one line
says what is wrong, and what was written is valid. Most rows run on the fake libtorch (test/places/job.c)."""
import dataclasses
import errno
import os
import pathlib
import re
import resource
import shutil
import stat
import subprocess
import sys
import tempfile

import pytest

from conftest import BUILD, CLEAN, ROOT, check
from jobs import FAKES, needs_job, run_job

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make this place")


@pytest.fixture
def mounted():
    """mounted("size=1m"): a tmpfs of that size."""
    made = []

    def mount(options):
        folder = tempfile.mkdtemp(prefix="tprof-place-")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True)
        if done.returncode != 0:
            os.rmdir(folder)
            pytest.skip("no tmpfs can be mounted here: " + done.stderr.strip())
        made.append(folder)
        return pathlib.Path(folder)
    yield mount
    for folder in made:
        subprocess.run(["umount", "-l", folder])
        os.rmdir(folder)


def compare(ran, bare):
    assert (ran.status, ran.stdout) == (bare.status, bare.stdout), ran.stderr
    assert ran.others == []


def place(words, tmp_path, folder=None, **options):
    """The job with and without the agent, which must be the same. Records lie where they do if nothing is said."""
    options = dict({"TPROF_SPOOL_DIR": None}, **options)
    folder = folder or tmp_path / "out"
    bare_words = re.sub(r"(await \S+ \S+|settle \S+ \S+)", "", words)
    bare = run_job(bare_words, folder, tmp_path, bare=True, **options)
    assert "cannot" not in bare.stdout
    ran = run_job(words, folder, tmp_path, **options)
    compare(ran, bare)
    return ran


# Rows: what the job does, settings, how many traces there are, the one line (None: nothing is said).
@dataclasses.dataclass
class Row:
    name: str
    words: str
    traces: int
    line: str = None
    marks: tuple = ()
    settings: dict = dataclasses.field(default_factory=dict)
    before: tuple = ()
    preexec: object = None


def limit(name, number):
    return lambda: resource.setrlimit(getattr(resource, "RLIMIT_" + name), (number, number))


def without_passwd(*environment):
    return ("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "env", *environment)


def mounts(command):
    """A file system of one's own in place of the machine's."""
    return ("unshare", "--mount", "sh", "-c", command + ' && exec "$@"', "sh")


SCHEDULE = {"TPROF_SCHEDULE": "wait=1,warmup=1,active=2,repeat=1"}
ROWS = [
    Row("no place is bad", "train 20 exit 3", 1),
    Row("ulimit -f 1", "train 20", 0, "file size limit", preexec=limit("FSIZE", 1024)),  # C60
    Row("ulimit -f 1, and lines while PyTorch is imported", "train 20", 0, preexec=limit("FSIZE", 0),  # not even stderr, a file here
        settings={"TPROF_NOTHING": "1"}),
    Row("RLIMIT_AS of 60 MB", "train 20", 1, preexec=limit("AS", 60 << 20)),
    Row("RLIMIT_AS of 120 MB", "train 20", 1, preexec=limit("AS", 120 << 20)),
    Row("RLIMIT_AS of 300 MB", "train 20", 1, preexec=limit("AS", 300 << 20)),
    Row("SIGXFSZ, from the start", "limit fsize 2048 train 20", 0, "file size limit"),  # C60
    Row("SIGXFSZ, midway", "train 6 settle {out} 2 limit fsize 1024 train 20", 1, "file size limit", settings=SCHEDULE),
    Row("RLIMIT_AS leaves little", "limit as 70 train 20", 1, settings={"TPROF_SCHEDULE": "always"}),
    Row("RLIMIT_AS, midway", "train 2 limit as 1 train 20", 0, "memory", settings={"TPROF_SCHEDULE": "always"}),
    Row("ulimit -n 8", "train 20", 1, preexec=limit("NOFILE", 8)),
    Row("no number is left midway", "train 2 own {tmp} limit nofile 4 train 20", 0, "too many open files"),
    Row("few numbers are left midway", "train 2 own {tmp} limit nofile 8 train 20", 1),
    Row("every number is closed", "train 2 close train 20", 1),
    Row("every number is closed and used", "train 2 close own {tmp} train 20", 1),
    Row("every number is used at once", "own {tmp} train 20", 1),
    Row("numbers are closed and used while files are written", "churn {tmp} 400", 40,
        settings={"TPROF_SCHEDULE": "wait=1,warmup=1,active=8,repeat=0"}),
    Row("no HOME, no USER", "train 20", 1, before=("env", "-u", "HOME", "-u", "USER", "-u", "LOGNAME")),  # C59
    Row("a uid without passwd entry", "train 20", 1, before=without_passwd("-u", "HOME", "-u", "USER"), marks=(root_only,)),  # C59
    Row("chdir midway", "train 2 chdir / train 20", 1),
    Row("a working directory that is gone", "chdir gone train 20", 1),
    Row("a relative folder, and chdir midway", "train 2 chdir / train 20", 1, settings={"TPROF_DIR": "out"}),
    Row("a relative folder for records, and chdir midway", "train 2 chdir / train 20", 1, settings={"TPROF_SPOOL_DIR": "."}),
    Row("/tmp noexec", "train 20", 1, before=mounts("mount --bind /tmp /tmp && mount -o remount,bind,noexec /tmp"),
        marks=(root_only, pytest.mark.skipif(str(BUILD).startswith("/tmp/"), reason="the program itself lies in /tmp"))),
    Row("/dev/shm of 64 MB", "train 4000", 1, before=mounts("mount -t tmpfs -o size=64m tmpfs /dev/shm"), marks=(root_only,),
        settings={"TPROF_SCHEDULE": "always"}),
    Row("/dev/shm of 64 MB that holds the budget and fills up midway", "train 2 fill /dev/shm/full train 4000", 1,
        before=mounts("mount -t tmpfs -o size=64m tmpfs /dev/shm"), marks=(root_only,),
        settings={"TPROF_SCHEDULE": "always", "TPROF_BUFFER_MB": "64"}),
    Row("no /dev/shm", "train 20", 1, before=mounts("mount -t tmpfs -o ro tmpfs /dev/shm"), marks=(root_only,)),
    Row("a read-only root", "train 20", 0, "read-only file system",
        before=mounts("mount -t tmpfs -o ro tmpfs /mnt"), marks=(root_only,), settings={"TPROF_DIR": "/mnt/out"}),
    Row("no /proc", "train 20", 1, before=mounts("mount -t tmpfs -o ro tmpfs /proc"), marks=(root_only,)),
    Row("a folder that may not be made", "train 20", 0, "permission denied", before=without_passwd(), marks=(root_only,),
        settings={"TPROF_DIR": "/root/out"}),
    Row("a folder that may not be written", "train 20", 0, "permission denied", before=without_passwd(), marks=(root_only,),
        settings={"TPROF_DIR": "/"}),
    Row("a file where the folder should be", "train 20", 0, "not a directory", settings={"TPROF_DIR": str(ROOT / "Makefile")}),
    Row("a file on the way to the folder", "train 20", 0, "not a directory", settings={"TPROF_DIR": str(ROOT / "Makefile/out")}),
    Row("a working directory that cannot be read", "train 20", 1, before=(*without_passwd(), "sh", "-c",
        'mkdir -p {tmp}/dark && chmod 700 {tmp}/dark && cd {tmp}/dark && chmod 0 . && exec "$@"', "sh"), marks=(root_only,)),
]


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name, marks=[*needs_job, *r.marks]) for r in ROWS])
def test_place(tmp_path, row):
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents:
        if parent.owner() == "root" and parent != pathlib.Path("/") and str(parent).startswith(tempfile.gettempdir() + "/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    ran = place(row.words, tmp_path, before=row.before, preexec=row.preexec, **row.settings)
    assert ran.check() == row.traces
    assert list(tmp_path.glob("*.spool")) == []
    if row.line:
        (line,) = ran.lines
        assert row.line in line.lower()
    else:
        assert ran.lines == []


CYCLES = {"TPROF_SCHEDULE": "wait=0,warmup=1,active=4,repeat=0"}


@root_only
def test_a_disk_that_is_full_and_freed_again(tmp_path, mounted):  # C60
    folder = mounted("size=1m")
    words = ("train 5 settle {out} 2 fill {out}/full train 5 await {err} written train 1 remove {out}/full train 9 "
             "settle {out} 6 train 1")
    ran = place(words, tmp_path, folder, **CYCLES)
    assert ran.check() == 4  # the first, two later ones, and the one that the end cut short
    (line,) = ran.lines
    assert "was not written: " in line and "no space left on the device" in line
    told = re.findall(r"^  not written  (.*)$", ran.stderr, re.M)
    # The second cycle's table comes a moment after its trace: by then there may be room again.
    assert [f.rpartition(".")[2] for f in told] == ["gz", "txt"][:6 - len(ran.files(".table.txt"))]


@root_only
def test_an_output_folder_of_a_megabyte(tmp_path, mounted):  # C60
    ran = place("train 8000", tmp_path, mounted("size=1m"), TPROF_SCHEDULE="always", TPROF_USE_GZIP="0")
    assert ran.check() == 0
    (line,) = ran.lines
    assert "pt.trace.json was not written: writing: no space left on the device" in line
    assert len(ran.files(".table.txt")) == len(ran.files(".summary.json")) == 1  # they fit


@root_only
def test_a_quota(tmp_path, mounted):  # C60
    folder = mounted("size=4m,usrquota,usrquota_block_hardlimit=64k")
    folder.chmod(0o777)
    quota_ends(place("train 8000", tmp_path, folder, before=without_passwd(), TPROF_SCHEDULE="always", TPROF_USE_GZIP="0"))


@pytest.mark.parametrize("write", [1, 3])
def test_a_quota_where_the_kernel_has_none(tmp_path, write):  # C60
    quota_ends(place("train 8000", tmp_path, behind=FAKES / "libfail.so", FAIL=f"write:{write}", FAIL_ERRNO=str(errno.EDQUOT),
                     TPROF_SCHEDULE="always", TPROF_USE_GZIP="0"))


def quota_ends(ran):
    assert ran.check() == 0
    (line,) = ran.lines
    assert "quota exceeded" in line


@root_only
@pytest.mark.parametrize("name", ["a/b", "with space", "..", ".hidden", "dots.in.it", "größe-日本", "x" * 64, "%p", "a\nb"])
def test_host_names(tmp_path, name):
    code = "import os, socket, sys; socket.sethostname(sys.argv[1]); os.execvp(sys.argv[2], sys.argv[2:])"
    ran = place("train 20", tmp_path, before=("unshare", "--uts", sys.executable, "-c", code, name))
    assert ran.check() == 1
    assert ran.lines == []
    assert {f.parent for f in ran.files()} == {ran.folder}
    assert len(ran.files()) == 3 and not any(f.name.startswith(".") for f in ran.files())


def test_symbolic_links_in_the_folder(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    ran = place("train 20", tmp_path, tmp_path / "link" / "out")
    assert ran.check() == 1
    assert len(list((tmp_path / "real/out").iterdir())) == 3


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_folder_that_others_may_write(tmp_path, mode):
    folder = tmp_path / "out"
    folder.mkdir()
    folder.chmod(mode)
    ran = place("train 20", tmp_path, folder)
    assert ran.check() == 1
    assert all(f.stat().st_uid == os.geteuid() and not f.is_symlink() for f in ran.files())


def test_a_link_that_leads_nowhere(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    ran = place("train 20", tmp_path, tmp_path / "link")
    assert ran.check() == 0
    (line,) = ran.lines
    assert str(tmp_path / "link") in line


@pytest.mark.parametrize("settings", [{}, {"TPROF_NOTHING": "1"}], ids=["", "with a line while PyTorch is imported"])
@pytest.mark.parametrize("stderr", ['"$@" 2>/dev/full', '"$@" 2>&-', '{ "$@" 2>&1 >&3 3>&- | true; } 3>&1'],
                         ids=["full", "closed", "a pipe that nobody reads"])
def test_a_stderr_that_takes_nothing(tmp_path, stderr, settings):
    assert place("train 20", tmp_path, before=("sh", "-c", "sleep 0.05; " + stderr, "sh"), **settings).check() == 1


TRAINING = """
import os, resource, torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(8, 4)
sgd = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(8):
    sgd.zero_grad(); loss = model(torch.ones(4, 8)).sum(); loss.backward(); sgd.step()
    if i == 2:
        EVENT
print(f"{loss.item():.6f}")
"""
# The same on PyTorch itself: what happens midway, traces, the line.
REAL = {
    "SIGXFSZ": ("resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))", 0, "file size limit"),  # C60
    "every number is closed, chdir": ("os.closerange(3, 4096); os.chdir('/')", 1, None),
}


@pytest.mark.parametrize("name", REAL)
def test_real_training(run, name):
    pytest.importorskip("torch")
    event, traces, expected = REAL[name]
    program = TRAINING.replace("EVENT", event)
    bare = run.bare(program)
    result = run(program)
    assert (result.status, result.stdout) == (bare.status, bare.stdout)
    assert len(result.traces()) == traces
    for trace in result.traces():
        check(trace.path)
    lines = [line for line in result.lines if ".spool: wrote" not in line]
    assert len(lines) == bool(expected)
    assert all(expected in line for line in lines)
