"""One of two processes that add up what they have, over NCCL; writes the result to the file that is its first argument."""
import os
import sys

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
torch.cuda.set_device(0)
dist.init_process_group("nccl")
values = torch.arange(300000, dtype=torch.float32).mul_(rank + 1).cuda()
dist.all_reduce(values)
parts = [torch.empty(4, device="cuda") for _ in range(2)]
dist.all_gather(parts, torch.full((4,), float(rank + 5)).cuda())
torch.save((values.cpu(), [part.cpu() for part in parts]), sys.argv[1])
dist.destroy_process_group()
