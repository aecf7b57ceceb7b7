"""autograd functions written in Python, one inside the other; gradients of gradients; checkpoints."""
from common import seeded, show, steps

import torch
from torch.utils.checkpoint import checkpoint


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return gradient * Scale.apply(x ** 2)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return 3 * x

    @staticmethod
    def backward(context, gradient):
        return 3 * gradient


seeded()
for _ in steps():
    x = torch.randn(5, requires_grad=True)
    (first,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    y = torch.randn(5, requires_grad=True)
    checkpoint(lambda z: Cube.apply(z).sin().sum(), y, use_reentrant=False).backward()
    show("gradients", first, second, y.grad)
