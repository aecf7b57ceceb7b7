"""The cost of an operator: torch.add on four elements, many times. Prints ns per operator of each round. Knows nothing of tprof.

usage: operator_cost.py [profiler [shapes]]     under torch.profiler, with record_shapes
"""
import sys
import time

import torch

torch.set_num_threads(1)
a, b, c = torch.ones(4), torch.ones(4), torch.empty(4)
COUNT, ROUNDS = 100_000, 5


def rounds():
    add = torch.add
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(COUNT):
            add(a, b, out=c)
        yield (time.perf_counter_ns() - begin) / COUNT


if "profiler" in sys.argv:
    from torch.profiler import ProfilerActivity, profile
    for _ in range(ROUNDS):
        with profile(activities=[ProfilerActivity.CPU], acc_events=True, record_shapes="shapes" in sys.argv):
            begin = time.perf_counter_ns()
            for _ in range(COUNT):
                torch.add(a, b, out=c)
            took = (time.perf_counter_ns() - begin) / COUNT
        print(took)
else:
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(3):  # steps, for the schedules of the benchmark
        optimizer.step()
    for took in rounds():
        print(took)
