"""A convolutional net with batch norm, momentum and a schedule of the rate; training, then evaluation."""
from common import seeded, show, steps

import torch
from torch import nn

seeded()
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
rate = torch.optim.lr_scheduler.StepLR(optimizer, 2)
for number in steps():
    images, labels = torch.randn(6, 1, 8, 8), torch.randint(0, 3, (6,))
    if number % 3 == 2:
        model.eval()
        with torch.no_grad():
            show("evaluated", model(images))
        model.train()
        continue
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    rate.step()
    show("loss", loss)
show("running", model[1].running_mean, model[1].running_var)
