#!/usr/bin/python3
"""All-reduce with Open MPI and mpi4py: the median of ten, checked. See docs/applications.md."""
import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
for size in [1 << 20, 4 << 20]:
    x, y = numpy.ones(size // 4, "f"), numpy.zeros(size // 4, "f")
    times = []
    for repetition in range(12):
        world.Barrier()
        begin = MPI.Wtime()
        world.Allreduce(x, y)
        if repetition >= 2:  # the first ones open connections
            times.append(MPI.Wtime() - begin)
        assert (y == world.size).all(), "wrong sum"
    if world.rank == 0:
        print(f"{size} B {1e6 * sorted(times)[len(times) // 2]:8.1f} us", flush=True)
