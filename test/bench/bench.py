"""What tprof costs, beside torch.profiler in the same run: medians over alternating processes, as ratios. Absolute times are of
this machine and this moment. Prints one table and writes build/bench.json.

usage: bench.py LIBRARY RESULT.json     with an interpreter that has torch
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

OPERATOR = pathlib.Path(__file__).with_name("operator_cost.py")
ALTERNATIONS = 5
WAIT = "wait=1000000,warmup=1,active=1"
# name, arguments, settings (None: without the library), what its cost is compared with
WAYS = [
    ("bare", [], None, None),
    ("dormant", [], {"TPROF_ENABLED": "0"}, "torch.profiler"),
    ("waiting", [], {"TPROF_SCHEDULE": WAIT, "TPROF_HOOK": "interpose"}, "torch.profiler"),
    ("waiting, callbacks", [], {"TPROF_SCHEDULE": WAIT, "TPROF_HOOK": "callback"}, "torch.profiler"),
    ("recording", [], {"TPROF_SCHEDULE": "always", "TPROF_HOOK": "interpose"}, "torch.profiler"),
    ("recording, callbacks", [], {"TPROF_SCHEDULE": "always", "TPROF_HOOK": "callback"}, "torch.profiler"),
    ("torch.profiler", ["profiler"], None, "torch.profiler"),
    ("with shapes", [], {"TPROF_SCHEDULE": "always", "TPROF_RECORD_SHAPES": "1", "TPROF_HOOK": "interpose"}, "torch, record_shapes"),
    ("torch, record_shapes", ["profiler", "shapes"], None, "torch, record_shapes"),
]


def run(library, arguments, settings):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TPROF_") and k != "LD_PRELOAD"}
    with tempfile.TemporaryDirectory() as folder:
        if settings is not None:
            environment.update(settings, LD_PRELOAD=library, TPROF_DIR=folder, TPROF_LOG="quiet")
        out = subprocess.run([sys.executable, OPERATOR, *arguments], env=environment, capture_output=True, text=True, check=True)
    return min(map(float, out.stdout.split()))


def main():
    library, result = os.path.abspath(sys.argv[1]), sys.argv[2]
    times = {name: [] for name, _, _, _ in WAYS}
    for i in range(ALTERNATIONS):
        for name, arguments, settings, _ in WAYS:
            print(f"\r{i + 1}/{ALTERNATIONS} {name:20}", end="", file=sys.stderr, flush=True)
            times[name].append(run(library, arguments, settings))
    print(file=sys.stderr)
    median = {name: statistics.median(values) for name, values in times.items()}
    added = {name: value - median["bare"] for name, value in median.items()}
    print(f"{'':22}{'ns/operator':>12}{'added':>10}{'of torch.profiler':>20}")
    for name, _, _, other in WAYS:
        share = f"{added[name] / added[other]:.3f}" if other else ""
        print(f"{name:22}{median[name]:12.1f}{added[name]:10.1f}{share:>20}")
    with open(result, "w") as file:
        json.dump({"ns_per_operator": median, "added_ns": added, "all": times}, file, indent=1)


main()
