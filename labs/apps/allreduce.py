#!/usr/bin/python3
"""All-reduce with PyTorch and Gloo of the given bytes: the median of ten, checked. See docs/applications.md."""
import os
import sys
import time

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", rank=rank, world_size=world)
torch.set_num_threads(1)
for size in [int(arg) for arg in sys.argv[1:]] or [1 << 20, 4 << 20]:
    x = torch.empty(size // 4)
    times = []
    for repetition in range(12):
        x.fill_(1.0)
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(x)
        if repetition >= 2:  # the first ones open connections
            times.append(time.perf_counter() - begin)
        assert bool((x == world).all()), "wrong sum"
    if rank == 0:
        print(f"{size} B {1e6 * sorted(times)[len(times) // 2]:8.1f} us", flush=True)
dist.destroy_process_group()
