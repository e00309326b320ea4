"""Toxiproxy's HTTP API by the real server and by the embedded engine: request by request, the same is said."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from api_requests import DIALOGUES, LISTEN, Request
from toxic_world import DEADLINE, End

from jobcheck.aio import wait_for
from jobcheck.network.api import Api
from jobcheck.network.api_server import ApiServer
from jobcheck.network.toxiproxy_server import launch
from jobcheck.seeds import Seeds, token
from jobcheck.tap.toxic_engine import EmbeddedToxics
from jobcheck.workers.supervisor import Supervisor

Said = tuple[int, dict[str, str], object]
"""Status, headers, body: JSON where it is JSON."""
PORT = re.compile(r"(127\.0\.0\.1|\[::\]):\d{4,5}")


@asynccontextmanager
async def embedded() -> AsyncIterator[int]:
    """The port of an API of our own."""
    engine = EmbeddedToxics(Seeds(7))
    server = ApiServer(Api(engine))
    await server.start()
    try:
        yield server.port
    finally:
        await server.stop()
        await engine.close()
    assert server.failures == []


@asynccontextmanager
async def real(folder: Path) -> AsyncIterator[int]:
    """The port of the API of a real server."""
    supervisor = Supervisor(f"test-{token()}", folder)
    try:
        process, api = await launch(supervisor, None)
        yield int(api.base.rpartition(":")[2])
        await supervisor.forget(process)
    finally:
        await supervisor.close()


def ask(port: int, request: Request, agent: str = "") -> Said:
    """What the API on this port says."""
    method, target, body = request
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    text = body if isinstance(body, str) or body is None else json.dumps(body)
    try:
        connection.request(method, target, text, {"User-Agent": agent} if agent else {})
        answer = connection.getresponse()
        raw = answer.read()
    finally:
        connection.close()
    headers = {name.lower(): value for name, value in answer.getheaders() if name.lower() not in ("date",)}
    try:
        return answer.status, headers, json.loads(raw)
    except ValueError:
        return answer.status, headers, raw.decode()


def plain(said: Said) -> str:
    """Without what differs from run to run: ports, and the numbers of requests. A proxy without a host listens on all
    addresses in Toxiproxy, and on this machine's own in ours."""
    status, headers, body = said
    kept = {**headers, **({"x-toxiproxy-request-id": "some"} if "x-toxiproxy-request-id" in headers else {})}
    kept.pop("content-length", None)
    return PORT.sub("HERE", json.dumps([status, kept, body], sort_keys=True, indent=1))


async def dialogue(port: int, requests: list[Request]) -> list[str]:
    """All answers, with the requests; every proxy is given up before the first one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        there = await asyncio.to_thread(ask, port, ("GET", "/proxies", None))
        assert isinstance(there[2], dict)
        for name in there[2]:
            quoted = name.replace(" ", "%20")
            await asyncio.to_thread(ask, port, ("DELETE", f"/proxies/{quoted}", None))
        said = []
        for method, target, body in requests:
            filled = json.loads(json.dumps(body).replace("{taken}", str(taken.getsockname()[1])))
            answer = plain(await asyncio.to_thread(ask, port, (method, target, filled)))
            said.append(f"{method} {target} {body}\n{answer}".replace(str(taken.getsockname()[1]), "TAKEN"))
        return said


def test_the_embedded_engine_says_what_the_real_server_says(tmp_path: Path) -> None:
    """In every dialogue, at every request."""

    async def main() -> None:
        async with real(tmp_path) as theirs, embedded() as ours:
            for name, requests in DIALOGUES.items():
                said, expected = await dialogue(ours, requests), await dialogue(theirs, requests)
                for one, other in zip(said, expected, strict=True):
                    assert one == other, name
            for target in ("/version", "/nothing"):
                request = ("GET", target, None)
                both = [plain(await asyncio.to_thread(ask, port, request, "Mozilla/5.0")) for port in (ours, theirs)]
                assert both[0] == both[1], "a page that somebody visits must not ask"

    asyncio.run(main())


def test_a_toxic_that_is_added_changed_and_removed_by_the_api_acts(tmp_path: Path) -> None:
    """Also on connections that are there, on both."""

    async def body(port: int) -> None:
        loop = asyncio.get_running_loop()
        servers: list[End] = []
        server = await loop.create_server(lambda: End(servers.append), "127.0.0.1", 0)
        upstream = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

        async def say(method: str, target: str, body: object = None) -> Said:
            return await asyncio.to_thread(ask, port, (method, target, body))

        made = (await say("POST", "/proxies", {"name": "a", "listen": LISTEN, "upstream": upstream}))[2]
        assert isinstance(made, dict)
        where = ("127.0.0.1", int(made["listen"].rpartition(":")[2]))
        _, client = await loop.create_connection(End, *where)
        client.send(b"hello")
        await wait_for(lambda: servers and servers[0].data == b"hello", "the greeting", deadline=DEADLINE)
        limit = {"type": "limit_data", "name": "x", "attributes": {"bytes": 4}}
        assert (await say("POST", "/proxies/a/toxics", limit))[0] == 200
        servers[0].send(b"ab")
        await wait_for(lambda: client.data == b"ab", "two bytes", deadline=DEADLINE)
        assert (await say("POST", "/proxies/a/toxics/x", {"attributes": {"bytes": 3}}))[0] == 200
        servers[0].send(b"cdef")
        await wait_for(lambda: client.ended, "the end of it", deadline=DEADLINE)
        assert client.data == b"abc", "what had passed before the change counts"
        assert (await say("DELETE", "/proxies/a/toxics/x"))[0] == 204
        _, second = await loop.create_connection(End, *where)
        await wait_for(lambda: len(servers) == 2, "the second connection", deadline=DEADLINE)
        servers[1].send(b"abcdef")
        await wait_for(lambda: second.data == b"abcdef", "all of it", deadline=DEADLINE)
        await say("POST", "/proxies/a", {"enabled": False})
        await wait_for(lambda: second.ended, "the cut", deadline=DEADLINE)
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(End, *where)
        await say("POST", "/reset")
        _, third = await loop.create_connection(End, *where)
        await wait_for(lambda: len(servers) == 3, "the third connection", deadline=DEADLINE)
        ends = (client, second, third, *servers)
        for end in ends:
            end.close()
        await wait_for(lambda: all(end.closed for end in ends), "all ends to be closed", deadline=DEADLINE)
        await say("DELETE", "/proxies/a")
        server.close()

    async def main() -> None:
        async with embedded() as port:
            await body(port)
        async with real(tmp_path) as port:
            await body(port)

    asyncio.run(main())
