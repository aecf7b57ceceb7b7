"""Neighbours: other preloaded libraries, debuggers, instrumented programs, and children that tprof cannot enter. In
each: nothing hangs, status and stdout are those without tprof, the files are sound and count what was made. What is not
installed here is left out, by name."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import CLEAN, LIBRARY, Runner, check
from test_processes import DOUBLES, PROGRAM, Run, bare, needs_doubles, needs_torch, spool, without_numbers  # noqa: F401

LIBRARIES = {
    "jemalloc": "/usr/lib/*/libjemalloc.so.2",
    "tcmalloc": "/usr/lib/*/libtcmalloc_minimal.so.4",
    "mimalloc": "/usr/lib/*/libmimalloc.so.2*",
    "faketime": "/usr/lib/*/faketime/libfaketimeMT.so.1",
    "stdbuf": "/usr/libexec/coreutils/libstdbuf.so",
}
# How the clock is told to lie: set back, set forward, stopped, fast.
FAKETIMES = {"years ago": "-10y", "years ahead": "+10y", "stopped": "2020-01-01 00:00:00", "fast": "-10y x3"}


def library(name):
    found = sorted(glob.glob(LIBRARIES[name]))
    if not found:
        pytest.skip(f"{name} is not installed")
    return found[0]


def both(path, order):
    return f"{path} {LIBRARY}" if order == "before us" else f"{LIBRARY} {path}"


ROWS = [(name, {}) for name in ("jemalloc", "tcmalloc", "mimalloc")] + [("stdbuf", {"_STDBUF_O": "0"})] + \
       [("faketime", {"FAKETIME": value}) for value in FAKETIMES.values()]
IDS = ["jemalloc", "tcmalloc", "mimalloc", "stdbuf", *(f"faketime {name}" for name in FAKETIMES)]


@needs_doubles
@pytest.mark.parametrize("order", ["before us", "behind us"])
@pytest.mark.parametrize("situation", [["plain"], ["fork", "exit"], ["fork_1000"]], ids=["plain", "fork", "1000 forks"])
@pytest.mark.parametrize("name, variables", ROWS, ids=IDS)
def test_preloaded(tmp_path, spool, name, variables, situation, order):  # noqa: F811
    if situation[0] == "fork_1000" and name in ("faketime", "stdbuf"):
        pytest.skip("many forks are tried with allocators")
    path = library(name)
    command = [PROGRAM, DOUBLES, *situation]
    run = Run(command, tmp_path / "out", spool, LD_PRELOAD=both(path, order), **variables)
    assert run.status == (3 if situation == ["plain"] else 0)
    assert run.stderr == ""
    assert run.told() == run.made()
    run.assert_nothing_is_left()


@needs_torch
@pytest.mark.parametrize("name, order", [("jemalloc", "before us"), ("tcmalloc", "behind us"),
                                         ("mimalloc", "before us"), ("faketime", "behind us")])
def test_preloaded_under_pytorch(tmp_path, spool, name, order):  # noqa: F811
    path = library(name)
    program = "import torch\nw = torch.ones(4, requires_grad=True)\nsgd = torch.optim.SGD([w], lr=.1)\n" \
              "for _ in range(50):\n    sgd.zero_grad(); (w * w).sum().backward(); sgd.step()\nprint(w.tolist())"
    command = [sys.executable, "-c", program]
    run = Run(command, tmp_path / "out", spool, timeout=170, LD_PRELOAD=both(path, order), FAKETIME="-10y",
              TPROF_BUFFER_MB="64")
    assert (run.status, run.stdout) == (0, bare(command).stdout), run.stderr
    assert len(run.told()) == 1
    run.assert_nothing_is_left()


DEBUGGERS = {
    "gdb": ["gdb", "-batch", "-nx", "-ex", "handle SIGTERM nostop noprint pass", "-ex", "run", "-ex", "bt", "--args"],
    "strace": ["strace", "-f", "-o", "/dev/null"],
    # C43. Memcheck's search for leaks does not know that a forked child lacks some memory (MADV_DONTFORK): it is slow.
    "valgrind": ["valgrind", "-q", "--leak-check=no", "--error-exitcode=99"],
}


@needs_doubles
@pytest.mark.parametrize("situation", [["fork", "exit"], ["fork", "_exit"], ["exec", "execv"], ["leave", "signal 15"]],
                         ids=" ".join)
@pytest.mark.parametrize("debugger", DEBUGGERS)
def test_debugger(tmp_path, spool, debugger, situation):  # noqa: F811
    words = DEBUGGERS[debugger]
    if not shutil.which(words[0]):
        pytest.skip(f"{debugger} is not installed")
    command = [*words, PROGRAM, DOUBLES, *situation]
    expected = bare(command, timeout=120)
    run = Run(command, tmp_path / "out", spool, timeout=170)
    assert run.status == expected.returncode
    assert re.findall("^executed", run.stdout, re.M) == re.findall("^executed", expected.stdout, re.M)
    assert "Invalid" not in run.stderr
    told = run.told()
    assert len(told) == (2 if situation[0] == "fork" else 1)
    if situation[0] != "leave":
        assert told == run.made()
    run.assert_nothing_is_left()


@needs_torch
@pytest.mark.parametrize("end, how", [
    ("os.kill(os.getpid(), 11)", "died"),
    ("faulthandler.register(signal.SIGTERM, chain=True); os.kill(os.getpid(), 15)", "SIGTERM"),
    ("faulthandler.dump_traceback_later(0.2); time.sleep(0.5)", "exit")],
    ids=["SIGSEGV", "chained SIGTERM", "traceback later"])
def test_faulthandler(tmp_path, end, how):
    """faulthandler keeps the handlers that were there: ours is not among them."""
    run = Runner(tmp_path)
    spool_folder = tmp_path / "spool"  # not the fixture's: what is killed stays there
    spool_folder.mkdir()
    program = "import faulthandler, os, resource, signal, time, torch\n" \
              "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n" \
              f"faulthandler.enable()\ntorch.ones(2)\n{end}\n"
    expected = run.bare(program)
    result = run(program, TPROF_SPOOL_DIR=spool_folder, TPROF_LOG="quiet", TPROF_BUFFER_MB="64")
    strip = lambda text: re.sub(r"0x[0-9a-f]+", "N", text)  # noqa: E731
    assert (result.status, strip(result.stderr)) == (expected.status, strip(expected.stderr))
    if how != "died":
        check(result.trace.path)
        assert result.summary["ended"] == how
    assert len(os.listdir(spool_folder)) == (how == "died")


HELLO = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    struct sigaction old;
    sigaction(SIGTERM, NULL, &old);
    char *text = malloc(16);
    strcpy(text, old.sa_handler == SIG_DFL ? "default" : "changed");
    puts(text);
    fputs("err\\n", stderr);
    if (argc > 1 && strcmp(argv[1], "bad") == 0) {
        free(text);
        return text[1]; /* for a sanitizer to see */
    }
    free(text);
    return 3;
}
"""


