"""torch.compile on the CPU: forward, backward and a graph break."""
import warnings

from common import seeded, show, steps

import torch

warnings.simplefilter("ignore")


def body(x, w):
    y = torch.tanh(x @ w)
    torch._dynamo.graph_break()
    return (y * torch.sigmoid(y)).sum()


seeded()
compiled = torch.compile(body)
w = torch.randn(6, 6, requires_grad=True)
for _ in steps():
    loss = compiled(torch.randn(4, 6), w)
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
    w.grad = None
    show("loss", loss)
show("weights", w)
