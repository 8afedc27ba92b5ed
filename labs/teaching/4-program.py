#!/usr/bin/python3
"""h0 measures its path to h1, as any program would. See docs/teaching-worksheet.md."""
import socket
import statistics
import struct
import time

PORT, MESSAGES, BYTES = 7000, 20, 20_000_000
STAMP = struct.Struct("!q")  # nanoseconds since 1970


def receive(conn, size):
    data = b""
    while len(data) < size:
        part = conn.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def answer():
    """h1 answers each message with the time of its arrival, then takes BYTES bytes and says so."""
    with socket.create_server(("", PORT)) as listener:
        conn, _ = listener.accept()
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(MESSAGES):
        receive(conn, STAMP.size)
        conn.sendall(STAMP.pack(time.time_ns()))
    left = BYTES
    while left > 0:
        left -= len(conn.recv(min(left, 1 << 20)))
    conn.sendall(b".")


def ask():
    """h0 sends its time, and reads h1's."""
    while True:  # until it listens
        try:
            conn = socket.create_connection(("h1", PORT))
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    there, both = [], []
    for _ in range(MESSAGES):
        left = time.time_ns()
        conn.sendall(STAMP.pack(left))
        arrived, = STAMP.unpack(receive(conn, STAMP.size))
        there.append(arrived - left)
        both.append(time.time_ns() - left)
    begin = time.perf_counter()
    conn.sendall(bytes(BYTES))
    receive(conn, 1)
    rate = 8e-9 * BYTES / (time.perf_counter() - begin)
    print(f"{statistics.median(both) / 1e3:.2f} us there and back, {statistics.median(there) / 1e3:.2f} us there, "
          f"{rate:.1f} Gb/s", flush=True)


answer() if socket.gethostname() == "h1" else ask()
