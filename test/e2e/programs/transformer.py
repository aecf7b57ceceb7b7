"""A transformer layer with dropout: trained, and evaluated by its fast path."""
from common import seeded, show, steps

import torch
from torch import nn

seeded()
layer = nn.TransformerEncoderLayer(16, 4, dim_feedforward=32, batch_first=True)
optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-3)
for number in steps():
    words = torch.randn(2, 5, 16)
    if number % 2:
        layer.eval()
        with torch.inference_mode():
            show("evaluated", layer(words))
        layer.train()
        continue
    optimizer.zero_grad()
    loss = layer(words).square().mean()
    loss.backward()
    nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    optimizer.step()
    show("loss", loss)
