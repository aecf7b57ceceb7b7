"""The command: what it says to wrong use, tprof run, tprof doctor, completions. Needs PyTorch only where marked."""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
COMMAND = BUILD / "tprof"
LIBRARY = BUILD / "libtprof.so"
SHOW = "import json, os; print(json.dumps(dict(os.environ)))"

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here")


def clean():
    return {k: v for k, v in os.environ.items() if not k.startswith(("TPROF_", "LD_PRELOAD"))}


def tprof(*arguments, command=COMMAND, **variables):
    return subprocess.run([command, *map(str, arguments)], env={**clean(), **variables}, capture_output=True, text=True,
                          timeout=120)


def environment(*options, **variables):
    """The environment that a program of `tprof run` gets."""
    result = tprof("run", *options, "--", sys.executable, "-c", SHOW, **variables)
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(result.stdout)


@pytest.mark.parametrize("arguments, said", [
    ([], "tprof: which command? (tprof --help)"),
    (["chekc"], 'tprof: there is no command "chekc"; is check meant?'),
    (["zzzzzz"], 'tprof: there is no command "zzzzzz"; there are run, summary, table, events, check, recover, doctor'),
    (["run"], "tprof run: which program? (tprof run --help)"),
    (["run", "--"], "tprof run: which program? (tprof run --help)"),
    (["run", "--confg", "x", "true"], "tprof run: there is no option --confg; is --config meant?"),
    (["run", "-x", "true"], "tprof run: there is no option --x (tprof run --help)"),
    (["run", "--log"], "tprof run: --log needs a value"),
    (["run", "--gzip-level", "12", "true"], 'tprof run: TPROF_GZIP_LEVEL: "12"; accepted: 1 to 9'),
    (["run", "--config", "/nonesuch", "true"],
     "tprof run: TPROF_CONFIG: /nonesuch: cannot be read: No such file or directory"),
    (["doctor", "--jsn"], "tprof doctor: unknown option --jsn; there are --json and --help"),
])
def test_wrong_use_is_one_line_and_status_2(arguments, said):
    result = tprof(*arguments)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", said + "\n")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"], ["check", "--help"],
                                       ["doctor", "--help"], ["recover", "--help"], ["table", "--help"], ["events", "--help"],
                                       ["summary", "--help"]])
def test_help_goes_to_stdout(arguments):
    result = tprof(*arguments)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout
    with open("/dev/full", "w") as full:
        assert subprocess.run([COMMAND, *arguments], stdout=full, stderr=subprocess.DEVNULL).returncode == 2


