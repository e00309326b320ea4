"""The processes that a benchmark of a proxy needs on both of its sides; standard library only.

python toxic_load.py serve                              prints its port
python toxic_load.py load PORT ROUNDS MEGABYTES         prints [median round trip in us, MB/s of an upload]
"""

from __future__ import annotations

import json
import socket
import statistics
import sys
import threading
import time

CHUNK = bytes(64 * 1024)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def serve() -> None:
    """The server's process: `E` echoes each byte, `U` + 8 bytes of length swallows so many and answers one byte."""
    listener = socket.create_server(("127.0.0.1", 0))
    say(str(listener.getsockname()[1]))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection:
        what = connection.recv(1)
        if what == b"E":
            while data := connection.recv(1024):
                connection.sendall(data)
        elif what == b"U":
            left = int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "big")
            room = bytearray(1024 * 1024)
            while left and (got := connection.recv_into(room, min(left, len(room)))):
                left -= got
            connection.sendall(b"!")


def load(port: int, rounds: int, megabytes: int) -> None:
    """The client's process: prints the median round trip in microseconds and MB/s of an upload."""
    trips = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"E")
        for _ in range(rounds):
            began = time.perf_counter()
            connection.sendall(b"x")
            connection.recv(1)
            trips.append(time.perf_counter() - began)
    size = megabytes * 1_000_000
    with socket.create_connection(("127.0.0.1", port)) as connection:
        began = time.perf_counter()
        connection.sendall(b"U" + size.to_bytes(8, "big"))
        for start in range(0, size, len(CHUNK)):
            connection.sendall(CHUNK[: min(len(CHUNK), size - start)])
        assert connection.recv(1) == b"!"
        seconds = time.perf_counter() - began
    say(json.dumps([statistics.median(trips) * 1e6, size / 1e6 / seconds]))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        load(*map(int, sys.argv[2:5]))
