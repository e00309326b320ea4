"""The proxy that refuses: what it lets through, and where that goes. Real sockets and a real client."""

from __future__ import annotations

import asyncio
from functools import partial

import requests

from jobcheck.clock import REAL
from jobcheck.effects.ledger import Ledger
from jobcheck.effects.provider import HttpProvider
from jobcheck.services.spec import Provider
from jobcheck.tap.listener import Slot
from jobcheck.tap.sight import Trace
from jobcheck.wire.registry import decoder_for


def test_plain_requests_by_one_session_reach_each_its_own_stand_in() -> None:
    """A client keeps one connection to the proxy for all plain hosts."""

    async def main() -> None:
        ledger, refused = Ledger(REAL), {}
        slot = Slot("w1", Trace(REAL))
        stand_ins = [HttpProvider(name, Provider(), ledger) for name in ("one", "two")]
        for one in stand_ins:
            await one.start()
            await slot.tap(one.name, (one.host, one.port), partial(decoder_for, "http"))
        await slot.open_proxy({"one.example": "one", "*.two.example": "two"}, refused)
        assert slot.proxy is not None

        def calls(url: str) -> list[int]:
            with requests.Session() as session:
                session.proxies = {"http": url}
                hosts = ("one.example", "a.two.example", "one.example", "b.two.example", "three.example")
                return [session.post(f"http://{host}/x?next=http://z", timeout=10).status_code for host in hosts]

        assert await asyncio.to_thread(calls, slot.proxy.url) == [201, 201, 201, 201, 403]
        assert [effect.name for effect in ledger.since(0)] == [
            "one POST /x",
            "two POST /x",
            "one POST /x",
            "two POST /x",
        ]
        assert list(refused) == ["three.example"]
        await slot.close()
        for one in stand_ins:
            await one.stop()

    asyncio.run(main())


def test_what_is_no_proxys_client_is_left() -> None:
    async def main() -> None:
        slot = Slot("w1", Trace(REAL))
        await slot.open_proxy({}, {})
        assert slot.proxy is not None
        for said in (b"\r\n\r\n", b"x" * 100_000):
            reader, writer = await asyncio.open_connection("127.0.0.1", slot.proxy.port)
            writer.write(said)
            answer = await asyncio.gather(reader.read(), return_exceptions=True)
            assert answer[0] == b"" or isinstance(answer[0], ConnectionError)
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        await slot.close()

    asyncio.run(main())
