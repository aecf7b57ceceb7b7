"""Bad places: full disks, limits, missing users and folders. The job's output and status are as without the agent, one line
says what is wrong, and what was written is valid. Most rows run on the fake libtorch (test/places/job.c)."""
import dataclasses
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

from conftest import CLEAN, ROOT, check
from jobs import needs_job, run_job

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
    """The job with and without the agent, which must be the same."""
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


def nofile(number):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))


def without_passwd(*environment):
    return ("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "env", *environment)


SCHEDULE = {"TPROF_SCHEDULE": "wait=1,warmup=1,active=2,repeat=1"}
ROWS = [
    Row("no place is bad", "train 20 exit 3", 1),
    Row("SIGXFSZ, from the start", "limit fsize 2048 train 20", 0, "file size limit"),  # C60
    Row("SIGXFSZ, midway", "train 6 settle {out} 2 limit fsize 1024 train 20", 1, "file size limit", settings=SCHEDULE),
    Row("RLIMIT_AS leaves little", "limit as 70 train 20", 1, settings={"TPROF_SCHEDULE": "always"}),
    Row("RLIMIT_AS, midway", "train 2 limit as 1 train 20", 0, "memory", settings={"TPROF_SCHEDULE": "always"}),
    Row("ulimit -n 8", "train 20", 1, preexec=nofile(8)),
    Row("no number is left midway", "train 2 own {tmp} limit nofile 4 train 20", 1),
    Row("every number is closed", "train 2 close train 20", 1),
    Row("every number is closed and used", "train 2 close own {tmp} train 20", 1),
    Row("every number is used at once", "own {tmp} train 20", 1),
    Row("numbers are closed and used while files are written", "churn {tmp} 400", 40,
        settings={"TPROF_SCHEDULE": "wait=1,warmup=1,active=8,repeat=0"}),
    Row("no HOME, no USER", "train 20", 1, before=("env", "-u", "HOME", "-u", "USER", "-u", "LOGNAME")),  # C59
    Row("a uid without passwd entry", "train 20", 1, before=without_passwd("-u", "HOME", "-u", "USER"), marks=(root_only,)),  # C59
    Row("chdir midway", "train 2 chdir / train 20", 1),
    Row("a working directory that is gone", "chdir gone train 20", 1),
]


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name, marks=[*needs_job, *r.marks]) for r in ROWS])
def test_place(tmp_path, row):
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents:
        if parent.owner() == "root" and parent != pathlib.Path("/") and str(parent).startswith(tempfile.gettempdir() + "/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    ran = place(row.words, tmp_path, before=row.before, preexec=row.preexec, **row.settings)
    assert ran.check() == row.traces
    if row.line:
        (line,) = ran.lines
        assert row.line in line
    else:
        assert ran.lines == []
