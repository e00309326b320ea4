"""The provider calls back: it sends its events to the app's own web server, and again when that refuses them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import h11

from ..aio import Tasks, bounded
from ..clock import Clock
from ..faults.routes import fits
from ..faults.strikes import EARLY, LATE, SWAPPED, TWICE
from ..history.ids import digest
from ..services.spec import Webhook
from .answers import Call

ANSWER_WITHIN = 10.0
"""Seconds."""
PAUSE = 0.1
"""Seconds between two tries. Real providers wait minutes: what counts is that the same event comes again."""


class Courier:
    """Delivers the callbacks of one provider. `to` fills an address."""

    def __init__(self, webhooks: Sequence[Webhook], clock: Clock, to: Callable[[str], str]) -> None:
        self._webhooks = webhooks
        self._clock = clock
        self._to = to
        self._tasks = Tasks()
        self._made = 0
        self._before = 0
        self.how = ""
        """Another way to call back, for one case (`faults.strikes`): `twice`, `early`, `late`, `swapped`."""
        self._kept: list[tuple[Webhook, bytes]] = []
        """Callbacks that come late."""
        self.waiting = 0
        """Callbacks that are still to be delivered, or are being delivered."""
        self.refused: list[str] = []
        """Those that were given up, in words."""

    async def tell(self, call: Call, content: Any) -> None:
        """An accepted call: what comes early has come when this returns, the rest comes by itself."""
        for webhook in self._webhooks:
            if not fits(webhook.on, call.method, call.path):
                continue
            self._made += 1
            body = json.dumps(_event(webhook, call, content, self._made)).encode()
            times = webhook.times * (2 if self.how == TWICE else 1)
            if self.how in (LATE, SWAPPED):
                self._kept += [(webhook, body)] * times
                continue
            self.waiting += times
            if webhook.early or self.how == EARLY:
                for _ in range(times):
                    await self._deliver(webhook, body)
                continue
            for number in range(times):
                self._tasks.start(f"webhook {webhook.on} {number + 1}", self._later(webhook, body))

    def begin(self, how: str = "") -> None:
        """A case begins, in which the provider calls back in this way; empty: as the rig says."""
        self.how, self._before = how, self._made
        self._kept.clear()
        self.refused.clear()

    @property
    def made(self) -> int:
        """Events that were made since the case began."""
        return self._made - self._before

    async def hand_over(self) -> None:
        """What was kept comes now, one after the other."""
        kept, self._kept = self._kept, []
        self.waiting += len(kept)
        for webhook, body in reversed(kept) if self.how == SWAPPED else kept:
            await self._deliver(webhook, body)

    async def _later(self, webhook: Webhook, body: bytes) -> None:
        await asyncio.sleep(webhook.after)
        await self._deliver(webhook, body)

    async def _deliver(self, webhook: Webhook, body: bytes) -> None:
        said = ""
        try:
            for number in range(webhook.tries):
                if number:
                    await asyncio.sleep(PAUSE)
                said = await self._once(webhook, body)
                if not said:
                    return
            tries = f"{webhook.tries} tr{'ies' if webhook.tries > 1 else 'y'}"
            self.refused.append(f"the callback of {webhook.on} was given up after {tries}: {said}")
        finally:
            self.waiting -= 1

    async def _once(self, webhook: Webhook, body: bytes) -> str:
        """One try; empty when it was taken, else what came of it."""
        url = self._to(webhook.to)
        headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
        if webhook.secret:
            headers["stripe-signature"] = signature(body, webhook.secret, int(self._clock.wall()))
        try:
            status = await bounded(post(url, headers, body), ANSWER_WITHIN)
        except (OSError, TimeoutError, h11.RemoteProtocolError) as error:
            return f"{url}: {error or 'no answer'}"
        return "" if 200 <= status < 300 else f"{url} answered {status}"

    async def close(self) -> None:
        """What is not delivered yet never comes."""
        await self._tasks.close()


def signature(body: bytes, secret: str, at: int) -> str:
    """Stripe's own: a time, and HMAC-SHA256 of `time.body` in hex."""
    signed = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={signed}"


async def post(url: str, headers: Mapping[str, str], body: bytes) -> int:
    """The status of the answer. Raises OSError, or h11.RemoteProtocolError for what is no HTTP."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname or "", parts.port or 80)
    try:
        wire = h11.Connection(h11.CLIENT)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        request = h11.Request(method="POST", target=target, headers=[("host", parts.netloc), *headers.items()])
        writer.write((wire.send(request) or b"") + (wire.send(h11.Data(data=body)) or b""))
        writer.write(wire.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        while True:
            event = wire.next_event()
            if event is h11.NEED_DATA:
                wire.receive_data(await reader.read(65536))
            elif isinstance(event, h11.Response):
                return event.status_code
    finally:
        writer.close()


def _event(webhook: Webhook, call: Call, content: Any, number: int) -> Any:
    fields = dict(call.json) if isinstance(call.json, Mapping) else {}
    made = content.get("id", "") if isinstance(content, Mapping) else ""
    if webhook.event == "stripe":
        kind = str(content.get("object", "")) if isinstance(content, Mapping) else ""
        how = "succeeded" if isinstance(content, Mapping) and content.get("status") == "succeeded" else "created"
        event = {"id": f"evt_{digest(webhook.on, number)[:24]}", "object": "event", "type": f"{kind}.{how}"}
        return {**event, "livemode": False, "data": {"object": content}}
    if webhook.body is None:
        return {"event": webhook.on, "id": made, "data": {**fields, "id": made}}
    return _filled(webhook.body, {**fields, "id": made})


def _filled(value: Any, fields: Mapping[str, Any]) -> Any:
    """`{name}` alone is the value itself; within a text it is its words."""
    if isinstance(value, Mapping):
        return {key: _filled(item, fields) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(item, fields) for item in value]
    if not isinstance(value, str):
        return value
    for name, item in fields.items():
        if value == f"{{{name}}}":
            return item
        value = value.replace(f"{{{name}}}", str(item))
    return value
