"""Real Python workers whose message is held: the line of the user's code is told, and nothing else changes."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from jobcheck.aio import wait_for, wait_until
from jobcheck.workers import sockets, stacks
from jobcheck.workers.env import scrubbed
from jobcheck.workers.spec import ProcessSpec, ReadyLine
from jobcheck.workers.supervisor import Supervisor, Worker

SYNC = """
import os, socket, sys
def charge(port):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(b"x")
    s.recv(1)  # HELD
if os.fork() == 0:
    charge(int(sys.argv[1]))
os.wait()
"""
THREADS = """
import socket, sys, threading
def charge(port):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(b"x")
    s.recv(1)  # HELD
t = threading.Thread(target=charge, args=[int(sys.argv[1])])
t.start()
t.join()
"""
TASKS = """
import asyncio, sys
async def charge(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"x")
    await reader.read(1)  # HELD
async def main():
    await asyncio.gather(charge(int(sys.argv[1])), asyncio.sleep(600))
asyncio.run(main())
"""
SITE = "import builtins\nbuiltins.own_site = True\n"
PLAIN = (
    "import socket, sys\ns = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\ns.sendall(b'x')\ns.recv(1)\n"
)


def held(
    code: str, tmp_path: Path, body: Callable[[Worker, int, int, Path], Awaitable[None]], preload: bool = True
) -> None:
    """Runs `code` with the port of a server that never answers, then `body` with the client's port."""
    app = tmp_path / "app"
    app.mkdir()
    (app / "jobs.py").write_text(code)
    stack_file = tmp_path / "stacks.txt"

    async def main() -> None:
        arrived: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            arrived.set_result(writer.get_extra_info("peername")[1])
            try:
                await reader.read(1)
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        supervisor = Supervisor("e2e-stacks", tmp_path)
        env = scrubbed(stacks.environment(stack_file), python_path=[str(stacks.PRELOAD)] if preload else [])
        try:
            argv = [sys.executable, "jobs.py", str(port)]
            worker = await supervisor.start(ProcessSpec("app", argv, env, app, ReadyLine("ready")))
            client = await asyncio.wait_for(arrived, 10)
            await body(worker, client, port, stack_file)
        finally:
            await supervisor.close()
            server.close()
            await server.wait_closed()
            await asyncio.sleep(0)

    asyncio.run(main())


def line_of(code: str) -> int:
    return next(number for number, line in enumerate(code.splitlines(), 1) if "HELD" in line)


def check(code: str, tmp_path: Path, name: str) -> None:
    expected = f"jobs.py:{line_of(code)} {name}"

    async def body(worker: Worker, client: int, server: int, stack_file: Path) -> None:
        async def frame() -> str:
            return await stacks.user_frame(
                worker.pids(), client, stack_file, tmp_path / "app", server_port=server, within=5
            )

        async def there() -> bool:
            return await frame() == expected

        # The byte may arrive before the sender has gone on to its next line.
        await wait_until(there, expected, deadline=10)
        assert [await frame() for _ in range(5)] == [expected] * 5
        assert worker.alive

    held(code, tmp_path, body)


def test_a_forked_child_that_waits_for_its_reply_tells_its_line(tmp_path: Path) -> None:
    check(SYNC, tmp_path, "charge")


def test_a_thread_that_waits_for_its_reply_tells_its_line(tmp_path: Path) -> None:
    check(THREADS, tmp_path, "charge")


def test_a_task_that_awaits_its_reply_tells_its_line(tmp_path: Path) -> None:
    check(TASKS, tmp_path, "charge")


def test_a_process_that_did_not_load_the_preload_is_not_signalled(tmp_path: Path) -> None:
    async def body(worker: Worker, client: int, server: int, stack_file: Path) -> None:
        assert await stacks.user_frame(worker.pids(), client, stack_file, tmp_path / "app", server_port=server) == ""
        assert worker.alive

    held(PLAIN, tmp_path, body, preload=False)


def test_the_owner_of_a_connection_is_found_with_and_without_the_servers_port(tmp_path: Path) -> None:
    async def body(worker: Worker, client: int, server: int, stack_file: Path) -> None:
        root, child = await wait_for(
            lambda: (pids[0], pids[1]) if len(pids := worker.pids()) == 2 else None, "the child", deadline=10
        )
        assert sockets.owners([root, child], client, server) == [child]
        assert sockets.owners([root, child], client) == [child]
        assert sockets.owners([root], client, server) == []
        assert sockets.peers([root, child]) == [("127.0.0.1", server)]

    held(SYNC, tmp_path, body)


def test_unix_peers_are_named_and_pairs_and_own_listeners_are_not(tmp_path: Path) -> None:
    path = tmp_path / "s"
    code = f"""
import socket, time
a, b = socket.socketpair()
own = socket.create_server(("127.0.0.1", 0))
mine = socket.create_connection(own.getsockname())
c = socket.socket(socket.AF_UNIX)
c.connect({str(path)!r})
print("ready", flush=True)
time.sleep(600)
"""

    async def main() -> None:
        supervisor = Supervisor("e2e-stacks", tmp_path)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            try:
                argv = [sys.executable, "-c", code]
                worker = await supervisor.start(ProcessSpec("app", argv, scrubbed({}), tmp_path, ReadyLine("ready")))
                await worker.ready()
                with server.accept()[0]:
                    assert sockets.peers(worker.pids()) == [(f"unix:{path}", 0)]
            finally:
                await supervisor.close()

    asyncio.run(main())


def test_the_preload_loads_the_sitecustomize_that_it_hides(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SITE)

    async def main() -> None:
        supervisor = Supervisor("e2e-stacks", tmp_path)
        try:
            env = scrubbed({"PYTHONPATH": str(tmp_path / "site")}, python_path=[str(stacks.PRELOAD)])
            argv = [sys.executable, "-c", "print(own_site)"]
            worker = await supervisor.start(ProcessSpec("app", argv, env, tmp_path))
            assert await worker.wait(10) == 0
            assert worker.output.text == "True"
        finally:
            await supervisor.close()

    asyncio.run(main())
