"""The printed table is torch's own, character for character: random rows through both.

TABLE_DRIVER names the driver (test/tools/table_driver.c); by default that of build/."""

import os
import random
import subprocess
from pathlib import Path

import pytest

profiler_util = pytest.importorskip("torch.autograd.profiler_util")
from torch.autograd import DeviceType  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DRIVER = os.environ.get("TABLE_DRIVER", str(ROOT / "build/test/tools/table_driver"))

NAMES = ["aten::add", "aten::addmm", "autograd::engine::evaluate_function: AddmmBackward0", "Optimizer.step#SGD.step",
         "x", "naïve café", "步骤", "\U0001f600" * 20, "n" * 47, "n" * 48, "n" * 51, "n" * 52, "n" * 53, "n" * 200,
         "a name with  blanks ", "percent %s {0} \\"]


def torch_text(rows, sort_by, row_limit, header, width=55):
    averages = profiler_util.EventList(use_device=None, profile_memory=False, with_flops=False)
    for count, total_ns, self_ns, flags, name in rows:
        row = profiler_util.FunctionEventAvg()
        row.key, row.count, row.node_id = name, count, -1
        row.cpu_time_total, row.self_cpu_time_total = total_ns / 1000, self_ns / 1000
        row.is_async = "a" in flags
        row.is_user_annotation = "u" in flags
        row.device_type = DeviceType.CPU
        row.input_shapes, row.overload_name, row.stack = [], "", []
        averages.append(row)
    return averages.table(sort_by=sort_by, row_limit=row_limit, header=header, max_name_column_width=width)


def our_text(rows, sort_by, row_limit, header, width=55):
    lines = "".join("%d %d %d %s %s\n" % row for row in rows)
    command = [DRIVER, sort_by, str(row_limit), str(width)] + ([header] if header is not None else [])
    return subprocess.run(command, input=lines.encode(), stdout=subprocess.PIPE, check=True).stdout.decode()


def random_rows(rng):
    rows = []
    names = [(name, flags) for name in NAMES for flags in "-u"] + [("op%d" % i, "-") for i in range(20)]
    for name, flags in rng.sample(names, rng.randint(1, len(names))):
        total = rng.choice([0, 1, 500, 999, 1000, 999999, 1000500, 1000000, 999999999, 10**9, rng.randrange(10**6),
                            rng.randrange(10**10), rng.randrange(10**13)])
        self_ns = rng.choice([total, rng.randint(0, total), 0])
        if rng.random() < 0.1:
            flags, self_ns = flags + "a", 0
        rows.append((rng.choice([1, 2, 3, 7, rng.randint(1, 5000)]), total, self_ns, flags, name))
    if not any(self_ns for _, _, self_ns, _, _ in rows):
        rows[0] = (1, 1234, 1234, "-", rows[0][4])  # torch asserts that a sum of zero has no parts
    return rows


@pytest.mark.parametrize("seed", range(60))
def test_same_text(seed):
    rng = random.Random(seed)
    rows = random_rows(rng)
    sort_by = rng.choice(["self_cpu_time_total", "cpu_time_total", "cpu_time", "count", "key", "self_cuda_time_total",
                          "cpu_memory_usage"])
    row_limit = rng.choice([-1, 0, 1, 5, 20, 100])
    header = rng.choice([None, "steps 2..4 of cycle 0"])
    width = rng.choice([55, 55, 36, 5])
    assert our_text(rows, sort_by, row_limit, header, width) == torch_text(rows, sort_by, row_limit, header, width)


def test_nothing_prints_nothing():
    assert our_text([], "count", 5, None) == torch_text([], "count", 5, None) == ""


def test_sum_of_zero():
    rows = [(3, 0, 0, "-", "aten::add")]
    assert our_text(rows, "count", -1, None) == torch_text(rows, "count", -1, None)
