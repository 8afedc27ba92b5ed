#!/usr/bin/python3
"""A key-value store under incast: h0 asks all other hosts for values at once. See docs/applications.md."""
import os
import socket
import threading
import time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
VALUE, BATCHES = 64 << 10, 50


def receive(conn, size):
    while size > 0:
        data = conn.recv(size)
        if not data:
            raise EOFError
        size -= len(data)


if rank > 0:  # a server: 8 bytes of key are answered with a value
    with socket.create_server(("", 7000)) as listener:
        conn, _ = listener.accept()
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while True:
                receive(conn, 8)
                conn.sendall(bytes(VALUE))
        except (EOFError, ConnectionResetError):
            pass
else:
    servers = []
    for i in range(1, world):
        while True:  # until it listens
            try:
                servers.append(socket.create_connection((f"h{i}", 7000)))
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
    for conn in servers:
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times = []
    for batch in range(BATCHES):
        begin = time.perf_counter()
        for conn in servers:
            conn.sendall(batch.to_bytes(8, "big"))
        readers = [threading.Thread(target=receive, args=(conn, VALUE)) for conn in servers]
        for r in readers:
            r.start()
        for r in readers:
            r.join()
        if batch >= 5:  # the first ones open the windows
            times.append(1e6 * (time.perf_counter() - begin))
    times.sort()
    print(f"{len(servers)} values of {VALUE} B: p50 {times[len(times) // 2]:.1f} us, max {times[-1]:.1f} us", flush=True)
