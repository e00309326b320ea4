"""Real clients against the stand-in servers: what they are told, and what the ledger says of it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import httpx
import pytest
import requests

from jobcheck.aio import Tasks, wait_for, within
from jobcheck.clock import REAL
from jobcheck.effects.answers import Call
from jobcheck.effects.ledger import Ledger
from jobcheck.effects.mail import SmtpSink
from jobcheck.effects.marks import MarkServer
from jobcheck.effects.provider import HttpProvider
from jobcheck.faults.outages import Reply
from jobcheck.services.spec import Provider

KEYED = Provider(idempotency="Idempotency-Key")


@asynccontextmanager
async def provider(spec: Provider = KEYED) -> AsyncIterator[HttpProvider]:
    server = HttpProvider("payments", spec, Ledger(REAL))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
    assert server.failures == []


def seen(server: HttpProvider | SmtpSink | MarkServer) -> list[tuple[str, str, bool, str]]:
    return [(item.name, item.body, item.applied, item.note) for item in server.ledger.since(0)]


def post(server: HttpProvider, body: Any = None, key: str = "", path: str = "/charges") -> requests.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return requests.post(server.url + path, json=body, headers=headers, timeout=10)


# HTTP: three clients


def test_requests_httpx_and_aiohttp_charge_and_read_it_back() -> None:
    """Each on one kept connection: POST, GET of the thing, GET of the collection."""

    def with_requests(url: str) -> list[Any]:
        with requests.Session() as session:
            made = session.post(url + "/charges", json={"invoice": 1}).json()
            return [
                made,
                session.get(f"{url}/charges/{made['id']}").json(),
                session.get(url + "/charges?invoice=1").json(),
            ]

    async def with_httpx(url: str) -> list[Any]:
        async with httpx.AsyncClient() as client:
            made = (await client.post(url + "/charges", json={"invoice": 2})).json()
            one = await client.get(f"{url}/charges/{made['id']}")
            return [made, one.json(), (await client.get(url + "/charges", params={"invoice": 2})).json()]

    async def with_aiohttp(url: str) -> list[Any]:
        async with aiohttp.ClientSession() as session:
            made = await (await session.post(url + "/charges", json={"invoice": 3})).json()
            one = await (await session.get(f"{url}/charges/{made['id']}")).json()
            return [made, one, await (await session.get(url + "/charges?invoice=3")).json()]

    async def main() -> None:
        async with provider() as server:
            results = [
                await asyncio.to_thread(with_requests, server.url),
                await with_httpx(server.url),
                await with_aiohttp(server.url),
            ]
            for number, (made, one, listed) in enumerate(results, 1):
                assert made["invoice"] == number
                assert one == made
                assert listed == {"data": [made]}
            assert seen(server) == [
                ("payments POST /charges", f'{{"invoice":{number}}}', True, "") for number in (1, 2, 3)
            ]

    asyncio.run(main())


def test_statuses_and_names_by_method() -> None:
    def work(url: str) -> list[int]:
        with requests.Session() as session:
            calls = [
                session.post(url + "/charges", json={}),
                session.put(url + "/charges/17", json={"amount": 3}),
                session.patch(url + "/charges/17", json={"amount": 4}),
                session.get(url + "/charges/17"),
                session.head(url + "/charges/17"),
                session.delete(url + "/charges/17"),
                session.get(url + "/unknown"),
            ]
            assert calls[3].json() == {"id": "17", "amount": 4}
            assert calls[6].json() == {}
            return [call.status_code for call in calls]

    async def main() -> None:
        async with provider() as server:
            assert await asyncio.to_thread(work, server.url) == [201, 200, 200, 200, 200, 200, 200]
            assert [item[0] for item in seen(server)] == [
                "payments POST /charges",
                "payments PUT /charges/*",
                "payments PATCH /charges/*",
                "payments DELETE /charges/*",
            ]

    asyncio.run(main())


def test_chunked_bodies_and_forms_are_read() -> None:
    def work(url: str) -> None:
        requests.post(url + "/charges", data=iter([b'{"b":2,', b'"a":1}']), timeout=10)
        requests.post(url + "/charges", data={"b": "2", "a": ["1", "3"]}, timeout=10)
        requests.post(url + "/charges", data=b"\xff\x00", timeout=10)

    async def main() -> None:
        async with provider() as server:
            await asyncio.to_thread(work, server.url)
            bodies = [item[1] for item in seen(server)]
            assert bodies[:2] == ['{"a":1,"b":2}', '{"a":["1","3"],"b":"2"}']
            assert bodies[2].startswith("2 bytes sha256:")

    asyncio.run(main())


async def raw(server: HttpProvider, data: bytes, *, until: bytes) -> bytes:
    """What the server says to these bytes, up to and with `until`."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    try:
        writer.write(data)
        got = b""
        while until not in got:
            more = await within(reader.read(65536), 10, f"{until!r} after {got!r}")
            if not more:
                break
            got += more
        return got
    finally:
        writer.close()
        await writer.wait_closed()


