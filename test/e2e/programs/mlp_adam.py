"""An MLP with Adam."""
from common import seeded, show, steps

import torch
from torch import nn

seeded()
model = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in steps():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(torch.randn(8, 12)), torch.randn(8, 4))
    loss.backward()
    optimizer.step()
    show("loss", loss)
show("weights", *model.parameters())
