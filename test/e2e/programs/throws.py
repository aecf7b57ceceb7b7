"""Operators that throw: at once, deep inside others, inside a range, in backward; and a Python error through a range."""
from common import seeded, show, steps

import torch


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        raise RuntimeError("backward fails")


def attempt(label, function):
    try:
        function()
    except Exception as error:
        print(label, type(error).__name__, str(error).splitlines()[0])


def in_range():
    with torch.profiler.record_function("outer"), torch.profiler.record_function("inner"):
        torch.cat([torch.ones(2, 3), torch.ones(2, 4)])


def python_error():
    with torch.profiler.record_function("python"):
        raise KeyError("k")


seeded()
for _ in steps():
    attempt("shape", lambda: torch.ones(3) @ torch.ones(4))
    attempt("deep", lambda: torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 5)))
    attempt("range", in_range)
    attempt("python", python_error)
    attempt("backward", lambda: (Fails.apply(torch.ones(2, requires_grad=True)) * 2).sum().backward())
    attempt("index", lambda: torch.ones(3)[torch.tensor([5])])
    show("after", torch.randn(3) + 1)
