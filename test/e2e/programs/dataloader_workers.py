"""Batches from two worker processes."""
import time

from common import seeded, show, steps

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 120

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        x = torch.randn(6, generator=generator)
        return x, x.sum()


if __name__ == "__main__":
    seeded()
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    batches = iter(DataLoader(Numbers(), batch_size=4, num_workers=2, prefetch_factor=15))
    time.sleep(1)  # both workers are done then: they take no processor from what is compared
    for _, (x, y) in zip(steps(), batches):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        show("loss", loss)
