"""How many instructions an operator costs beyond the program's own: exact counts by callgrind, over a fake libtorch (in which
asking for callbacks costs something too, the same with us and without). Needs no PyTorch."""
import re
import shutil
import subprocess

import pytest

from conftest import BUILD, CLEAN

DRIVER, DOUBLES, LIBRARY = BUILD / "test/tools/operators_driver", BUILD / "test/doubles", BUILD / "libtprof.so"
pytestmark = [pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind"),
              pytest.mark.skipif(not (DRIVER.exists() and DOUBLES.exists()), reason="make drivers doubles has not been run"),
              pytest.mark.skipif("address" in BUILD.name or "thread" in BUILD.name, reason="not under a sanitizer")]
FEW, MANY = 2000, 12000


def instructions(folder, count, settings):
    """Of the first thread."""
    environment = dict(CLEAN)
    if settings is not None:
        environment.update(settings, LD_PRELOAD=str(LIBRARY), TPROF_DIR=str(folder / "out"))
    out = folder / f"callgrind.{count}"
    result = subprocess.run(["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}", DRIVER,
                             DOUBLES, str(count)], env=environment, capture_output=True, text=True, timeout=400)
    assert result.returncode == 0, result.stderr
    return int(re.search(r"^totals: (\d+)", (folder / f"callgrind.{count}-01").read_text(), re.M)[1])


def per_operator(folder, settings=None):
    folder.mkdir()
    return (instructions(folder, MANY, settings) - instructions(folder, FEW, settings)) / (MANY - FEW)


def test_instructions(tmp_path):
    bare = per_operator(tmp_path / "bare")
    wait = "wait=1000,warmup=1,active=1"
    added = {name: per_operator(tmp_path / name, settings) - bare for name, settings in {
        "dormant": {"TPROF_ENABLED": "0"},
        "waiting": {"TPROF_SCHEDULE": wait, "TPROF_HOOK": "interpose"},
        "recording": {"TPROF_SCHEDULE": "always", "TPROF_HOOK": "interpose"}}.items()}
    (BUILD / "e2e").mkdir(exist_ok=True)
    (BUILD / "e2e/instructions.txt").write_text("".join(f"{name}: {count:.1f}\n" for name, count in added.items()))
    assert added["dormant"] <= 8
    assert added["waiting"] <= 40
    assert added["recording"] <= 550  # 412 as of gcc 12
