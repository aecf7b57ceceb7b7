"""Runs on PyTorch's CUDA build over the simulated GPU; writes what it found to the file that is its first argument.

Results are compared with the CPU's where the simulated GPU computes: copies and products of matrices."""
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)
found = {"device": torch.cuda.get_device_name(), "devices": torch.cuda.device_count()}


def same(gpu, cpu):
    return bool(torch.allclose(gpu.cpu(), cpu, atol=1e-4, rtol=1e-4))


def regression(device, inputs, targets, weights):
    """Least squares by gradient descent, in products of matrices alone."""
    inputs, targets, weights = inputs.to(device), targets.to(device), weights.to(device)
    losses = []
    for _ in range(20):
        rest = torch.addmm(targets, inputs, weights, beta=-1)
        losses.append((rest.t() @ rest).cpu())
        weights = torch.addmm(weights, inputs.t(), rest, alpha=-0.01)
    return weights, torch.cat(losses)


inputs, truth = torch.randn(64, 8), torch.randn(8, 1)
start = torch.zeros(8, 1)
weights, losses = regression("cuda", inputs, inputs @ truth, start)
wanted, wanted_losses = regression("cpu", inputs, inputs @ truth, start)
found["regression"] = same(weights, wanted) and same(losses, wanted_losses)
found["losses"] = [losses[0].item(), losses[-1].item()]

matrix, batch = torch.randn(33, 17), torch.randn(3, 17, 5)
found["round_trip"] = torch.equal(matrix.cuda().cpu(), matrix)
found["pinned"] = torch.equal(matrix.pin_memory().to("cuda", non_blocking=True).cpu(), matrix)
found["batched"] = same(batch.transpose(1, 2).contiguous().cuda() @ batch.cuda(), batch.transpose(1, 2) @ batch)
found["half"] = same((matrix.half().cuda() @ matrix.t().half().cuda()).cpu().float(), (matrix.half() @ matrix.t().half()).float())
found["linear"] = same(torch.nn.functional.linear(matrix.cuda(), matrix.cuda()[:4], torch.ones(4).cuda()),
                       torch.nn.functional.linear(matrix, matrix[:4], torch.ones(4)))

# Replays compute as well.
graph, left = torch.cuda.CUDAGraph(), matrix.cuda()
right = matrix.t().contiguous().cuda()
left @ right
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    product = left @ right

found["captured"] = not product.cpu().any().item() # a capture computes nothing

net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(),
                          torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
images, labels = torch.randn(4, 3, 8, 8), torch.randint(0, 10, (4,))
side = torch.cuda.Stream()


def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(images.cuda()), labels.cuda())
    loss.backward()
    optimizer.step()
    with torch.cuda.stream(side):
        torch.zeros(1000, device="cuda").add_(1)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.current_stream().synchronize()


step()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    for _ in range(3):
        step()
    graph.replay()
    torch.cuda.synchronize()
profiler.export_chrome_trace(sys.argv[1] + ".trace.json")
found["replay"] = same(product, matrix @ matrix.t())

begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record()
left @ right
end.record()
end.synchronize()
found["elapsed"] = begin.elapsed_time(end)
try:
    torch.empty(1 << 40, device="cuda")
    found["out_of_memory"] = False
except torch.cuda.OutOfMemoryError:
    found["out_of_memory"] = True
with open(sys.argv[1], "w") as file:
    json.dump(found, file)
