"""Runs test/places/job.c, a program over the fake libtorch, under the agent: what it does stands in the words it is given."""
import dataclasses
import pathlib
import re
import subprocess

import pytest

from conftest import BUILD, CLEAN, LIBRARY, check, spool_folder

JOB, FAKES = BUILD / "test/places/job", BUILD / "test/doubles"
needs_job = [pytest.mark.skipif(not JOB.exists(), reason="make doubles has not been run"),
             pytest.mark.skipif("-" in BUILD.name, reason="a sanitizer's runtime has to be in the program")]
REPORT = re.compile(r"tprof: (steps? \d|cycle \d|\d+ cycles|all \d+ cycles|the whole run|no recording window|nothing was)|"
                    r"tprof: events are cleared at the end of each cycle|"
                    r"tprof: tprof\.\S*\.spool: wrote")  # another process's, which died


@dataclasses.dataclass
class Ran:
    status: int
    stdout: str
    stderr: str
    folder: pathlib.Path

    @property
    def lines(self):
        """What the agent said, but for the report."""
        return [line for line in self.stderr.splitlines() if line.startswith("tprof: ") and not REPORT.match(line)]

    @property
    def others(self):
        """What stands on stderr and is not the agent's."""
        return [line for line in self.stderr.splitlines() if line.startswith(("double free", "free()", "malloc", "job", "***"))]

    def files(self, suffix=""):
        return sorted(f for f in self.folder.rglob("*" + suffix) if f.is_file()) if self.folder.exists() else []

    def check(self):
        """Nothing half-written lies there, and every trace is sound. How many traces there are."""
        assert [f.name for f in self.files() if ".tmp." in f.name] == []
        traces = self.files(".pt.trace.json.gz") + self.files(".pt.trace.json")
        for trace in traces:
            check(trace)
        return len(traces)


def run_job(words, folder, tmp_path, before=(), bare=False, timeout=60, cwd=None, preexec=None, behind=None, **settings):
    """Words as they are for job.c; {out} {err} {tmp} in them are the output folder, the file of stderr, tmp_path."""
    err = tmp_path / ("bare.err" if bare else "job.err")
    names = {"out": str(folder), "err": str(err), "tmp": str(tmp_path)}
    environment = dict(CLEAN, TPROF_STEP="optimizer", TPROF_DIR=str(folder), TPROF_SPOOL_DIR=spool_folder())
    environment.update({k: v.format(**names) for k, v in settings.items() if v is not None})
    for name in [k for k, v in settings.items() if v is None]:
        environment.pop(name, None)
    words = [w.format(**names) for w in (words.split() if isinstance(words, str) else words)]
    before = [re.sub(r"\{(out|err|tmp)\}", lambda found: names[found[1]], word) for word in before]
    if not bare:
        # After what stands before the program: shells and tools are not the job.
        before = [*before, "env", "LD_PRELOAD=" + ":".join(map(str, filter(None, [LIBRARY, behind])))]
    with open(err, "w") as file:
        result = subprocess.run([*before, JOB, FAKES, *words], env=environment, stdout=subprocess.PIPE, stderr=file,
                                timeout=timeout, cwd=cwd or tmp_path, preexec_fn=preexec)
    return Ran(result.returncode, result.stdout.decode(), err.read_text(errors="replace"), pathlib.Path(folder))
