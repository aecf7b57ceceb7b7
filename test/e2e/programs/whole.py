"""Runs a program of this folder between two ranges, begin and end, as it is or, with PROFILE=FILE, under torch.profiler. Knows
nothing of tprof.

usage: whole.py PROGRAM"""
import contextlib
import os
import runpy
import sys
import pathlib

import torch
from torch.autograd.profiler import record_function
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
file = os.environ.get("PROFILE")
torch.ones(1).requires_grad_().sum().backward()  # what PyTorch does once
with profile(activities=[ProfilerActivity.CPU]) if file else contextlib.nullcontext() as profiler:
    with record_function("begin"):
        pass
    runpy.run_path(str(pathlib.Path(__file__).with_name(sys.argv[1])), run_name="__main__")
    with record_function("end"):
        pass
if file:
    profiler.export_chrome_trace(file)
