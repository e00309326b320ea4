"""A stand-in provider that is out of order, as real clients meet it: what they are told, what counts, what is left."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from jobcheck.aio import Tasks, wait_for
from jobcheck.clock import REAL
from jobcheck.effects.answers import Call
from jobcheck.effects.ledger import Ledger
from jobcheck.effects.provider import HttpProvider
from jobcheck.errors import UsageError
from jobcheck.faults.outages import Capacity, Reply
from jobcheck.services.spec import Provider

Body = Callable[[HttpProvider, httpx.AsyncClient], Awaitable[None]]
KEYED = Provider(idempotency="Idempotency-Key")


@asynccontextmanager
async def world(spec: Provider) -> AsyncIterator[tuple[HttpProvider, httpx.AsyncClient]]:
    server = HttpProvider("payments", spec, Ledger(REAL))
    await server.start()
    try:
        async with httpx.AsyncClient(base_url=server.url, timeout=20) as client:
            yield server, client
    finally:
        await server.stop()
    assert server.failures == []


def play(body: Body, spec: Provider = KEYED) -> None:
    async def main() -> None:
        async with world(spec) as (server, client):
            await body(server, client)

    asyncio.run(main())


async def charge(client: httpx.AsyncClient, number: int = 1, key: str = "", path: str = "/charges") -> httpx.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return await client.post(path, json={"invoice": number}, headers=headers)


def seen(server: HttpProvider) -> list[tuple[bool, str]]:
    """Whether each call counted, and why it did not."""
    return [(item.applied, item.note) for item in server.ledger.since(0)]


def test_a_status_with_its_pause_is_told_on_its_route_only() -> None:
    async def body(server: HttpProvider, client: httpx.AsyncClient) -> None:
        server.begin_outage("a", Reply(429, route="POST /charges", retry_after=1.2))
        told = await charge(client)
        assert (told.status_code, told.headers["retry-after"]) == (429, "2")
        assert (await charge(client, path="/refunds")).status_code == 201
        assert (await client.get("/charges")).status_code == 200
        server.end_outage("a")
        assert (await charge(client)).status_code == 201
        assert seen(server) == [(False, "429"), (True, ""), (True, "")]
        assert [item.fields.get("retry_after") for item in server.ledger.since(0)] == [2, None, None]
        assert server.outages.hits("a") == 1

    play(body)


def test_the_first_calls_of_a_route_fail_and_then_it_works() -> None:
    async def body(server: HttpProvider, client: httpx.AsyncClient) -> None:
        server.begin_outage("a", Reply(500, route="POST /charges", first=2))
        assert [(await charge(client)).status_code for _ in range(4)] == [500, 500, 201, 201]
        assert server.outages.hits("a") == 2

    play(body)


def test_the_first_calls_of_each_key_or_each_case_fail() -> None:
    """A call without a key counts with those that say the same; so does one of no case."""

    async def case_of(call: Call) -> str:
        return f"case-{call.json['invoice'] % 2}" if call.json["invoice"] < 10 else ""

    async def body(server: HttpProvider, client: httpx.AsyncClient) -> None:
        server.begin_outage("a", Reply(500, first=1, each="key"))
        calls = [(1, "x"), (1, "y"), (1, "x"), (1, "y"), (2, ""), (2, ""), (3, "")]
        assert [(await charge(client, *call)).status_code for call in calls] == [500, 500, 201, 201, 500, 201, 500]
        server.end_outage("a")
        server.begin_outage("b", Reply(500, first=1, each="case"), case_of)
        numbers = [1, 2, 3, 4, 11, 11, 12]
        assert [(await charge(client, one)).status_code for one in numbers] == [500, 500, 201, 201, 500, 201, 500]

    play(body)


def test_a_call_whose_answer_is_lost_has_counted() -> None:
    """The same key is then told what the first call would have been told."""

    async def body(server: HttpProvider, client: httpx.AsyncClient) -> None:
        server.begin_outage("a", Reply(answer="lost", first=1))
        with pytest.raises(httpx.RemoteProtocolError):
            await charge(client, key="k")
        again = await charge(client, key="k")
        assert (again.status_code, again.headers["idempotent-replayed"]) == (201, "true")
        assert seen(server) == [(True, ""), (False, "replayed")]

    play(body)


def test_a_cut_answer_and_a_hanging_one_have_not_counted() -> None:
    async def body(server: HttpProvider, client: httpx.AsyncClient) -> None:
        server.begin_outage("a", Reply(answer="cut"))
        with pytest.raises(httpx.RemoteProtocolError):
            await charge(client)
        server.end_outage("a")
        server.begin_outage("b", Reply(answer="hang"))
        with pytest.raises(httpx.ReadTimeout):
            await client.post("/charges", json={}, timeout=0.05)
        assert seen(server) == [(False, "connection closed"), (False, "no answer")]

    play(body)


def test_an_error_can_count_and_garbage_can_fail_to() -> None:
    async def body(server: HttpProvider, client: httpx.AsyncClient) -> None:
        server.begin_outage("a", Reply(500, counts=True))
        assert (await charge(client)).status_code == 500
        server.begin_outage("b", Reply(answer="garbage"))
        answer = await charge(client)
        assert answer.status_code == 201
        with pytest.raises(ValueError, match="."):
            answer.json()
        server.begin_outage("c", Reply(answer="garbage", counts=False))
        assert (await charge(client)).status_code == 200
        server.begin_outage("d", Reply(content_type="text/html"))
        answer = await charge(client)
        assert (answer.headers["content-type"], answer.json()["invoice"]) == ("text/html", 1)
        assert [applied for applied, _ in seen(server)] == [True, True, False, True]

    play(body)


def test_an_outage_that_ends_lets_what_was_slow_go_on_and_cuts_what_hung() -> None:
    """Nothing is left of it: no call that waits, no connection that hangs."""

    async def body(server: HttpProvider, client: httpx.AsyncClient) -> None:
        tasks = Tasks()
        server.begin_outage("slow", Reply(slow=3600.0, route="POST /charges"))
        server.begin_outage("hang", Reply(answer="hang", route="POST /refunds"))
        slow = tasks.start("slow", charge(client))
        hung = tasks.start("hung", _failure(charge(client, path="/refunds")))
        await wait_for(lambda: server.ledger.seq == 2, "both calls", deadline=20)
        await wait_for(lambda: server.outages.hits("hang") == 1, "the call that hangs", deadline=20)
        server.clear()
        assert (await slow).status_code == 201
        assert isinstance(await hung, httpx.RemoteProtocolError)
        assert (await charge(client, path="/refunds")).status_code == 201
        await tasks.close()

    play(body)


async def _failure(call: Awaitable[Any]) -> Exception:
    try:
        raise AssertionError(f"expected no answer, got {await call}")
    except httpx.HTTPError as error:
        return error


def test_several_outages_act_at_once_and_the_last_one_comes_first() -> None:
    async def body(server: HttpProvider, client: httpx.AsyncClient) -> None:
        server.begin_outage("all", Reply(503))
        server.begin_outage("charges", Reply(429, route="POST /charges"))
        assert [(await charge(client, path=path)).status_code for path in ("/charges", "/refunds")] == [429, 503]
        server.end_outage("charges")
        assert (await charge(client)).status_code == 503
        server.end_outage("all")
        assert (await charge(client)).status_code == 201

    play(body)


def test_a_rig_programs_its_routes_with_the_same_words() -> None:
    async def body(server: HttpProvider, client: httpx.AsyncClient) -> None:
        told = [await charge(client) for _ in range(3)]
        assert [(one.status_code, one.headers.get("retry-after")) for one in told] == [
            (429, "2"),
            (201, None),
            (201, None),
        ]
        with pytest.raises(httpx.RemoteProtocolError):
            await charge(client, path="/refunds")
        garbage = await charge(client, path="/things")
        assert garbage.headers["content-type"] == "application/json"
        with pytest.raises(ValueError, match="."):
            garbage.json()
        assert seen(server) == [(False, "429"), (True, ""), (True, ""), (True, ""), (True, "")]
        assert server.ledger.since(0)[0].fields["retry_after"] == 2

    routes = {
        "POST /charges": {"status": 429, "retry_after": "2s", "first": 1},
        "POST /refunds": {"answer": "lost"},
        "POST /things": {"answer": "garbage"},
    }
    play(body, Provider(routes=routes))


# Capacity


def test_calls_beyond_the_capacity_wait_and_those_beyond_the_queue_are_refused() -> None:
    """One is served, two wait, the fourth is told so: and nothing of it has happened."""

    async def body(server: HttpProvider, client: httpx.AsyncClient) -> None:
        tasks = Tasks()
        server.begin_outage("narrow", Reply(capacity=Capacity(0.001, 2, 429, 7.0)))
        assert (await charge(client)).status_code == 201
        waiting = [tasks.start(f"call {number}", charge(client, number)) for number in (2, 3)]
        await wait_for(lambda: server.waiting == 2, "two that wait", deadline=20)
        beyond = await charge(client, 4)
        assert (beyond.status_code, beyond.headers["retry-after"]) == (429, "7")
        assert seen(server) == [(True, ""), (False, "429 beyond capacity")]
        assert server.outages.hits("narrow") == 3
        server.end_outage("narrow")
        assert [(await task).status_code for task in waiting] == [201, 201]
        assert server.waiting == 0
        await tasks.close()

    play(body)


def test_a_call_in_the_queue_happens_although_its_caller_is_gone() -> None:
    """That is what makes an overload lasting: work is done for nobody."""

    async def body(server: HttpProvider, client: httpx.AsyncClient) -> None:
        assert (await charge(client)).status_code == 201
        with socket.create_connection((server.host, server.port)) as link:
            link.sendall(b"POST /charges HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
            await wait_for(lambda: server.waiting == 1, "the call in the queue", deadline=20)
        await wait_for(lambda: server.ledger.seq == 2, "the second charge", deadline=20)
        assert server.counter is not None
        assert (server.counter.waited, server.counter.refused) == (1, 0)
        assert server.counter.longest > 0

    play(body, Provider(capacity="3/s", beyond="slow"))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"capacity": "50"}, "expected capacity to be a rate such as 20/s or 90/m, got '50'; did you mean '50/s'?"),
        ({"capacity": 0}, "expected capacity to be a rate such as 20/s or 90/m, got 0"),
        ({"queue": 5}, "queue and beyond belong to a capacity, and there is none; write capacity='50/s'"),
        ({"capacity": 5, "queue": -1}, "expected queue to be 0 or more, got -1"),
        ({"capacity": 5, "beyond": 200}, "expected beyond to be a status such as 503, or 'slow', got 200"),
    ],
)
def test_a_capacity_that_is_none_is_a_usage_error(said: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        Provider(**said)
    assert error.value.message == f"provider: {message}"
