"""HTTP traffic as real clients make it against a real server."""

from __future__ import annotations

import asyncio
import http.client
import socket
from collections.abc import AsyncIterator, Iterator

import aiohttp
import aiohttp.web
import httpx
import pytest
import requests
from wire_proxy import Proxy, World

from jobcheck.wire.unit import Change, Kind

NO, YES, MAYBE = Change.NO, Change.YES, Change.MAYBE
BIG = 6 * 1024 * 1024


async def handle(request: aiohttp.web.Request) -> aiohttp.web.StreamResponse:
    body = await request.read()
    path = request.path
    if path.startswith("/status/"):
        return aiohttp.web.Response(status=int(path.rpartition("/")[2]))
    if path == "/stream":
        response = aiohttp.web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for _ in range(20):
            await response.write(b"chunk of text\n" * 10)
        await response.write_eof()
        return response
    if path == "/ws":
        socket = aiohttp.web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(message.data)
        return socket
    if path == "/big":
        return aiohttp.web.Response(body=b"x" * BIG)
    return aiohttp.web.json_response({"size": len(body)}, status=201 if request.method == "POST" else 200)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("http"))
    yield world
    world.close()


@pytest.fixture(scope="module")
def origin(world: World) -> Iterator[int]:
    async def start() -> tuple[aiohttp.web.AppRunner, int]:
        app = aiohttp.web.Application(client_max_size=4 * BIG)
        app.router.add_route("*", "/{tail:.*}", handle)
        runner = aiohttp.web.AppRunner(app)
        await runner.setup()
        site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner, runner.addresses[0][1]

    runner, port = world.run(start())
    yield port
    world.run(runner.cleanup())


@pytest.fixture
def proxy(world: World, origin: int) -> Iterator[Proxy]:
    with world.proxy("http", origin) as proxy:
        yield proxy


def said(proxy: Proxy) -> list[tuple[str, Change]]:
    return [(shape.removeprefix("http "), truth) for shape, _, truth in proxy.said()]


EXPECTED = [
    ("POST /charges", YES), ("GET /charges/*", NO), ("PUT /charges/*", YES), ("HEAD /charges/*", NO),
    ("POST /status/*", NO), ("POST /status/*", MAYBE), ("DELETE /status/*", YES), ("GET /stream", NO),
    ("POST /upload", YES),
]  # fmt: skip


def test_requests(proxy):
    url = f"http://127.0.0.1:{proxy.port}"
    with requests.Session() as session:
        assert session.post(f"{url}/charges", json={"invoice": 1000017}, headers={"Idempotency-Key": "k"}).json()
        session.get(f"{url}/charges/1000017", params={"expand": "1"})
        session.put(f"{url}/charges/17", data={"a": 1})
        session.head(f"{url}/charges/17")
        session.post(f"{url}/status/422")
        session.post(f"{url}/status/503")
        session.delete(f"{url}/status/204")
        assert len(session.get(f"{url}/stream").content) == 2800
        assert session.post(f"{url}/upload", data=iter([b"one", b"two"])).json() == {"size": 6}
    assert said(proxy) == EXPECTED
    assert len(proxy.connections) == 1, "kept alive"
    first, *_, last = (unit for unit in proxy.units() if unit.kind is Kind.REQUEST)
    assert first.info["body"] == b'{"invoice": 1000017}'
    assert first.info["headers"]["idempotency-key"] == "k"
    assert first.summary == 'POST /charges {"invoice": 1000017}'
    assert last.info["body"] == b"onetwo"


def calls(client: httpx.Client, url: str) -> None:
    client.post(f"{url}/charges", json={"invoice": 1000017})
    client.get(f"{url}/charges/1000017")
    client.put(f"{url}/charges/17", data={"a": 1})
    client.head(f"{url}/charges/17")
    client.post(f"{url}/status/422")
    client.post(f"{url}/status/503")
    client.delete(f"{url}/status/204")
    client.get(f"{url}/stream")
    client.post(f"{url}/upload", content=iter([b"one", b"two"]))


def test_httpx(proxy):
    with httpx.Client() as client:
        calls(client, f"http://127.0.0.1:{proxy.port}")
    assert said(proxy) == EXPECTED


def test_httpx_async_with_parallel_connections(proxy):
    async def main() -> None:
        async with httpx.AsyncClient() as client:
            posts = (client.post(f"http://127.0.0.1:{proxy.port}/charges/{number}") for number in range(20))
            assert {answer.status_code for answer in await asyncio.gather(*posts)} == {201}

    asyncio.run(main())
    assert said(proxy) == [("POST /charges/*", YES)] * 20


def test_aiohttp(proxy):
    async def chunks() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    async def main() -> None:
        url = f"http://127.0.0.1:{proxy.port}"
        async with aiohttp.ClientSession() as session:
            for method, path, more in (
                ("POST", "/charges", {"json": {"invoice": 1000017}}),
                ("GET", "/charges/1000017", {}),
                ("PUT", "/charges/17", {"data": {"a": "1"}}),
                ("HEAD", "/charges/17", {}),
                ("POST", "/status/422", {}),
                ("POST", "/status/503", {}),
                ("DELETE", "/status/204", {}),
                ("GET", "/stream", {}),
                ("POST", "/upload", {"data": chunks()}),
            ):
                async with session.request(method, url + path, **more) as answer:
                    await answer.read()
            async with session.post(f"{url}/expected", data=b"x" * 1000, expect100=True) as answer:
                assert await answer.json() == {"size": 1000}

    asyncio.run(main())
    assert said(proxy) == [*EXPECTED, ("POST /expected", YES)]
    assert [unit.summary for unit in proxy.units("server") if unit.kind is Kind.CONTROL] == ["100 Continue"]


def test_large_bodies_pass_whole_both_ways(proxy):
    with httpx.Client(timeout=30) as client:
        url = f"http://127.0.0.1:{proxy.port}"
        assert client.post(f"{url}/upload", content=b"y" * BIG).json() == {"size": BIG}
        assert len(client.get(f"{url}/big").content) == BIG
    assert said(proxy) == [("POST /upload", YES), ("GET /big", NO)]


def test_a_client_that_sends_the_head_alone(proxy):
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
    connection.putrequest("POST", "/upload")
    connection.putheader("Content-Length", "3")
    connection.endheaders()
    connection.send(b"abc")
    assert connection.getresponse().read() == b'{"size": 3}'
    connection.close()
    assert said(proxy) == [("POST /upload", YES)]


def test_pipelined_requests_by_hand(proxy):
    one = b"POST /charges HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"
    last = b"GET /charges/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as connection:
        connection.sendall(one * 5 + last)
        while connection.recv(65536):
            pass
    assert said(proxy) == [("POST /charges", YES)] * 5 + [("GET /charges/*", NO)]


def test_a_websocket_turns_opaque(world, origin):
    from wire_proxy import Proxy

    proxy = Proxy("http", origin)
    world.run(proxy.open())

    async def main() -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"http://127.0.0.1:{proxy.port}/ws") as connection,
        ):
            await connection.send_str("hello")
            assert (await connection.receive_str()) == "hello"

    asyncio.run(main())
    world.run(proxy.close())
    notes = [unit.note for unit in proxy.units() + proxy.units("server") if unit.note]
    assert notes == ["the connection became websocket, from here on the bytes pass undecoded"]
