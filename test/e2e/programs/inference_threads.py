"""Four threads infer at the same time, each with tensors of its own; each step starts four new ones."""
import threading

from common import seeded, show, steps

import torch
from torch import nn

seeded()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).eval()
for number in steps():
    inputs, results = [torch.randn(4, 8) for _ in range(4)], [None] * 4

    def infer(index):
        with torch.inference_mode():
            for _ in range(5):
                results[index] = model(inputs[index])

    threads = [threading.Thread(target=infer, args=(i,), name=f"infer{i}") for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    show("results", *results)
