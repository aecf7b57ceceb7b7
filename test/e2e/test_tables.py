"""`tprof table` prints torch's own table, character for character: files of both writers, random sets of events, and
what torch.profiler itself printed of the run that a file is of."""
import gzip
import json
import random
import subprocess

import pytest

torch = pytest.importorskip("torch")
import torch_table  # noqa: E402
from conftest import CLEAN, COMMAND, PROGRAMS  # noqa: E402
from test_same_run import PROGRAMS as OBSERVED_TWICE  # noqa: E402
from torch.profiler import ProfilerActivity, profile, record_function  # noqa: E402

SORTS = [None, "cpu_time", "cuda_time", "xpu_time", "cpu_time_total", "cuda_time_total", "xpu_time_total", "cpu_memory_usage",
         "cuda_memory_usage", "xpu_memory_usage", "self_cpu_memory_usage", "self_cuda_memory_usage", "self_xpu_memory_usage",
         "count", "self_cpu_time_total", "self_cuda_time_total", "self_privateuse1_time_total", "device_time", "flops",
         "device_time_total", "self_device_time_total", "device_memory_usage", "self_device_memory_usage", "privateuse1_time",
         "privateuse1_time_total", "privateuse1_memory_usage", "self_privateuse1_memory_usage", "key", "is_async",
         "is_user_annotation", "input_shapes", "stack", "overload_name", "node_id", "is_remote", "is_legacy"]


def table(path, *arguments, sort_by=None, status=0):
    got = subprocess.run([COMMAND, "table", "--sort-by", sort_by or "none", *map(str, arguments), str(path)],
                         capture_output=True, env=CLEAN)
    assert got.returncode == status, got.stderr.decode()
    return got.stdout.decode()


# Random events.