@pytest.mark.parametrize("command", [["check"], ["table"], ["table", "--json"], ["events"], ["events", "--json"], ["summary"]])
@pytest.mark.parametrize("count", [1, 500])
def test_what_is_not_heard_is_no_success(tmp_path, command, count):
    """Also where all of it was written, and lost, before the end."""
    events = [{"ph": "X", "cat": "cpu_op", "name": f"aten::op{i}", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5,
               "args": {"External id": i + 1, "Record function id": i + 1, "Ev Idx": i}} for i in range(count)]
    file = tmp_path / "t.pt.trace.json"
    file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    assert subprocess.run([COMMAND, *command, file], capture_output=True).returncode == 0
    with open("/dev/full", "w") as full:
        result = subprocess.run([COMMAND, *command, file], stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 2
    assert result.stderr.startswith(f"tprof {command[0]}: stdout: ")


def test_help_of_run_tells_every_setting():
    text = tprof("run", "--help").stdout
    for variable in (ROOT / "docs" / "settings.md").read_text().split("\n| ")[1:]:
        name = variable.split(" ")[0]
        if name.startswith(("TPROF_", "ENABLE_")):
            assert f"--{name.removeprefix('TPROF_').lower().replace('_', '-')} VALUE" in text


def test_run_sets_variables_and_keeps_the_preload():
    found = environment("--gzip-level", "3", "--log=info", LD_PRELOAD="libdl.so.2", TPROF_GZIP_LEVEL="4",
                        TPROF_DIR="/a")
    assert found["TPROF_GZIP_LEVEL"] == "3"
    assert (found["TPROF_LOG"], found["TPROF_DIR"]) == ("info", "/a")
    assert found["LD_PRELOAD"] == f"{LIBRARY}:libdl.so.2"


def test_run_hands_a_file_over_as_variables(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"row_limit": 5, "activities": ["cpu:[cpu_op]"], "gzip_level": 9, "use_gzip": false,\n'
                    '"metadata_json": {"a": 1.10}, "log": null, "dir": "/b"}')
    found = environment("--config", file, "--gzip-level", "2", TPROF_DIR="/a")
    assert "TPROF_CONFIG" not in found and "TPROF_LOG" not in found
    assert (found["TPROF_GZIP_LEVEL"], found["TPROF_DIR"]) == ("2", "/a")
    assert (found["TPROF_ROW_LIMIT"], found["TPROF_USE_GZIP"]) == ("5", "0")
    assert (found["TPROF_ACTIVITIES"], found["TPROF_METADATA_JSON"]) == ("cpu:[cpu_op]", '{"a": 1.10}')
    assert environment(TPROF_CONFIG=str(file))["TPROF_ROW_LIMIT"] == "5"


def test_run_refuses_a_bad_file_before_the_program_starts(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"log": "info",\n "gzip_level": "12",\n "rwo_limit": 1}')
    result = tprof("run", "--config", file, "touch", tmp_path / "started")
    assert result.returncode == 2
    assert f'tprof run: TPROF_CONFIG: {file}:2:2: gzip_level: "12"; accepted: 1 to 9\n' in result.stderr
    assert f"tprof run: TPROF_CONFIG: {file}:3:2: rwo_limit is not known; is row_limit meant?\n" in result.stderr
    assert not (tmp_path / "started").exists()


def test_run_ends_as_its_program_does(tmp_path):
    assert tprof("run", "sh", "-c", "exit 5").returncode == 5
    assert tprof("run", "sh", "-c", "kill -TERM $$").returncode == -15
    assert tprof("run", "--", "/nonesuch").returncode == 127
    assert tprof("run", tmp_path).returncode == 126
    assert tprof("run", "nonesuch").stderr == "tprof run: nonesuch: No such file or directory\n"


def test_the_library_is_found_where_make_install_puts_it(tmp_path):
    (tmp_path / "bin").mkdir()
    shutil.copy(COMMAND, tmp_path / "bin" / "tprof")
    alone = tprof("run", "true", command=tmp_path / "bin" / "tprof")
    assert alone.returncode == 2
    assert alone.stderr == f"tprof run: libtprof.so: is neither in {tmp_path}/bin/ nor in {tmp_path}/bin/../lib\n"
    (tmp_path / "lib").mkdir()
    shutil.copy(LIBRARY, tmp_path / "lib" / "libtprof.so")
    result = tprof("run", sys.executable, "-c", SHOW, command=tmp_path / "bin" / "tprof")
    assert json.loads(result.stdout)["LD_PRELOAD"] == f"{tmp_path}/lib/libtprof.so"
    blank = tmp_path / "a b"
    blank.mkdir()
    shutil.copy(COMMAND, blank / "tprof")
    shutil.copy(LIBRARY, blank / "libtprof.so")
    refused = tprof("run", "true", command=blank / "tprof")
    assert refused.returncode == 2 and "a folder without blank and colon" in refused.stderr


def test_doctor_says_why_not():
    result = tprof("doctor", "--json", "--", "sh", "-c", "echo oh >&2; exit 3", TPROF_GZIP_LEVEL="12",
                   TPROF_WITH_STACK="1", TPROF_DIR="/dev/null/x")
    assert (result.returncode, result.stderr) == (1, "")
    told = json.loads(result.stdout)
    assert told["works"] is False
    rows = [(row["subject"], row["verdict"], row["text"]) for row in told["findings"]]
    assert ("settings", "broken", 'TPROF_GZIP_LEVEL: "12"; accepted: 1 to 9') in rows
    assert ("settings", "remark", "TPROF_WITH_STACK: Python stacks are not in this build yet; the rest goes on") in rows
    assert ("program", "broken", "sh ended with status 3: oh") in rows
    assert ("files", "broken", "/dev/null/x: /dev/null/x: Not a directory") in rows
    assert ("cpu", "broken", "see above") in rows
    assert [row[0] for row in rows[-5:]] == ["cuda", "xpu", "mtia", "hpu", "privateuse1"]
    assert " NO  program      true loaded no PyTorch" in tprof("doctor", "true").stdout
    assert " NO  program      /nonesuch: No such file or directory\n" in tprof("doctor", "/nonesuch").stdout


@needs_torch
def test_doctor_runs_pytorch(tmp_path):
    result = tprof("doctor", "--", sys.executable, "-c", "import torch; torch.ones(2)", TPROF_DIR=str(tmp_path / "out"))
    assert result.returncode == 0, result.stdout
    assert "yes  program      observes PyTorch " in result.stdout
    assert "yes  program      it wrote 3 files\n" in result.stdout
    assert not (tmp_path / "out").exists()  # its files are its own


def agent(folder, program="import torch; torch.ones(2)", **variables):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                          env={**clean(), "LD_PRELOAD": str(LIBRARY), "TPROF_DIR": str(folder), **variables})


