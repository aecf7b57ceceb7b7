"""Every call of the C library that the agent makes fails once, one after the other, and then from the n-th on: the job's
output and status stay as they are, nothing hangs or crashes, what is written is valid, and what is missing is told."""
import os
import pathlib
import tempfile

import pytest

from conftest import spool_folder
from jobs import FAKES, needs_job, run_job

pytestmark = needs_job
WORDS = "train 6 exit 3"
EXPECTED = (3, "operators 492\n")
# How many of its calls a run makes at most; a run that makes more is a test that stopped too early.
FUNCTIONS = {"malloc": 1, "mmap": 60, "munmap": 60, "madvise": 60, "ftruncate": 10, "posix_fallocate": 40, "write": 40,
             "pwrite": 60, "read": 200, "fstat": 99, "fstatat": 40, "fstatvfs": 9, "fstatfs": 9, "mkdir": 9, "unlink": 9,
             "unlinkat": 9, "renameat2": 9, "flock": 9, "getcwd": 9, "getrandom": 9, "pthread_create": 9,
             "pthread_key_create": 9, "__register_atfork": 9, "__cxa_atexit": 9, "dlopen": 20, "dlinfo": 99, "dlsym": 120,
             "close": 60, "open": 60, "openat": 40, "fcntl": 40, "syscall": 60}
NEVER = {"malloc", "unlinkat"}
# What is made once for a process and the children it forks.
INHERITED = {"mkdir", "pthread_key_create", "__register_atfork", "__cxa_atexit", "dlopen", "dlinfo", "dlsym"}
SETTINGS = {"pwrite": {"TPROF_SPOOL_DIR": "{tmp}"}, "fstatvfs": {"TPROF_SPOOL_DIR": None}, "getcwd": {"TPROF_DIR": "out"}}


def run(tmp_path, fail, words=WORDS, expected=EXPECTED, **settings):
    """One run in a fresh folder; whether the call came to fail, and the run."""
    here = tempfile.mkdtemp(dir=tmp_path)
    spools = spool_folder()
    mark = f"{here}/mark"
    ran = run_job(words, f"{here}/out", tmp_path, FAIL=fail, FAIL_MARK=mark, TPROF_SCHEDULE="wait=1,warmup=1,active=2,repeat=1",
                  behind=FAKES / "libfail.so", cwd=here, **dict({"TPROF_SPOOL_DIR": spools}, **settings))
    left = [] if "unlink" in fail else os.listdir(spools)
    fired = os.path.exists(mark)
    assert (ran.status, ran.stdout) == expected, (fail, ran)
    assert left == [], fail
    assert ran.others == [], fail
    return fired, ran


def judge(fail, ran, is_whole):
    if "unlinkat" not in fail:
        ran.check()
    if fail.startswith("write"):
        return  # the line itself may be what failed
    assert ran.lines or is_whole, (fail, ran)


@pytest.mark.parametrize("later", ["", "+"], ids=["once", "from then on"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_call_that_fails(tmp_path, function, later):
    for number in range(1, FUNCTIONS[function] + 1):
        fired, ran = run(tmp_path, f"{function}:{number}{later}", **SETTINGS.get(function, {}))
        if not fired:
            assert ran.lines == [] and len(ran.files()) == 3
            break
        judge(f"{function}:{number}{later}", ran, len(ran.files()) == 3)
    else:
        pytest.fail(f"more than {FUNCTIONS[function]} calls")
    assert (number == 1) == (function in NEVER)


def test_no_table_is_of_a_part(tmp_path):
    """Whatever memory is missing for its rows: it is whole, says that it is not, or is not there. Empty: nothing was recorded."""
    tables = []
    for number in range(1, FUNCTIONS["mmap"] + 1):
        fired, ran = run(tmp_path, f"mmap:{number}", "train 3 names 1000 train 3 exit 3", (3, "operators 1492\n"),
                         TPROF_ROW_LIMIT="-1")
        tables += [len(text.splitlines()) for text in map(pathlib.Path.read_text, ran.files(".table.txt"))
                   if "there was no memory to write all of it" not in text]
        if not fired:
            break
    assert tables[-1] > 1000 and set(tables) <= {0, tables[-1]}


# In a child that is forked while its parent records. The parent's files are whole in any case.
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_call_that_fails_in_a_child(tmp_path, function):
    for number in range(1, FUNCTIONS[function] + 1):
        fired, ran = run(tmp_path, f"{function}:{number}+", "train 4 fork " + WORDS, (3, "operators 820\n"), FAIL_IN="children",
                         TPROF_CHILDREN="all", **SETTINGS.get(function, {}))
        if not fired:
            assert ran.lines == [] and len(ran.files(".summary.json")) == 2
            break
        judge(f"{function}:{number}+", ran, len(ran.files()) == 6)
    else:
        pytest.fail(f"more than {FUNCTIONS[function]} calls")
    assert (number == 1) == (function in NEVER | INHERITED)


# Where the kernel gives our threads no table of their own, numbers are shared with the program, and looked at before use. The
# program takes them while none is in use: between a look and the use remains a moment (agent/descriptors.h).
@pytest.mark.parametrize("words", ["close", "close own {tmp}", "own {tmp}"])
def test_numbers_that_are_shared(tmp_path, words):
    ran = run_job(f"train 4 settle {{out}} 2 {words} train 8", tmp_path / "out", tmp_path, behind=FAKES / "libfail.so",
                  FAIL="syscall:1+", TPROF_SCHEDULE="wait=1,warmup=1,active=2,repeat=0")
    assert ran.status == 0
    assert ran.stdout == ("own files are as they were\n" if "own" in words else "") + "operators 984\n"
    assert ran.check() == 3
    assert ran.lines == []
