"""torch's own table of the events of a trace file: they are loaded into its EventList, as torch's parser of profiler
results does it, and its code does the rest.

Times are fractions, so that torch's sums lose nothing, as ours; what is printed are doubles again."""
import functools
import gzip
import inspect
import json
import pathlib
import re
from fractions import Fraction

import pytest
from torch.autograd import DeviceType, profiler_util
from traces import nanoseconds

if "is_python_function" not in inspect.signature(profiler_util.FunctionEvent).parameters:
    pytest.skip("this PyTorch's events and tables are of an older form", allow_module_level=True)

CPU = {"cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "xpu_runtime", "xpu_driver",
       "overhead", "cuda_event"}
RUNTIME = {"cuda_runtime", "cuda_driver", "xpu_runtime", "xpu_driver"}
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync"}
# From 2.14 on, rows for Python functions are there on request alone.
ALL_ROWS = {"include_python_functions": True} if "include_python_functions" in inspect.signature(
    profiler_util.EventList.key_averages).parameters else {}
TIMES = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total")


def read(path):
    data = pathlib.Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return json.loads(data, parse_float=str)


@functools.cache
def build_table():
    """torch's _build_table; with stacks and FLOPs it swaps the values of these two columns, which is put right here."""
    source = inspect.getsource(profiler_util._build_table)
    flops = source[source.index("        if with_flops:\n            if evt.flops <= 0:"):]
    flops = flops[:flops.index("        if has_stack:")]
    stack = source[source.index("        if has_stack:\n            src_field"):]
    stack = stack[:stack.index("        append(row_format.format(*row_values))")]
    assert source.count(flops + stack) == 1
    source = source.replace(flops + stack, stack + flops)
    # The further frames stand in the column of the source too.
    source = source.replace("empty_headers = [\"\"] * (len(headers) - 1)",
                            "empty_headers = [\"\"] * (len(headers) - 1 - with_flops); more = [\"\"] * with_flops")
    source = source.replace("*(empty_headers + [trim_path(entry, src_column_width)])",
                            "*(empty_headers + [trim_path(entry, src_column_width)] + more)")
    source = source.replace("append(row_format.format(*empty_headers))", "append(row_format.format(*empty_headers, *more))")
    space = dict(vars(profiler_util))
    exec(source, space)
    return space["_build_table"]


def flops_of(event):
    """The formulas that random sets of events need."""
    args, name = event.get("args", {}), event["name"]
    dims = args.get("Input Dims")
    if not dims:
        return 0

    def elements(shape):
        product = 1
        for dim in shape:
            product *= dim
        return product
    if name in ("aten::add", "aten::mul"):
        return elements(dims[0]) if args["Input type"][0] not in ("", "Scalar", "ScalarList", "TensorList") else 0
    if name in ("aten::mm", "aten::addmm"):
        left, right = dims[-2:] if name == "aten::mm" else dims[1:3]
        return elements(left) // left[-1] * elements(right) * 2 if left and left[-1] else 0
    return 0


def python_list(dims):
    """Lists of tensors are shown as []."""
    return [[] if any(isinstance(dim, list) for dim in item) else item for item in dims]


