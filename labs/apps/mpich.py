#!/usr/bin/python3
"""All-reduce with MPICH, by its C interface: the median of ten, checked. See docs/applications.md."""
import ctypes
import time

mpi = ctypes.CDLL("libmpich.so.12", mode=ctypes.RTLD_GLOBAL)
WORLD, FLOAT, SUM = 0x44000000, 0x4C00040A, 0x58000003  # mpi.h of MPICH

mpi.MPI_Init(None, None)
rank, world = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
mpi.MPI_Comm_size(WORLD, ctypes.byref(world))
for size in [1 << 20, 4 << 20]:
    n = size // 4
    x, y = (ctypes.c_float * n)(*([1.0] * n)), (ctypes.c_float * n)()
    times = []
    for repetition in range(12):
        mpi.MPI_Barrier(WORLD)
        begin = time.perf_counter()
        mpi.MPI_Allreduce(x, y, n, FLOAT, SUM, WORLD)
        if repetition >= 2:  # the first ones open connections
            times.append(time.perf_counter() - begin)
        assert y[0] == y[n - 1] == world.value, "wrong sum"
    if rank.value == 0:
        print(f"{size} B {1e6 * sorted(times)[len(times) // 2]:8.1f} us", flush=True)
# MPICH before 4.2 may stay in MPI_Finalize over TCP, unless each rank has sent to every other and nobody is in MPI when
# the first one gets there: docs/applications.md
SIZE, CHAR = 1024, 0x4C000101
to, back = (ctypes.create_string_buffer(SIZE * world.value) for _ in range(2))
mpi.MPI_Alltoall(to, SIZE, CHAR, back, SIZE, CHAR, WORLD)
time.sleep(0.5)
mpi.MPI_Finalize()
