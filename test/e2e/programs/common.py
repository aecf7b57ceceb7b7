"""What the programs share. They know nothing of tprof: deterministic, one thread within an operator, results in full.

WINDOW=FILE runs torch.profiler over the middle third of the steps and writes its trace there; without it no profiler
is started. WINDOW_ALL_THREADS=1 lets it see threads that were not started by the profiled one, WINDOW_SHAPES=1 what
operators are given. WINDOW_EXECUTION_TRACE=FILE has an ExecutionTraceObserver watch those steps, as well or instead."""
import os
import random

import torch

STEPS = 30


def seeded(seed=0):
    torch.manual_seed(seed)
    random.seed(seed)
    torch.set_num_threads(1)


def _profiler():
    from torch.profiler import ProfilerActivity, _ExperimentalConfig, profile
    # A field that older PyTorch does not know.
    config = _ExperimentalConfig(profile_all_threads=True) if os.environ.get("WINDOW_ALL_THREADS") == "1" else None
    return profile(activities=[ProfilerActivity.CPU], experimental_config=config,
                   record_shapes=os.environ.get("WINDOW_SHAPES") == "1")


def steps(count=STEPS):
    """0 .. count - 1, with torch.profiler around the middle third where WINDOW asks for it."""
    file = os.environ.get("WINDOW")
    execution_trace = os.environ.get("WINDOW_EXECUTION_TRACE")
    profiler = observer = None
    for number in range(count):
        if execution_trace and number == count // 3:
            from torch.profiler import ExecutionTraceObserver
            observer = ExecutionTraceObserver().register_callback(execution_trace)
            observer.start()
        if file and number == count // 3:
            profiler = _profiler()
            profiler.start()
        yield number
        if observer and number == 2 * count // 3 - 1:
            observer.stop()
            observer.unregister_callback()
            observer = None
        if profiler and number == 2 * count // 3 - 1:
            profiler.stop()
            profiler.export_chrome_trace(file)
            profiler = None


def show(label, *tensors):
    """Every bit of the tensors."""
    for tensor in tensors:
        data = tensor.detach().contiguous().view(torch.uint8) if tensor.dim() else tensor.detach().reshape(1).view(torch.uint8)
        print(label, bytes(data.flatten().tolist()).hex())