def request(body: bytes, *headers: bytes, path: bytes = b"/charges") -> bytes:
    lines = [b"POST " + path + b" HTTP/1.1", b"Host: x", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def test_pipelined_requests_are_answered_in_order() -> None:
    async def main() -> None:
        async with provider(Provider(routes={"POST /last": {"json": {"the": "end"}}})) as server:
            got = await raw(server, request(b"1") + request(b"2") + request(b"3", path=b"/last"), until=b"end")
            assert got.count(b"HTTP/1.1 201") == 3
            assert [item[1] for item in seen(server)] == ["1", "2", "3"]

    asyncio.run(main())


def test_expect_100_continue_is_answered_before_the_body_is_sent() -> None:
    async def main() -> None:
        async with provider() as server:
            reader, writer = await asyncio.open_connection(server.host, server.port)
            whole = request(b'{"a":1}', b"Expect: 100-continue")
            writer.write(whole[:-7])
            line = await within(reader.readline(), 10, "100 Continue")
            assert line.startswith(b"HTTP/1.1 100")
            assert seen(server) == []
            writer.write(whole[-7:])
            assert b"201" in await within(reader.readuntil(b"}"), 10, "the answer")
            writer.close()
            await writer.wait_closed()
            assert len(seen(server)) == 1

    asyncio.run(main())


def test_what_is_not_http_is_refused() -> None:
    async def main() -> None:
        async with provider() as server:
            got = await raw(server, b"hello there\r\n\r\n", until=b"}")
            assert got.startswith(b"HTTP/1.1 400")
            assert seen(server) == []

    asyncio.run(main())


# HTTP: when an effect counts


def test_a_charge_counts_when_the_request_is_complete_though_the_client_is_gone() -> None:
    async def main() -> None:
        async with provider(Provider(routes={"POST /charges": {"hang": True, "applied": True}})) as server:
            with socket.create_connection((server.host, server.port)) as link:
                link.sendall(request(b'{"invoice":17}'))
            await wait_for(lambda: server.ledger.seq, "the charge", deadline=10)
            assert seen(server) == [("payments POST /charges", '{"invoice":17}', True, "")]

    asyncio.run(main())


def test_a_charge_counts_before_its_delayed_answer() -> None:
    async def main() -> None:
        async with (
            provider(Provider(routes={"POST /charges": {"delay": 3600}})) as server,
            httpx.AsyncClient() as client,
        ):
            tasks = Tasks()
            task = tasks.start("client", client.post(server.url + "/charges", json={}))
            await wait_for(lambda: server.ledger.seq, "the charge", deadline=10)
            assert not task.done()
            await tasks.close()

    asyncio.run(main())


def test_half_a_request_is_no_charge() -> None:
    async def main() -> None:
        async with provider() as server:
            _, writer = await asyncio.open_connection(server.host, server.port)
            writer.write(request(b'{"invoice":17}')[:-3])
            writer.close()
            await writer.wait_closed()
            await raw(server, request(b"2"), until=b"}")
            assert [item[1] for item in seen(server)] == ["2"]

    asyncio.run(main())


def test_refused_calls_are_told_from_effects() -> None:
    async def main() -> None:
        async with provider() as server:
            server.program("POST /charges", 503, {"status": 429, "headers": {"Retry-After": "7"}}, {"drop": True})
            first, second = [await asyncio.to_thread(post, server) for _ in range(2)]
            assert (first.status_code, second.status_code, second.headers["retry-after"]) == (503, 429, "7")
            with pytest.raises(requests.ConnectionError):
                await asyncio.to_thread(post, server)
            assert (await asyncio.to_thread(post, server)).status_code == 201
            assert [item[2:] for item in seen(server)] == [
                (False, "503"),
                (False, "429"),
                (False, "connection closed"),
                (True, ""),
            ]

    asyncio.run(main())


def test_an_answer_can_fail_although_the_charge_was_made() -> None:
    async def main() -> None:
        async with provider() as server:
            server.program("POST /charges", {"status": 500, "applied": True}, {"drop": True, "applied": True})
            assert (await asyncio.to_thread(post, server)).status_code == 500
            with pytest.raises(requests.ConnectionError):
                await asyncio.to_thread(post, server)
            assert [item[2] for item in seen(server)] == [True, True]

    asyncio.run(main())


def test_routes_with_wildcards_functions_and_fixed_answers() -> None:
    def echo(call: Call) -> dict[str, Any]:
        return {"status": 202, "json": {"method": call.method, "path": call.path, "got": call.json}}

    routes = {
        "POST /charges/*/refund": {"json": {"kind": "refund"}, "headers": {"X-Kind": "r"}},
        "GET /text": {"body": "plain"},
        "* /fn/**": echo,
        "DELETE /gone": {"status": 204},
    }

    def work(server: HttpProvider) -> None:
        url = server.url
        refund = requests.post(url + "/charges/17/refund", timeout=10)
        assert (refund.json(), refund.headers["x-kind"]) == ({"kind": "refund"}, "r")
        assert requests.get(url + "/text", timeout=10).text == "plain"
        called = requests.put(url + "/fn/a/b?x=1", json=[1], timeout=10)
        assert called.json() == {"method": "PUT", "path": "/fn/a/b?x=1", "got": [1]}
        assert requests.delete(url + "/gone", timeout=10).content == b""
        server.set("GET /text", 404)
        assert requests.get(url + "/text", timeout=10).status_code == 404

    async def main() -> None:
        async with provider(Provider(routes=routes)) as server:
            await asyncio.to_thread(work, server)

    asyncio.run(main())


def test_an_outage_answers_everything_until_it_ends() -> None:
    async def main() -> None:
        async with provider() as server:
            server.begin_outage("down", Reply(503))
            assert (await asyncio.to_thread(post, server, path="/any")).status_code == 503
            assert (await asyncio.to_thread(requests.get, server.url, timeout=10)).status_code == 503
            server.end_outage("down")
            assert (await asyncio.to_thread(post, server)).status_code == 201

    asyncio.run(main())


# HTTP: idempotency keys


def test_the_same_key_and_body_is_replayed_and_charges_once() -> None:
    async def main() -> None:
        async with provider() as server:
            first, second = [await asyncio.to_thread(post, server, {"invoice": 17}, "k") for _ in range(2)]
            assert (first.status_code, first.json()) == (second.status_code, second.json())
            assert second.headers["idempotent-replayed"] == "true"
            assert [(item.key, item.applied, item.note) for item in server.ledger.since(0)] == [
                ("k", True, ""),
                ("k", False, "replayed"),
            ]

    asyncio.run(main())


def test_the_same_key_with_another_body_is_422() -> None:
    async def main() -> None:
        async with provider() as server:
            await asyncio.to_thread(post, server, {"invoice": 17}, "k")
            assert (await asyncio.to_thread(post, server, {"invoice": 18}, "k")).status_code == 422
            assert seen(server)[1][2:] == (False, "422 same key, another body")

    asyncio.run(main())


def test_the_same_key_while_the_first_is_in_flight_is_409() -> None:
    """The first call is held inside its programmed answer until the second one was refused."""

    async def main() -> None:
        entered, go_on = asyncio.Event(), asyncio.Event()

        async def held(_: Call) -> int:
            entered.set()
            await go_on.wait()
            return 201

        async with provider() as server, httpx.AsyncClient() as client:
            server.program("POST /charges", held)

            def call() -> Any:
                return client.post(server.url + "/charges", json={"invoice": 17}, headers={"Idempotency-Key": "k"})

            tasks = Tasks()
            first = tasks.start("first", call())
            await within(entered.wait(), 10, "the first call")
            second = await call()
            assert second.status_code == 409
            go_on.set()
            assert (await within(first, 10, "the first answer")).status_code == 201
            third = await call()
            assert (third.status_code, third.json()) == (201, first.result().json())
            assert [item[2:] for item in seen(server)] == [(False, "409 in flight"), (True, ""), (False, "replayed")]
            await tasks.close()

    asyncio.run(main())


def test_a_key_is_remembered_for_accepted_calls_only() -> None:
    async def main() -> None:
        async with provider() as server:
            server.program("POST /charges", 500, {"status": 400})
            statuses = [(await asyncio.to_thread(post, server, {}, "k")).status_code for _ in range(4)]
            assert statuses == [500, 400, 201, 201]
            assert [item[2:] for item in seen(server)] == [
                (False, "500"),
                (False, "400"),
                (True, ""),
                (False, "replayed"),
            ]

    asyncio.run(main())


def test_a_call_that_was_dropped_before_it_was_carried_out_is_new_the_next_time() -> None:
    async def main() -> None:
        async with provider() as server:
            server.program("POST /charges", {"drop": True})
            with pytest.raises(requests.ConnectionError):
                await asyncio.to_thread(post, server, {}, "k")
            assert (await asyncio.to_thread(post, server, {}, "k")).status_code == 201
            assert [item[2:] for item in seen(server)] == [(False, "connection closed"), (True, "")]

    asyncio.run(main())


def test_a_lost_answer_is_replayed_to_the_second_attempt() -> None:
    async def main() -> None:
        async with provider() as server:
            server.program("POST /charges", {"drop": True, "applied": True})
            with pytest.raises(requests.ConnectionError):
                await asyncio.to_thread(post, server, {"a": 1}, "k")
            again = await asyncio.to_thread(post, server, {"a": 1}, "k")
            assert (again.status_code, again.json()["a"]) == (201, 1)
            assert [item[2] for item in seen(server)] == [True, False]

    asyncio.run(main())


def test_a_key_past_its_retention_charges_again() -> None:
    async def main() -> None:
        async with provider() as server:
            await asyncio.to_thread(post, server, {}, "k")
            assert server.keys.rewind(3600) == 0
            assert server.keys.rewind(86_400) == 1
            await asyncio.to_thread(post, server, {}, "k")
            assert [item[2] for item in seen(server)] == [True, True]

    asyncio.run(main())


def test_without_idempotency_every_accepted_call_is_an_effect() -> None:
    async def main() -> None:
        async with provider(Provider()) as server:
            for _ in range(2):
                await asyncio.to_thread(post, server, {}, "k")
            assert [item[2] for item in seen(server)] == [True, True]

    asyncio.run(main())


def test_stopping_ends_hanging_connections_and_may_be_done_twice() -> None:
    async def main() -> None:
        server = HttpProvider("payments", Provider(routes={"POST /charges": {"hang": True}}), Ledger(REAL))
        await server.start()
        async with httpx.AsyncClient() as client:
            tasks = Tasks()
            call = tasks.start("client", client.post(server.url + "/charges"))
            await wait_for(lambda: server.ledger.seq, "the call", deadline=10)
            await within(server.stop(), 10, "the end")
            await server.stop()
            with pytest.raises(httpx.TransportError):
                await within(call, 10, "the broken connection")

    asyncio.run(main())
