"""TorchScript: a scripted module with a loop and a branch, forward and backward, profiled while its executor settles."""
import warnings

from common import seeded, show, steps

import torch
from torch import nn

warnings.simplefilter("ignore")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor, rounds: int) -> torch.Tensor:
        for i in range(rounds):
            x = self.layer(x).tanh() if i % 2 == 0 else self.layer(x).relu()
        return x


seeded()
net = torch.jit.script(Net())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for number in steps():
    optimizer.zero_grad()
    loss = net(torch.randn(3, 6), 1 + number % 3).square().mean()
    loss.backward()
    optimizer.step()
    show("loss", loss)
