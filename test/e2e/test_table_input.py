"""Files that `tprof table` and `tprof summary` cannot read: one line says what is wrong, where, and how far they came;
status 2, and nothing on stdout."""
import gzip
import json
import re
import subprocess

import pytest
from conftest import CLEAN, COMMAND

EVENT = '{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":%s.000,"dur":5.000}'


def trace(*events, head="", tail=""):
    return ('{%s"traceEvents":[' % head + ",".join(events) + "]%s}" % tail).encode()


def good(count):
    return [EVENT % (10 * i) for i in range(count)]


def odd(**members):
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 100, "dur": 5}
    event.update(members)
    return json.dumps({k: v for k, v in event.items() if v is not None})


WHOLE = trace(*good(3))
BIG = gzip.compress(trace(*good(20000)))

# Name: the bytes, and what the line says after "tprof table: FILE: ".
CASES = {
    "empty": (b"", r"byte 0 \(line 1, column 1\): the text ends early; 0 events before that were read"),
    "not JSON": (b"hello", r"byte 0 \(line 1, column 1\): this is no JSON value .*; 0 events before that were read"),
    "a table": (b"------  ------\n  Name  \n", r"byte 1 \(line 1, column 2\): a number needs a digit here; 0 events .*"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0", r"byte 0 \(line 1, column 1\): .*; 0 events before that were read"),
    "truncated": (WHOLE[:-40], r"byte %d \(line 1, column \d+\): the text ends .*; 2 events before that were read" % (len(WHOLE) - 40)),
    "truncated behind an event": (WHOLE[:-2], r"byte \d+ \(line 1, .*\): the text ends early; 3 events before .*"),
    "something behind the end": (WHOLE + b"x", r"byte %d .*: there is something behind the end; 3 events .*" % len(WHOLE)),
    "not UTF-8": (WHOLE.replace(b"aten::add", b"aten::\xff", 1), r"byte \d+ .*: this byte is not part of valid UTF-8; 0 events .*"),
    "no trace, an object": (b'{"a": [1, 2], "b": {"traceEvents": []}}', r"it is no trace: an array of events, or an object with traceEvents, is accepted"),
    "no trace, a number": (b"17", r"it is no trace: .*"),
    "events of another form": (b'{"traceEvents": {"a": 1}}', r"it is no trace: .*"),
    "an event that is none": (trace(*good(2), "7"), r"event 2, at byte \d+: it is no object; 2 events before that were read"),
    "another tool's": (trace(odd(cat="blink"), odd(cat="v8"), odd(cat=None)),
                       r"none of its 3 events is of a kind that PyTorch writes \(cpu_op, user_annotation, kernel, ...\)"),
    "gzip cut in the middle": (BIG[:len(BIG) // 2], r"the gzip data ends early, behind byte \d+ of what it holds; [1-9]\d* events before that were read"),
    "gzip cut in its head": (BIG[:8], r"the gzip data ends early, behind byte 0 of what it holds; 0 events .*"),
    "gzip damaged": (BIG[:-8] + bytes(8), r"the gzip data is damaged, behind byte \d+ of what it holds; [1-9]\d* events .*"),
    "bytes behind the gzip data": (BIG + b"more", r"there are bytes behind the gzip data, behind byte \d+ of what it holds; 20000 events .*"),
    "nested a million deep": (b'{"traceEvents":[{"args":' + b"[" * 10 ** 6, r"byte \d+ .*: forms are nested more than 512 deep; 0 events .*"),
    "nested a million deep outside": (b"[" * 10 ** 6 + b"]" * 10 ** 6, r"byte \d+ .*: forms are nested more than 512 deep; \d+ events .*"),
    "ts out of range": (trace(*good(1), odd(ts=10 ** 30)), r"event 1, at byte \d+: its ts or dur is out of range; 1 events before .*"),
    "dur out of range": (trace(*good(1), odd(dur=10 ** 17)), r"event 1, at byte \d+: its ts or dur is out of range; 1 events .*"),
    "an exponent out of range": (trace(EVENT.replace("%s.000", "1e999999999")), r"event 0, at byte 16: its ts or dur is out of range; 0 .*"),
    "not a number": (trace(EVENT.replace("%s.000", "NaN")), r"byte \d+ .*: this is no JSON value .*; 0 events .*"),
    "dur negative": (trace(odd(dur=-1)), r"event 0, at byte 16: its dur is negative; 0 events before that were read"),
    "ts is a string": (trace(odd(ts="1")), r"event 0, at byte 16: its ts or dur is no number; 0 events .*"),
    "no ts": (trace(*good(4), odd(ts=None)), r"event 4, at byte \d+: it has no ts; 4 events .*"),
    "no dur": (trace(odd(dur=None)), r"event 0, at byte 16: it has no dur; 0 events .*"),
    "no name": (trace(odd(name=None)), r"event 0, at byte 16: it has no name; 0 events .*"),
    "name is a number": (trace(odd(name=7)), r"event 0, at byte 16: its name is no string; 0 events .*"),
    "a member twice": (trace(*good(1), (EVENT % 1)[:-1] + ',"dur":6}'), r"event 1, at byte \d+: a member stands in it twice; 1 events .*"),
    "traceEvents twice": (trace(*good(2), tail=',"traceEvents":[]'), r"byte \d+: there are two traceEvents; the 2 events of the first were read"),
}


@pytest.mark.parametrize("command", ["table", "summary", "events"])
@pytest.mark.parametrize("name", CASES)
def test_bad_file(name, command, tmp_path):
    data, line = CASES[name]
    path = tmp_path / "t.json"
    path.write_bytes(data)
    got = subprocess.run([COMMAND, command, str(path)], capture_output=True, text=True, env=CLEAN, timeout=60)
    assert (got.returncode, got.stdout) == (2, "")
    assert re.fullmatch(rf"tprof {command}: {re.escape(str(path))}: {line}\n", got.stderr), got.stderr


@pytest.mark.parametrize("command", ["table", "summary", "events"])
def test_files_that_are_none(command, tmp_path):
    for path, why in [(tmp_path / "none.json", "No such file or directory"), (tmp_path, "Is a directory; 0 events were read")]:
        got = subprocess.run([COMMAND, command, str(path)], capture_output=True, text=True, env=CLEAN)
        assert (got.returncode, got.stdout, got.stderr) == (2, "", f"tprof {command}: {path}: {why}\n")


# Odd, but readable: what the file says counts.
READABLE = {
    "a bare array": ("[" + ",".join(good(3)) + "]").encode(),
    "gzip in two members": gzip.compress(WHOLE[:50]) + gzip.compress(WHOLE[50:]),
    "events of other kinds": trace(*good(3), odd(cat="blink", dur=None, ts=None), '{"ph":"i","name":"[memory]","ts":1}'),
    "args before the name": trace(*good(2), '{"args":{"External id":3,"Input Dims":[[1]],"x":[[[{}]]]},' + (EVENT % 90)[1:]),
    "odd args": trace(*good(2), odd(args={"External id": "x", "Input Dims": 7, "Input type": {}, "Concrete Inputs": [[]],
                                          "Bytes": [], "Call stack": [], "Device Type": {"a": 1}})),
    "an exponent": trace(*good(2), EVENT.replace("%s.000", "0.05e3")),
    "args that are none": trace(*good(2), odd(args=[]), odd(args=7, ph="M")),
}


@pytest.mark.parametrize("name", READABLE)
@pytest.mark.parametrize("options", [[], ["--group-by=input_shape,stack:2", "--flops=extended"]])
def test_odd_file(name, options, tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(READABLE[name])
    got = subprocess.run([COMMAND, "table", "--json", *options, str(path)], capture_output=True, text=True, env=CLEAN)
    assert (got.returncode, got.stderr) == (0, "")
    assert [(r["name"], sum(row["count"] for row in json.loads(got.stdout)["rows"])) for r in json.loads(got.stdout)["rows"][:1]] == [
        ("aten::add", 3)]


def test_array_without_an_end(tmp_path):
    """The format allows it: a program that was killed leaves such a file. What is there counts, and a note says so."""
    path = tmp_path / "t.json"
    path.write_text("[" + ",".join(good(3)) + ",\n")
    got = subprocess.run([COMMAND, "table", "--json", str(path)], capture_output=True, text=True, env=CLEAN)
    assert got.returncode == 0 and json.loads(got.stdout)["rows"][0]["count"] == 3
    assert got.stderr == f"tprof table: {path}: note: the array of events has no end; the 3 that are there were read\n"


def test_nothing_in_it(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(trace())
    got = subprocess.run([COMMAND, "table", str(path)], capture_output=True, text=True, env=CLEAN)
    assert (got.returncode, got.stdout, got.stderr) == (0, "", f"tprof table: {path}: there is no event in it\n")


@pytest.mark.parametrize("arguments,line", [
    ([], "which file? (tprof table --help)"),
    (["a", "b"], "one file at a time, not b too"),
    (["--what", "a"], "unknown option --what (tprof table --help)"),
    (["-x"], "unknown option -x (tprof table --help)"),
    (["a", "--sort-by"], "--sort-by needs a value"),
    (["--json=1"], "--json takes no value"),
    (["--sort-by=gpu"], '--sort-by: "gpu" is not accepted; there are self_cpu_time_total, .*'),
    (["--row-limit=x"], '--row-limit: "x" is not accepted; a number of rows is, or -1 for all'),
    (["--row-limit", "-2"], '--row-limit: "-2" is not accepted; .*'),
    (["--time-unit=ns"], '--time-unit: "ns" is not accepted; s, ms and us are'),
    (["--group-by=shape"], '--group-by: "shape" is not accepted; a list of input_shape, stack:N .*'),
    (["--group-by=stack:0"], '--group-by: "stack:0" is not accepted; .*'),
    (["--group-by=stack:2x"], '--group-by: "stack:2x" is not accepted; .*'),
    (["--flops=all"], '--flops: "all" is not accepted; torch, extended and none are'),
    (["--max-name-column-width=2"], '--max-name-column-width: "2" is not accepted; 3 to 100000 is, or none'),
    (["--max-src-column-width=-5"], '--max-src-column-width: "-5" is not accepted; 3 to 100000 is, or none'),
])
def test_wrong_use(arguments, line):
    got = subprocess.run([COMMAND, "table", *arguments], capture_output=True, text=True, env=CLEAN)
    assert (got.returncode, got.stdout) == (2, "")
    expected, got = line.removesuffix(".*"), got.stderr.removeprefix("tprof table: ")
    assert got.startswith(expected) and got.count("\n") == 1 and (line.endswith(".*") or got == expected + "\n")


@pytest.mark.parametrize("order", ["in order", "backwards", "at random"])
def test_memory_is_far_below_the_size(order, tmp_path):
    """A tenth, and what any process needs."""
    import random
    import resource
    numbers = list(range(150000))
    if order == "backwards":
        numbers.reverse()
    elif order == "at random":
        random.Random(1).shuffle(numbers)
    path = tmp_path / "t.json"
    path.write_bytes(trace(*[odd(ts=5 * i, dur=7, args={
        "External id": i, "Record function id": 0, "Sequence number": i, "Fwd thread id": 0, "Ev Idx": i}) for i in numbers]))
    room = path.stat().st_size // 10 + (8 << 20)
    if "-" in COMMAND.parent.name:
        pytest.skip("sanitizers have memory of their own")
    got = subprocess.run([COMMAND, "table", str(path)], capture_output=True, env=CLEAN,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room)))
    assert (got.returncode, got.stderr) == (0, b"") and b"150000" in got.stdout


def test_progress_on_a_terminal_only(tmp_path):
    """A file that comes slowly: a pipe, and a terminal made of a pseudo-terminal."""
    import os
    import pty
    import threading
    path = tmp_path / "pipe"
    os.mkfifo(path)
    terminal, end = pty.openpty()

    def feed():
        with open(path, "wb") as pipe:
            pipe.write(WHOLE[:20])
            pipe.flush()
            threading.Event().wait(0.5)
            pipe.write(WHOLE[20:])
    for err, shown in [(end, True), (subprocess.PIPE, False)]:
        feeder = threading.Thread(target=feed)
        feeder.start()
        got = subprocess.run([COMMAND, "table", str(path)], stdout=subprocess.PIPE, stderr=err, env=CLEAN, timeout=60)
        feeder.join()
        assert got.returncode == 0 and b"aten::add" in got.stdout
        text = os.read(terminal, 10000) if shown else got.stderr
        assert (b"MB read" in text) == shown and (not shown or text.endswith(b"\r\x1b[K"))