class Maker:
    """Events of several threads that nest, overlap, repeat their parents' names and stand on each other's edges."""

    def __init__(self, seed, with_device, with_memory, with_flops, shuffled):
        self.rng, self.events, self.id = random.Random(seed), [], 0
        self.with_device, self.with_memory = with_device, with_memory
        self.names = ["aten::add", "aten::mm", "aten::addmm", "aten::linear", "mine", "ProfilerStep#1", "ProfilerStep#2",
                      "aten::is_leaf", "autograd::engine::evaluate_function: AddmmBackward0", "n" * 60, "步骤 é"]
        for thread in range(self.rng.randint(1, 4)):
            self.tree(thread + 10, self.rng.randrange(10 ** 6), self.rng.randint(5, 40) * 10 ** 5, 0)
        if shuffled:
            self.rng.shuffle(self.events)
        self.head = {"schemaVersion": 1, "baseTimeNanoseconds": 1790857026000000000}
        if with_flops:
            self.head["with_flops"] = 1
        if with_memory:
            self.head["profile_memory"] = 1

    def event(self, category, name, thread, start, length, **args):
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": 7, "tid": thread,
                            "ts": float("0"), "dur": 0, "args": args, "_at": (start, length)})

    def shape(self):
        return [self.rng.choice([0, 1, 2, 3, 7, 1000]) for _ in range(self.rng.randint(0, 3))]

    def operator(self, thread, start, length, parent):
        name = parent if parent and self.rng.random() < 0.3 else self.rng.choice(self.names)
        category = self.rng.choice(["cpu_op"] * 6 + ["user_annotation"] * 2 + ["python_function"])
        args = {}
        if category != "python_function":
            self.id += 1
            args["External id"] = self.id
        if category == "cpu_op" and self.rng.random() < 0.7:
            args["Input Dims"] = [self.shape() for _ in range(self.rng.randint(3, 4))]
            args["Input type"] = [self.rng.choice(["float", "c10::Half"] if name != "aten::add" else ["float", "Scalar"])
                                  for _ in args["Input Dims"]]
            if name == "aten::linear":
                args["Input Dims"][1], args["Input type"][1] = [[1, 2], [3]], "TensorList"
            args["Concrete Inputs"] = ["" for _ in args["Input Dims"]]
            if name == "aten::mm":
                args = {k: v[:2] if isinstance(v, list) else v for k, v in args.items()}
        self.event(category, name, thread, start, length, **args)
        if self.with_device and "External id" in args and self.rng.random() < 0.4:
            at, of = self.rng.choice([thread, thread, 10]), self.rng.choice([args["External id"]] * 4 + [3, 10 ** 6])
            self.launch(at, start, length, of, category)
        return name

    def launch(self, thread, start, length, of, category):
        at = start + self.rng.randint(0, max(length // 2, 1))
        self.event("cuda_runtime", "cudaLaunchKernel", thread, at, min(length // 3, 3000), cbid=211, correlation=of,
                   **({"External id": of} if self.rng.random() < 0.8 else {}))
        for _ in range(self.rng.randint(0, 3)):
            kind, name = self.rng.choice([("kernel", "gemm<float>(int)"), ("gpu_memcpy", "Memcpy HtoD"), ("kernel", "mine"),
                                          ("gpu_memset", "Memset (Device)")])
            self.event(kind, name, 900, at + 5000, self.rng.randint(1, 50000), **{"External id": of})
        if category == "user_annotation":
            self.event("gpu_user_annotation", "mine", 900, at, self.rng.randint(2, 90000), **{"External id": of})

    def memory(self, thread, at):
        device = self.rng.choice([0, 0, 0, 1]) if self.with_device else 0
        name = "[memory]" if self.rng.random() < 0.9 else "[OutOfMemory]"
        self.events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": name, "pid": 7, "tid": thread,
                            "ts": 0, "_at": (at, None), "args": {
                                "Bytes": self.rng.choice([1, -1]) * self.rng.choice([4, 1000, 5000, 3 << 20, 5 << 30]),
                                "Device Type": device, "Device Id": device - 1}})

    def tree(self, thread, start, length, depth, parent=None):
        at, end = start, start + length
        while at < end:
            size = self.rng.choice([0, 1, self.rng.randint(1, max(length // 3, 1)), length])
            if at + size > end and self.rng.random() < 0.9:  # else it goes beyond the one around it
                size = end - at
            name = self.operator(thread, at, size, parent)
            if self.with_memory and self.rng.random() < 0.3:
                self.memory(thread, at + self.rng.randint(-2000, 2000 + size))
            if depth < 5 and size > 1000 and self.rng.random() < 0.7:
                self.tree(thread, at + self.rng.choice([0, 0, 1, 500]), size - self.rng.choice([0, 600]), depth + 1, name)
            at += size + self.rng.choice([0, 1, 1, self.rng.randint(1, length)])

    def write(self, path):
        lines = []
        for event in self.events:
            start, length = event.pop("_at")
            start += 5245421550931400
            event["ts"] = "@%d.%03d@" % divmod(start, 1000)
            if length is None:
                event.pop("dur", None)
            else:
                event["dur"] = "@%d.%03d@" % divmod(length, 1000)
            lines.append(json.dumps(event, ensure_ascii=False).replace('"@', "").replace('@"', ""))
        text = json.dumps(self.head)[:-1] + ', "traceEvents": [\n' + ",\n".join(lines) + "\n]}"
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def has_parts_of_nothing(rows):
    """torch asserts that nothing is part of a sum of zero; such a table it cannot print."""
    whole = sum(row.self_cpu_time_total for row in rows)
    device = sum(row.self_device_time_total for row in rows if row.device_type.name == "CUDA" and not row.is_user_annotation)
    return not whole or (not device and any(row.self_device_time_total for row in rows))


@pytest.mark.parametrize("seed", range(60))
def test_random_events(seed, tmp_path):
    rng = random.Random(seed + 1000)
    path = tmp_path / ("t.json.gz" if seed % 5 == 0 else "t.json")
    Maker(seed, seed % 2 == 1, seed % 3 == 1, seed % 4 == 1, seed % 7 == 3).write(path)
    events = torch_table.load(path)
    python_functions, shapes = rng.random() < 0.5, rng.random() < 0.5
    rows = torch_table.averages(events, python_functions, group_by_input_shapes=shapes)
    if has_parts_of_nothing(rows):
        pytest.skip("torch cannot print this one")
    arguments = ["--include-python-functions"] * python_functions + ["--group-by=input_shape"] * shapes
    for sort_by in SORTS:
        options, ours = {"sort_by": sort_by}, []
        for name, option, values in [("row_limit", "--row-limit", [-1, 0, 3]), ("header", "--header", ["the header"]),
                                     ("time_unit", "--time-unit", ["s", "ms", "us"]),
                                     ("max_name_column_width", "--max-name-column-width", [3, 20, None]),
                                     ("max_shapes_column_width", "--max-shapes-column-width", [10, None]),
                                     ("top_level_events_only", "--top-level-events-only", [True])]:
            if rng.random() < 0.4:
                options[name] = rng.choice(values)
                ours += [option] if options[name] is True else [option, "none" if options[name] is None else options[name]]
        assert table(path, *arguments, *ours, sort_by=sort_by) == torch_table.text(rows, **options), (options, arguments)


def test_what_random_events_cover(tmp_path):
    """That the cases that matter are among them: rows of negative time, only children."""
    negative = merged = 0
    for seed in range(60):
        path = tmp_path / "t.json"
        Maker(seed, seed % 2 == 1, False, False, False).write(path)
        events = torch_table.load(path)
        merged += len([e for e in torch_table.read(path)["traceEvents"] if e.get("cat") in torch_table.CPU
                       and not torch_table.profiler_util._filter_name(e["name"])]) - sum(e.device_type.name == "CPU" for e in events)
        negative += sum(row.self_cpu_time_total < 0 for row in torch_table.averages(events))
    assert negative > 5 and merged > 50


def test_default_order(tmp_path):
    """By the device's own time where there is one; else by the CPU's."""
    for seed, key in [(1, "self_device_time_total"), (2, "self_cpu_time_total")]:
        path = tmp_path / "t.json"
        Maker(seed, seed == 1, False, False, False).write(path)
        rows = torch_table.averages(torch_table.load(path), False)
        got = subprocess.run([COMMAND, "table", str(path)], capture_output=True, text=True, env=CLEAN)
        assert got.stdout == torch_table.text(rows, sort_by=key)


def test_json_has_the_rows(tmp_path):
    path = tmp_path / "t.json"
    Maker(13, True, True, True, False).write(path)
    rows = torch_table.averages(torch_table.load(path), group_by_input_shapes=True)
    got = json.loads(table(path, "--json", "--row-limit", -1, "--group-by", "input_shape", "--include-python-functions"))
    assert got["device"] == "CUDA" and len(got["rows"]) == len(rows)
    for ours, theirs in zip(got["rows"], rows):
        assert (ours["name"], ours["count"], ours["annotation"], str(ours["input_shapes"])) == (
            theirs.key, theirs.count, theirs.is_user_annotation, str(theirs.input_shapes))
        assert [ours[k] for k in ("self_cpu_ns", "cpu_total_ns", "self_device_ns", "device_total_ns")] == [
            round(theirs.self_cpu_time_total * 1000), round(theirs.cpu_time_total * 1000),
            round(theirs.self_device_time_total * 1000), round(theirs.device_time_total * 1000)]
        assert [ours[k] for k in ("cpu_memory_bytes", "self_cpu_memory_bytes", "device_memory_bytes",
                                  "self_device_memory_bytes", "flops")] == [
            theirs.cpu_memory_usage, theirs.self_cpu_memory_usage, theirs.device_memory_usage,
            theirs.self_device_memory_usage, theirs.flops]


# Files of the agent.

@pytest.mark.parametrize("program", sorted(set(OBSERVED_TWICE) - {"throws"}))
def test_programs(program, run):
    result = run(program, TPROF_SCHEDULE="always", TPROF_ROW_LIMIT=-1)
    (written,) = result.files(".table.txt") if len(result.files(".pt.trace.json.gz")) == 1 else [None]
    for file in result.files(".pt.trace.json.gz"):
        events = torch_table.load(file)
        assert events
        rows = torch_table.averages(events, False)
        for sort_by in ("self_cpu_time_total", "count", None):
            assert table(file, sort_by=sort_by) == torch_table.text(rows, sort_by=sort_by)
        if written:  # in the process, of the same events
            assert sorted(written.read_text().splitlines()) == sorted(torch_table.text(
                rows, sort_by="self_cpu_time_total", row_limit=-1).splitlines())


# Runs of torch.profiler.

def work():
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(72, 5))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        with record_function("mine"):
            loss = model(torch.randn(4, 1, 6, 6)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5))
        torch.cat([torch.ones(2), torch.ones(3)])
        kept = torch.ones(1000)
    return kept


@pytest.mark.parametrize("shapes,memory,stack,flops", [(0, 0, 0, 0), (1, 0, 0, 1), (1, 1, 0, 1), (0, 1, 1, 0), (1, 0, 1, 0),
                                                       (1, 1, 1, 1)])
def test_as_torch_printed_it(shapes, memory, stack, flops, tmp_path):
    config = torch._C._profiler._ExperimentalConfig(verbose=True)
    work()  # what it imports is imported: torch reads the names of modules' code when that is freed already
    with profile(activities=[ProfilerActivity.CPU], record_shapes=bool(shapes), profile_memory=bool(memory),
                 with_stack=bool(stack), with_flops=bool(flops), experimental_config=config if stack else None) as p:
        work()
    path = tmp_path / "t.json"
    p.export_chrome_trace(str(path))
    groups = [(False, 0)] + [(True, 0)] * shapes + [(False, 4), (True, 2)] * (stack and shapes)
    for by_shape, by_stack in groups:
        rows = p.key_averages(group_by_input_shape=by_shape, group_by_stack_n=by_stack, **torch_table.ALL_ROWS)
        group = ",".join(["input_shape"] * by_shape + [f"stack:{by_stack}"] * bool(by_stack))
        arguments = ["--group-by", group] if group else []
        # Not by a time: sums that are equal are not always equal in doubles, and then torch's order is by chance.
        for sort_by in ("count", "key", "flops", "cpu_memory_usage", None):
            theirs = torch_table.text(rows, sort_by=sort_by)
            ours = table(path, "--include-python-functions", *arguments, sort_by=sort_by)
            assert torch_table.same_but_for_ties(ours, theirs), (ours, theirs)
        for width in (3, 4, 10, None) if by_stack else ():
            theirs = torch_table.text(rows, max_src_column_width=width)
            ours = table(path, "--include-python-functions", *arguments, "--max-src-column-width", width or "none")
            assert torch_table.same_but_for_ties(ours, theirs), (ours, theirs)
    rows = torch_table.averages(torch_table.load(path), with_flops=False)
    for sort_by in ("self_cpu_time_total", "cpu_time"):
        ours = table(path, "--include-python-functions", "--flops=none", sort_by=sort_by)
        assert ours == torch_table.text(rows, sort_by=sort_by)


def test_as_torch_printed_it_without_a_change(tmp_path):
    """torch's own text, not that of a function of it that was put right."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_flops=True) as p:
        work()
    path = tmp_path / "t.json.gz"
    p.export_chrome_trace(str(path))
    theirs = p.key_averages(group_by_input_shape=True).table(sort_by="count", row_limit=30, header="head")
    ours = table(path, "--group-by=input_shape", "--row-limit=30", "--header=head", sort_by="count")
    assert torch_table.same_but_for_ties(ours, theirs)
    assert "FLOPs" in ours and "CPU Mem" in ours and "Input Shapes" in ours


# tprof summary.

def summary(path, *arguments):
    got = subprocess.run([COMMAND, "summary", *arguments, str(path)], capture_output=True, text=True, env=CLEAN)
    assert (got.returncode, got.stderr) == (0, "")
    return got.stdout


def test_summary_of_a_file_of_ours(run):
    result = run("mlp_adam", RANK=1, WORLD_SIZE=4)
    (file,) = result.files(".pt.trace.json.gz")
    trace, form = torch_table.read(file), json.loads(summary(file, "--json"))
    cycle = result.summary["cycles"][0]
    assert form["by_tprof"] and not form["partial"] and (form["rank"], form["world_size"]) == (1, 4)
    assert (form["host"], form["process"]) == (result.summary["host"], str(result.summary["pid"]))
    assert (form["kept"], form["lost"]) == (cycle["kept"], cycle["lost"])
    assert cycle["begin_ns"] <= form["first_ns"] < form["last_ns"] <= cycle["end_ns"]
    assert sum(form["categories"].values()) == len(
        [e for e in trace["traceEvents"] if e["ph"] == "X" and e.get("cat") not in (None, "Trace")])
    steps = sorted(round(float(e["dur"]) * 1000) for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep#"))
    assert form["steps"]["count"] == len(steps) == 3
    assert [form["steps"][k] for k in ("median_ns", "p95_ns", "max_ns")] == [steps[1], steps[2], steps[2]]
    text = summary(file)
    assert f"written by tprof, on {form['host']}, process {form['process']}, rank 1 of 4\n" in text
    assert f"  lost: 0 of {cycle['kept']} operators and ranges\n" in text
    assert text.endswith(table(file, "--row-limit=20", sort_by="self_cpu_time_total"))
    assert {(r["name"], r["count"]) for r in form["rows"]} == {
        (row.key, row.count) for row in torch_table.averages(torch_table.load(file), False)}


def test_summary_of_a_file_of_torch(tmp_path):
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
        for step in range(4):
            with record_function(f"ProfilerStep#{step}"):
                torch.ones(10) + 1
    path = tmp_path / "t.json"
    p.export_chrome_trace(str(path))
    form, text = json.loads(summary(path, "--json")), summary(path)
    assert not form["by_tprof"] and "kept" not in form and "rank" not in form
    steps = sorted(round(float(e["dur"]) * 1000) for e in torch_table.read(path)["traceEvents"]
                   if e["name"].startswith("ProfilerStep#"))
    assert [form["steps"][k] for k in ("count", "median_ns", "p95_ns", "max_ns")] == [
        4, (steps[1] + steps[2]) // 2, steps[3], steps[3]]
    assert "steps (ms)" in text and "lost" not in text and "CPU Mem" in text
