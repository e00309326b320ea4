"""Toxics on single messages, on real connections: only those messages meet it, and the heal leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import httpx
import pytest

from jobcheck.aio import Tasks, wait_for
from jobcheck.clock import REAL
from jobcheck.effects.ledger import Ledger
from jobcheck.effects.provider import HttpProvider
from jobcheck.faults.model import Messages
from jobcheck.faults.toxics import Bandwidth, Latency, LimitData, ResetPeer, Stream, Timeout, Toxic
from jobcheck.runner.scenarios.ailments import Ailment
from jobcheck.seeds import Seeds
from jobcheck.services.spec import Provider
from jobcheck.tap.listener import Slot
from jobcheck.tap.sight import Sight, Trace
from jobcheck.wire.registry import decoder_for

CHARGES = "payments POST /charges"
DEADLINE = 20.0


class World:
    """A provider behind a tap whose gate knows one ailment, and a client that plays jobs."""

    def __init__(self, server: HttpProvider, slot: Slot, client: httpx.AsyncClient) -> None:
        self.server = server
        self.slot = slot
        self.client = client
        self.ailments: list[Ailment] = []
        slot.gate = self

    def holds(self, sight: Sight) -> bool:
        for ailment in self.ailments:
            ailment.meets(sight)
        return False

    def ail(self, toxic: Toxic, messages: Messages) -> Ailment:
        made = Ailment("x", toxic, messages, Seeds(7).stream("x"), lambda job: f"case of {job}")
        self.ailments.append(made)
        return made

    async def ask(self, path: str = "/charges", job: str = "a") -> str:
        """`201`, or the name of the error that the client got."""
        self.slot.job = job
        try:
            return str((await self.client.post(path, json={"job": job})).status_code)
        except httpx.HTTPError as error:
            return type(error).__name__

    @property
    def pipes(self) -> int:
        """Directions of connections on which something acts, or is held."""
        return sum(not pipe.empty or pipe.busy for link in self.slot.links for pipe in link._pipes.values())


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    server = HttpProvider("payments", Provider(), Ledger(REAL))
    await server.start()
    slot = Slot("w1", Trace(REAL))
    port = await slot.tap("payments", (server.host, server.port), partial(decoder_for, "http"))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE) as client:
        yield World(server, slot, client)
    slot.gate = None
    await slot.close()
    await server.stop()


def play(body: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with world() as made:
            await body(made)

    asyncio.run(main())


def test_the_first_requests_of_a_route_are_dropped_and_never_arrive() -> None:
    """`{toxic: reset_peer, point: payments POST /charges, stream: upstream, first: 2}`."""

    async def body(world: World) -> None:
        ailment = world.ail(ResetPeer(stream=Stream.UPSTREAM), Messages(CHARGES, first=2))
        said = [await world.ask(path) for path in ("/refunds", "/charges", "/charges", "/refunds", "/charges")]
        assert said == ["201", "ReadError", "ReadError", "201", "201"]
        assert [effect.name for effect in world.server.ledger.since(0)] == [
            "payments POST /refunds",
            "payments POST /refunds",
            "payments POST /charges",
        ]
        assert ailment.hits == 2

    play(body)


def test_an_answer_is_lost_though_the_request_arrived() -> None:
    """Without `stream`, it is the way back that breaks."""

    async def body(world: World) -> None:
        ailment = world.ail(ResetPeer(), Messages(CHARGES, nth=2))
        assert [await world.ask() for _ in range(3)] == ["201", "ReadError", "201"]
        assert world.server.ledger.seq == 3
        assert ailment.hits == 1

    play(body)


def test_the_first_of_each_case_meet_it() -> None:
    async def body(world: World) -> None:
        world.ail(LimitData(0), Messages(CHARGES, first=1, each="case"))
        said = [await world.ask(job=job) for job in ("a", "b", "a", "b", "c")]
        assert [one == "201" for one in said] == [False, False, True, True, False]

    play(body)


@pytest.mark.parametrize("stream", list(Stream))
def test_a_message_that_is_late_does_not_make_those_after_it_late(stream: Stream) -> None:
    """On the same connection, once it is through."""

    async def body(world: World) -> None:
        world.ail(Latency(150, stream=stream), Messages(CHARGES, nth=1))
        began = REAL.now()
        assert await world.ask() == "201"
        assert REAL.now() - began >= 0.15
        assert len(world.slot.links) == 1
        await wait_for(lambda: world.pipes == 0, "the toxic to be off", deadline=DEADLINE)
        assert await world.ask() == "201"
        assert world.pipes == 0

    play(body)


@pytest.mark.parametrize("toxic", [Latency(3_600_000), Bandwidth(0), Latency(3_600_000, stream=Stream.UPSTREAM)])
def test_a_heal_hands_on_what_was_held_and_leaves_nothing(toxic: Toxic) -> None:
    async def body(world: World) -> None:
        ailment = world.ail(toxic, Messages(CHARGES))
        tasks = Tasks()
        asked = tasks.start("a charge", world.ask())
        await wait_for(lambda: world.pipes == 1, "the message to be held", deadline=DEADLINE)
        ailment.end()
        assert await asked == "201"
        assert world.pipes == 0
        assert await world.ask() == "201"
        assert ailment.hits == 1
        await tasks.close()

    play(body)


def test_a_heal_ends_a_connection_whose_data_has_vanished() -> None:
    async def body(world: World) -> None:
        ailment = world.ail(Timeout(0), Messages(CHARGES))
        tasks = Tasks()
        asked = tasks.start("a charge", world.ask())
        await wait_for(lambda: world.server.ledger.seq == 1 and world.pipes, "the charge", deadline=DEADLINE)
        ailment.end()
        assert await asked == "RemoteProtocolError"
        assert await world.ask() == "201"
        assert world.pipes == 0
        await tasks.close()

    play(body)


def test_a_share_of_the_messages_is_drawn_from_the_seed() -> None:
    async def body(world: World) -> None:
        world.ail(ResetPeer(toxicity=0.5), Messages(CHARGES))
        said = [await world.ask() for _ in range(12)]
        draw = Seeds(7).stream("x")
        assert said == ["ReadError" if draw.random() < 0.5 else "201" for _ in range(12)]

    play(body)
