"""A random program, the same for the same seed: autograd, exceptions, ranges, threads, TorchScript, torch's
observers switched on and off. Knows nothing of tprof.

usage: random_ranges.py SEED     PLAIN=SEED in its place: one thread, and torch's observers are left alone"""
import os
import random
import sys
import threading
import warnings

import torch
from torch.autograd.profiler import record_function
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile

warnings.simplefilter("ignore")
plain = "PLAIN" in os.environ
seed = int(os.environ["PLAIN"] if plain else sys.argv[1])
torch.set_num_threads(1)
torch.manual_seed(seed)


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("in backward")


class Doubles(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


@torch.jit.script
def scripted(x: torch.Tensor, n: int) -> torch.Tensor:
    for i in range(n):
        x = x.tanh() + i
    return x


def forward(rng, x, depth=0):
    for _ in range(rng.randrange(1, 5)):
        kind = rng.randrange(9)
        if kind == 0:
            x = torch.relu(x) + x.mean()
        elif kind == 1:
            x = x @ torch.randn(x.shape[-1], x.shape[-1])
        elif kind == 2 and depth < 4:
            with record_function(f"range {rng.randrange(5)} " + "long " * rng.randrange(10)):
                x = forward(rng, x, depth + 1)
        elif kind == 3:
            with torch.no_grad():
                x.add(1).mul(2)
        elif kind == 4:
            x = Doubles.apply(x)
        elif kind == 5:
            n = rng.randrange(3)
            if threading.current_thread() is threading.main_thread():  # its executor settles with its calls, whoever's
                x = scripted(x, n)
        elif kind == 6:
            try:
                torch.ones(2) @ torch.ones(3)
            except RuntimeError:
                pass
        elif kind == 7:
            try:
                with record_function("leaves by an exception"):
                    raise KeyError
            except KeyError:
                pass
        else:
            x = x.clone().view(-1).view(x.shape)
    return x


def step(rng, weight, optimizer):
    optimizer.zero_grad()
    x = forward(rng, weight * torch.randn(4, 4))
    if rng.random() < 0.2:
        x = Fails.apply(x)
    try:
        x.square().mean().backward()
    except ValueError:
        pass
    optimizer.step()


def observed(rng):
    """Switches an observer; gives what switches it off."""
    if rng.random() < 0.3:
        observer = ExecutionTraceObserver().register_callback("/dev/null")
        observer.start()
        return observer.unregister_callback
    profiler = profile(activities=[ProfilerActivity.CPU], record_shapes=rng.random() < 0.5)
    profiler.start()
    return profiler.stop


def work(seed, steps):
    rng = random.Random(seed)
    weight = torch.nn.Parameter(torch.randn(4, 4))
    optimizer = rng.choice([torch.optim.SGD, torch.optim.Adam])([weight], lr=0.01)
    off = None
    for _ in range(steps):
        if not plain and threading.current_thread() is threading.main_thread() and rng.random() < 0.3:
            if off:
                off()
            off = None if off else observed(rng)
        step(rng, weight, optimizer)
    if off:
        off()
    return weight


if plain:
    print(work(seed, 20).sum().item())
else:
    # What is called is decided by each thread's own numbers; torch's, which the threads share, are values alone.
    threads = [threading.Thread(target=work, args=(seed + 1 + i, 20)) for i in range(3)]
    for thread in threads:
        thread.start()
    work(seed, 20)
    for thread in threads:
        thread.join()
