#!/usr/bin/python3
"""A training step with PyTorch's DistributedDataParallel and Gloo: the median of ten. See docs/applications.md."""
import os
import time

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", rank=rank, world_size=world)
torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512))
size = 4 * sum(p.numel() for p in model.parameters())
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
times = []
for step in range(12):
    x = torch.randn(8, 512)
    dist.barrier()
    begin = time.perf_counter()
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()  # reduces the gradients over all hosts
    optimizer.step()
    if step >= 2:
        times.append(time.perf_counter() - begin)
weights = torch.cat([p.detach().flatten() for p in model.parameters()])
lowest, highest = weights.clone(), weights.clone()
dist.all_reduce(lowest, dist.ReduceOp.MIN)
dist.all_reduce(highest, dist.ReduceOp.MAX)
assert bool((lowest == highest).all()), "hosts have different weights"
if rank == 0:
    print(f"{size} B of gradients {1e6 * sorted(times)[len(times) // 2]:8.1f} us", flush=True)
dist.destroy_process_group()