def load(path, exact=True, use_device=None):
    """An EventList with its tree built, as profile._parse_kineto_results makes it."""
    trace = read(path)
    events = trace if isinstance(trace, list) else trace["traceEvents"]
    meta = {} if isinstance(trace, list) else trace
    for number, event in enumerate(events):
        event["number"] = number
    asynchronous = {(e.get("pid"), e.get("tid")) for e in events if e["ph"] == "M" and e["name"] == "thread_name"
                    and e["args"]["name"].endswith(") async")}
    known = [e for e in events if e["ph"] == "X" and e.get("cat") in CPU | DEVICE]
    memory = [e for e in events if e["name"] in ("[memory]", "[OutOfMemory]") and "Bytes" in e.get("args", {})]
    if use_device is None and any(e["cat"] in DEVICE for e in known):
        use_device = "cuda"
    times = [nanoseconds(e["ts"]) for e in known + memory]
    base = min(times, default=0)

    def us(ns):
        return Fraction(ns - base, 1000) if exact else (ns - base) / 1000
    allocations = [[e, False] for e in memory if e["name"] == "[memory]"]
    accelerated = profiler_util.MemRecordsAcc([(type("Record", (), {
        "start_ns": staticmethod(lambda e=e: nanoseconds(e[0]["ts"]))}), e) for e in allocations])

    def bytes_of(event, kinds):
        return event["args"]["Bytes"] if event["args"].get("Device Type", 0) in kinds else 0
    threads, result, frontend, linked = {}, [], [], {}
    for event in known:
        if profiler_util._filter_name(event["name"]):
            continue
        args, cpu = event.get("args", {}), event["cat"] in CPU
        start = nanoseconds(event["ts"])
        end = start + nanoseconds(event["dur"])
        if event["cat"] == "gpu_user_annotation":  # written a nanosecond wider at both ends
            start, end = start + 1, end - 1
        used = [0, 0]
        if cpu:
            for _, record in accelerated.in_interval(start, end):
                used[0] += bytes_of(record[0], (0, 2, 5))
                used[1] += bytes_of(record[0], (1, 6, 12, 20))
                record[1] = True
        link = args.get("External id", 0) if event["cat"] in RUNTIME | DEVICE - {"gpu_user_annotation"} else 0
        place = (event["pid"], event["tid"])
        apart = event["cat"] if event["cat"] in RUNTIME | {"overhead", "cuda_event"} else ""
        apart = "runtime" if apart in RUNTIME else apart
        made = profiler_util.FunctionEvent(
            id=0 if link else args.get("External id", 0), name=profiler_util._rewrite_name(event["name"], True),
            overload_name="", thread=threads.setdefault(place + (apart,), len(threads) + 1), start_us=us(start),
            end_us=us(end), fwd_thread=args.get("Fwd thread id", 0), input_shapes=python_list(args.get("Input Dims", [])),
            stack=[frame for frame in args.get("Call stack", "").split(";") if frame
                   and profiler_util._filter_stack_entry(frame)],
            scope=1 if args.get("Fwd thread id") and not event["name"].startswith("autograd::engine::evaluate_function: ") else 0,
            use_device=use_device, cpu_memory_usage=used[0], device_memory_usage=used[1],
            is_async=place in asynchronous, sequence_nr=args.get("Sequence number", -1),
            device_type=DeviceType.CPU if cpu else DeviceType.CUDA, flops=flops_of(event) if meta.get("with_flops") else 0,
            is_user_annotation=event["cat"] in ("user_annotation", "gpu_user_annotation"),
            is_python_function=event["cat"] == "python_function")
        made.place, made.number, made.link = place, event["number"], link
        result.append(made)
        if link > 0:
            linked.setdefault(link, []).append(made)
        else:
            frontend.append(made)
    for event in frontend:
        if event.device_type == DeviceType.CPU and not event.is_async and event.id in linked and event.id:
            for other in linked[event.id]:
                if other.device_type == DeviceType.CPU:
                    other.thread = event.thread
                else:
                    event.append_kernel(other.name, other.device_index, other.time_range.end - other.time_range.start)
    rest = [record[0] for record in allocations if not record[1]] + [e for e in memory if e["name"] == "[OutOfMemory]"]
    for event in rest:
        at = us(nanoseconds(event["ts"]))
        thread = threads.setdefault((event["pid"], event["tid"], ""), len(threads) + 1)
        made = profiler_util.FunctionEvent(
            id=0, name=event["name"], overload_name="", thread=thread, start_us=at, end_us=at, fwd_thread=0,
            input_shapes=[], stack=[], use_device=use_device, cpu_memory_usage=bytes_of(event, (0, 2, 5)),
            device_memory_usage=bytes_of(event, (1, 6, 12, 20)), flops=0)
        made.number, made.link = event["number"], 0
        result.append(made)
    result.sort(key=lambda e: [e.time_range.start, -e.time_range.end])
    made = profiler_util.EventList(result, use_device=use_device, profile_memory=bool(memory or meta.get("profile_memory")),
                                   with_flops=bool(meta.get("with_flops")))
    made._build_tree()
    return made


def averages(events, python_functions=True, with_flops=None, **groups):
    kept = profiler_util.EventList([e for e in events if python_functions or not e.is_python_function],
                                   use_device=events._use_device, profile_memory=events._profile_memory,
                                   with_flops=events._with_flops if with_flops is None else with_flops)
    kept._tree_built = True
    rows = kept.key_averages(**groups, **ALL_ROWS)
    for row in rows:
        for name in TIMES:
            setattr(row, name, float(getattr(row, name)))
    return rows


def text(rows, **options):
    if not rows:
        return ""
    return build_table()(rows, with_flops=rows._with_flops, profile_memory=rows._profile_memory, **options)


NUMBER = re.compile(r"(-?\d+\.\d+)(us|ms|s|%| KB| MB| GB|)")


def same_but_for_ties(ours, theirs):
    """Equal, but that numbers may differ by one in their last digit: torch's sums of doubles tip a tie either way."""
    if len(ours) != len(theirs) and len(ours.splitlines()) != len(theirs.splitlines()):
        return False
    if NUMBER.sub("#", ours).split() != NUMBER.sub("#", theirs).split():
        return False
    for (a, unit), (b, other) in zip(NUMBER.findall(ours), NUMBER.findall(theirs)):
        last = Fraction(1, 10 ** len(a.split(".")[1]))
        if unit != other or abs(Fraction(a) - Fraction(b)) > last:
            return False
    return True