def build(folder, compiler, flags, source=HELLO, name="program"):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    file = folder / (name + ".c")
    file.write_text(source)
    result = subprocess.run([compiler, *flags, "-o", folder / name, file], capture_output=True, text=True)
    if result.returncode != 0:
        pytest.skip(f"{compiler} {' '.join(flags)} does not work here")
    program = folder / name
    if subprocess.run([program], env=CLEAN, capture_output=True).returncode != 3:
        pytest.skip(f"what {compiler} {' '.join(flags)} makes does not run here")
    return program


def same(folder, command, expected_command=None, **settings):
    """status, stdout and stderr with us and without; and no file of ours."""
    expected = bare(expected_command or command)
    environment = dict(CLEAN, LD_PRELOAD=str(LIBRARY), TPROF_DIR=str(folder / "out"))
    environment.update(settings)
    got = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (got.returncode, got.stdout) == (expected.returncode, expected.stdout), got.stderr
    assert not (folder / "out").exists()
    return got, expected


CHILDREN = {
    # C43: instrumented. C50: those that we cannot or must not enter; the loader's own line where it has one.
    "AddressSanitizer": ("gcc", ["-fsanitize=address"], None),
    "AddressSanitizer of clang": ("clang", ["-fsanitize=address"], None),
    "UndefinedBehaviorSanitizer": ("gcc", ["-fsanitize=undefined"], None),
    "ThreadSanitizer": ("gcc", ["-fsanitize=thread"], None),
    "static": ("gcc", ["-static"], None),
    "static-pie": ("gcc", ["-static-pie"], None),
    "32 bits": ("gcc", ["-m32"], r"ERROR: ld\.so: object '\S*' from LD_PRELOAD cannot be preloaded "
                                 r"\(wrong ELF class: ELFCLASS64\): ignored\.\n"),
    "musl": ("musl-gcc", [], None),
    "musl, static": ("musl-gcc", ["-static"], None),
    # C39: how its names are bound.
    "bound late": ("gcc", ["-Wl,-z,lazy"], None),
    "bound at once": ("gcc", ["-Wl,-z,now"], None),
}