@needs_torch
def test_the_agent_reads_the_file_of_the_start(tmp_path):
    (tmp_path / "a.json").write_text('{"log": "quiet", "on_trace_ready": "chrome", "use_gzip": false}')
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        result = agent(tmp_path / "out", "import os; os.chdir('/'); import torch; torch.ones(2)", TPROF_CONFIG="a.json")
    finally:
        os.chdir(before)
    assert (result.returncode, result.stderr) == (0, "")
    assert len(list((tmp_path / "out").glob("*.pt.trace.json"))) == 1


@needs_torch
def test_strict_may_stand_in_the_file(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"strict": true, "gzip_level": 12}')
    result = subprocess.run(["true"], env={**clean(), "LD_PRELOAD": str(LIBRARY), "TPROF_CONFIG": str(file)},
                            capture_output=True, text=True)
    assert result.returncode == 78
    assert result.stderr == f'tprof: TPROF_CONFIG: {file}:1:18: gzip_level: "12"; accepted: 1 to 9\n'


@needs_torch
def test_without_jansson_one_line_names_the_package(tmp_path):
    """A file that is no library stands in for a machine that has none."""
    (tmp_path / "libjansson.so.4").write_text("")
    file = tmp_path / "a.json"
    file.write_text('{"log": "info"}')
    folders = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("LD_LIBRARY_PATH")]))
    result = agent(tmp_path / "out", LD_LIBRARY_PATH=folders, TPROF_CONFIG=str(file))
    assert result.returncode == 0
    assert "libjansson.so.4 is not here (Debian package libjansson4)" in result.stderr
    assert "stays out" in result.stderr and not (tmp_path / "out").exists()
    # What is left out is left out; the rest goes on.
    result = agent(tmp_path / "out", LD_LIBRARY_PATH=folders, TPROF_METADATA_JSON='{"a": 1}')
    assert "TPROF_METADATA_JSON: is left out: libjansson.so.4 is not here" in result.stderr
    assert list((tmp_path / "out").glob("*.pt.trace.json.gz"))
    # The command needs none.
    ran = tprof("run", "--config", file, sys.executable, "-c", SHOW, LD_LIBRARY_PATH=folders)
    assert json.loads(ran.stdout)["TPROF_LOG"] == "info"


@pytest.mark.parametrize("words, expected", [
    (["tprof", "ch"], ["check"]),
    (["tprof", "run", "--gz"], ["--gzip-level"]),
    (["tprof", "run", "--log", "de"], ["debug"]),
    (["tprof", "run", "--log", "=", "de"], ["debug"]),
    (["tprof", "run", "--children", ""], ["auto", "all", "none"]),
    (["tprof", "run", "--log", "info", "--ch"], ["--children"]),
    (["tprof", "check", "--j"], ["--json"]),
    (["tprof", "summary", "--j"], ["--json"]),
    (["tprof", "table", "--fl"], ["--flops"]),
    (["tprof", "table", "--flops", "ex"], ["extended"]),
    (["tprof", "table", "--sort-by", "self_cpu_t"], ["self_cpu_time_total"]),
])
def test_completions(words, expected):
    script = f"source '{ROOT}/completions/tprof.bash'; COMP_WORDS=({' '.join(repr(w) for w in words)}); " \
             f"COMP_CWORD={len(words) - 1}; _tprof; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (result.stdout.split(), result.stderr) == (expected, "")


@needs_torch
def test_fields_and_types_are_those_of_torch():
    import torch
    from torch.profiler import ProfilerActivity, profile
    if not torch.__version__.startswith("2.13."):
        pytest.skip("the tables are those of PyTorch 2.13")
    signature = torch._C._profiler._ExperimentalConfig.__init__.__doc__.split("->")[0]
    theirs = {piece.split(":")[0].strip() for piece in signature.split(", ")[1:]}
    table = (ROOT / "docs" / "settings.md").read_text().split("| field |")[1]
    assert {line.split(" ")[1] for line in table.split("\n")[2:] if line.startswith("| ")} == theirs
    names = [line.split('"')[1] for line in (ROOT / "agent" / "settings_lists.c").read_text().split("\n")
             if line.startswith("    [TP_TYPE_")]
    assert len(names) == 21
    for name in names:
        try:
            with profile(activities=[{ProfilerActivity.CPU: [name.upper()]}]):
                known = True
        except RuntimeError:
            known = False
        assert (tprof("run", "--activities", f"cpu:[{name}]", "true").returncode == 0) == known, name
