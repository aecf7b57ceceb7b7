"""Automatic mixed precision on the CPU."""
from common import seeded, show, steps

import torch
from torch import nn

seeded()
model = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for _ in steps():
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.randint(0, 4, (8,)))
    loss.backward()
    optimizer.step()
    show("loss", loss)
show("weights", *model.parameters())