@pytest.mark.parametrize("kind", CHILDREN)
def test_child(tmp_path, kind):
    compiler, flags, line = CHILDREN[kind]
    program = build(tmp_path, compiler, flags)
    got, expected = same(tmp_path, [program])
    assert got.stderr == expected.stderr or (line and re.fullmatch(line + expected.stderr, got.stderr))


@pytest.mark.parametrize("order", ["before us", "behind us"])
@pytest.mark.parametrize("argument", ["good", "bad"])
def test_address_sanitizer_preloaded(tmp_path, order, argument):
    """C43: its runtime in either order; it still finds what it is there to find, and its own switch comes first."""
    program = build(tmp_path, "gcc", ["-fsanitize=address"])
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    got, expected = same(tmp_path, [program, argument], LD_PRELOAD=both(runtime, order))
    assert ("heap-use-after-free" in got.stderr) == ("heap-use-after-free" in expected.stderr) == (argument == "bad")
    environment = dict(CLEAN, LD_PRELOAD=str(LIBRARY), ASAN_OPTIONS="verify_asan_link_order=1")
    refused = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1 and len(refused.stderr.splitlines()) == 1


def test_setuid(tmp_path):
    """C50: a set-user-id program run by another user: the loader leaves us out, and so do we ourselves."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv")
    program = build(tmp_path, "gcc", [])
    folder = tmp_path
    while folder != folder.parent:  # pytest's folders are private
        folder.chmod(folder.stat().st_mode | 0o055) if str(folder).startswith("/tmp/pytest") else None
        folder = folder.parent
    program.chmod(0o4755)
    command = ["setpriv", "--reuid=65534", "--clear-groups", program]
    got, expected = same(tmp_path, command)
    assert got.stderr == expected.stderr


SHELL = {
    "env -i": ["env", "-i", "/bin/sh", "-c", "echo out; exit 4"],
    "pipeline": ["sh", "-c", "ls / | sort | grep -c . >&2; (exit 5)"],
    "subshells": ["bash", "-c", "f() { kill -TERM $BASHPID; }; (f); echo $?; (exec sleep 0); wait; trap 'echo t' TERM; "
                  "kill -TERM $$; exit 6"],
    "sudo": ["sudo", "-n", "sh", "-c", "echo out; exit 4"],  # set-user-id: the loader leaves us out
    "sudo that keeps the environment": ["sudo", "-nE", "env", "LD_PRELOAD=" + str(LIBRARY), "sh", "-c", "echo out; exit 4"],
    "busybox": ["busybox", "sh", "-c", "echo out; false"],
    "perl": ["perl", "-e", "$SIG{TERM} = sub { print qq(t\\n) }; kill TERM => $$; system('false'); exit 7"],
    "git": ["git", "--no-pager", "version"],
    "python": [sys.executable, "-c", "import subprocess, signal; print(signal.getsignal(15)); "
               "print(subprocess.run(['sh', '-c', 'exit 3']).returncode); raise SystemExit(8)"],
    "node": ["node", "-e", "process.on('SIGTERM', () => { console.log('t'); process.exit(9) }); "
             "process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 5000)"],
}


@pytest.mark.parametrize("variables", [{}, {"LD_BIND_NOW": "1"}], ids=["", "bound now"])
@pytest.mark.parametrize("name", SHELL)
def test_c39_c50_programs(tmp_path, name, variables):
    """C39, C50: programs of a job that have nothing to do with PyTorch: the same bytes, the same status."""
    if not shutil.which(SHELL[name][0]):
        pytest.skip(f"{SHELL[name][0]} is not installed")
    got, expected = same(tmp_path, SHELL[name], **variables)
    assert got.stderr == expected.stderr


EARLY = """
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int ran;

