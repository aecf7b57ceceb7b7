"""Embeddings with sparse gradients, and bags of them."""
from common import seeded, show, steps

import torch
from torch import nn

seeded()
words, bags = nn.Embedding(50, 8, sparse=True), nn.EmbeddingBag(50, 8, mode="sum")
sparse, dense = torch.optim.SparseAdam(words.parameters()), torch.optim.Adagrad(bags.parameters())
for _ in steps():
    picked = torch.randint(0, 50, (4, 6))
    sparse.zero_grad()
    dense.zero_grad()
    loss = (words(picked).mean(1) - bags(picked)).square().sum()
    loss.backward()
    sparse.step()
    dense.step()
    show("loss", loss)
show("weights", words.weight, bags.weight)