/* Everything that a preloaded library of ours takes, at a moment when nothing may be ready yet. */
static void use(void)
{
    struct sigaction old;
    void *memory = malloc(100);
    signal(SIGTERM, SIG_IGN);
    if (sigaction(SIGTERM, NULL, &old) != 0 || old.sa_handler != SIG_IGN)
        _exit(90);
    signal(SIGTERM, SIG_DFL);
    if (sigaction(SIGTERM, NULL, &old) != 0 || old.sa_handler != SIG_DFL)
        _exit(91);
    char *arguments[] = {(char *)"none", NULL};
    if (execv("/none/such", arguments) != -1 || errno != ENOENT || execl("/none/such", "none", (char *)NULL) != -1)
        _exit(92);
    free(memory);
    ran++;
}

static int one(void) { return 1; }
static int (*resolve(void))(void)
{
    struct sigaction old;
    sigaction(SIGUSR1, NULL, &old);
    return one;
}
int chosen(void) __attribute__((ifunc("resolve")));

__attribute__((constructor(101))) static void early(void) { use(); }
__attribute__((destructor)) static void late(void)
{
    use();
    printf("late %d\\n", ran);
    fflush(stdout);
}

static pthread_key_t key;
static void at_thread_end(void *value)
{
    (void)value;
    use();
}
static void *thread(void *unused)
{
    pthread_setspecific(key, &key);
    use();
    return unused;
}

int main(void)
{
    pthread_key_create(&key, at_thread_end);
    for (int i = 0; i < 20; i++) {
        pthread_t one_thread;
        pthread_create(&one_thread, NULL, thread, NULL);
        pthread_join(one_thread, NULL);
    }
    pid_t child = vfork();
    if (child == 0)
        _exit(5);
    int status;
    waitpid(child, &status, 0);
    atexit(use);
    return chosen() == 1 && WEXITSTATUS(status) == 5 ? 3 : 4;
}
"""
AUDIT = """
#include <link.h>
#include <signal.h>
unsigned la_version(unsigned version)
{
    struct sigaction old;
    sigaction(SIGTERM, 0, &old);
    return version;
}
"""


@pytest.mark.parametrize("flags", [["-Wl,-z,lazy"], ["-Wl,-z,now"]], ids=["lazy", "now"])
@pytest.mark.parametrize("audit", [False, True], ids=["", "audited"])
def test_c39_early_and_late(tmp_path, flags, audit):
    """C39: what we take is called in constructors, by an IFUNC's resolver, in destructors of threads and of the program,
    beside an audit library."""
    program = build(tmp_path, "gcc", [*flags, "-pthread"], EARLY)
    variables = {}
    if audit:
        (tmp_path / "audit.c").write_text(AUDIT)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "audit.so", tmp_path / "audit.c"], check=True)
        variables["LD_AUDIT"] = str(tmp_path / "audit.so")
    got, expected = same(tmp_path, [program], **variables)
    assert got.stderr == expected.stderr == ""
    assert got.stdout == "late 43\n"


@needs_doubles
@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc", "mimalloc"])
@pytest.mark.parametrize("way", ["exit", "quick_exit", "abort", f"signal {int(signal.SIGTERM)}"])
def test_ways_out_with_allocators(tmp_path, spool, name, way):  # noqa: F811
    """C52 beside another allocator."""
    command = [PROGRAM, DOUBLES, "leave", way]
    run = Run(command, tmp_path / "out", spool, LD_PRELOAD=both(library(name), "before us"))
    expected = bare(command)
    assert (run.status, without_numbers(run.stdout), run.stderr) == (
        expected.returncode, without_numbers(expected.stdout), expected.stderr)
    assert len(os.listdir(spool)) == (way == "abort")
