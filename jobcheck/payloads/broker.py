"""Payloads on a broker: seen in what a tap saw, and put there through the broker's own structures.

Whatever the broker, a message is kept in one form: the JSON in which kombu's virtual transports store it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..services.clients import redis_client
from ..services.spec import Address
from ..systems.contract import AgentCall, Settings
from ..tap.sight import Sight

INSIDE = str(Path(__file__).parent / "inside" / "celery_tasks.py")
CUT_AT = 256 * 1024
"""Bytes from which a tap on Redis keeps only the beginning of a value."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One message on its way to the broker."""

    queue: str
    raw: str
    whole: bool = True
    """False: it is larger than a tap keeps."""


class Wire(Protocol):
    """How one kind of broker takes Celery's messages. `call` and `app` reach the app's own library."""

    def sent(self, sights: Iterable[Sight]) -> Iterator[Sent]:
        """The jobs that were enqueued, in order, each once."""
        ...

    def reads(self, queue: str, raw: str, settings: Settings) -> bool:
        """Whether a worker with these settings takes the message from there."""
        ...

    async def put(self, address: Address, queue: str, raw: str, call: AgentCall, app: str) -> None:
        """Puts a message into its queue."""
        ...

    async def purge(
        self, address: Address, settings: Settings, queues: Sequence[str], call: AgentCall, app: str
    ) -> None:
        """Takes everything out of these queues, and forgets what dead workers held."""
        ...


class OnRedis:
    """LPUSH to a list, from whose other end workers take."""

    ENQUEUES = frozenset({b"LPUSH", b"RPUSH"})

    def sent(self, sights: Iterable[Sight]) -> Iterator[Sent]:
        seen: set[bytes] = set()
        for sight in sights:
            if sight.role != "enqueue":
                continue
            for op in sight.unit.info.get("ops", ()):
                if len(op) < 3 or op[0].upper() not in self.ENQUEUES:
                    continue
                for value in op[2:]:
                    if value not in seen:
                        seen.add(value)
                        queue = op[1].decode("utf-8", "replace")
                        yield Sent(queue, value.decode("utf-8", "replace"), len(value) < CUT_AT)

    def reads(self, queue: str, raw: str, settings: Settings) -> bool:
        name = queue.removeprefix(str(settings.values.get("global_keyprefix", "")))
        return name.partition(str(settings.values.get("sep", "\x06\x16")))[0] in settings.queues

    async def put(self, address: Address, queue: str, raw: str, call: AgentCall, app: str) -> None:
        async with redis_client(address) as client:
            await client.lpush(queue, raw)

    async def purge(
        self, address: Address, settings: Settings, queues: Sequence[str], call: AgentCall, app: str
    ) -> None:
        prefix = str(settings.values.get("global_keyprefix", ""))
        names = [prefix + name for name in ("unacked", "unacked_index", *settings.queues)]
        async with redis_client(address) as client:
            await client.delete(*names, *queues)


class OnRabbitMQ:
    """`basic.publish` to the exchange and with the routing key of the original."""

    def sent(self, sights: Iterable[Sight]) -> Iterator[Sent]:
        for sight in sights:
            info = sight.unit.info
            if sight.role == "enqueue" and info.get("method") == "basic.publish":
                yield Sent(str(info.get("routing_key", "")), _as_virtual(info))

    def reads(self, queue: str, raw: str, settings: Settings) -> bool:
        # Where an exchange of the app's routes, nobody here knows to which queue: it is tried.
        return queue in settings.queues or bool(_delivery_info(raw).get("exchange"))

    async def put(self, address: Address, queue: str, raw: str, call: AgentCall, app: str) -> None:
        await call(INSIDE, "publish", app=app, url=address.url, raw=raw)

    async def purge(
        self, address: Address, settings: Settings, queues: Sequence[str], call: AgentCall, app: str
    ) -> None:
        await call(INSIDE, "purge", app=app, url=address.url, queues=sorted({*settings.queues, *queues}))


WIRES: Mapping[str, Wire] = {"celery-redis": OnRedis(), "celery-rabbitmq": OnRabbitMQ()}
"""By the name of the job system: those whose messages are understood here."""

_PROPERTIES = ("correlation_id", "reply_to", "delivery_mode", "priority")


def _as_virtual(info: Mapping[str, Any]) -> str:
    """A published AMQP message as kombu's virtual transports would store it."""
    told = info.get("properties") or {}
    properties = {name: told[name] for name in _PROPERTIES if told.get(name) is not None}
    place = {"exchange": str(info.get("exchange", "")), "routing_key": str(info.get("routing_key", ""))}
    properties |= {"body_encoding": "base64", "delivery_info": place, "delivery_tag": ""}
    whole = {
        "body": base64.b64encode(bytes(info.get("body") or b"")).decode(),
        "content-encoding": told.get("content_encoding"),
        "content-type": told.get("content_type"),
        "headers": told.get("headers") or {},
        "properties": properties,
    }
    return json.dumps(whole, default=_as_text)


def _as_text(value: Any) -> str:
    """Bytes, times and decimals of an AMQP header."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes | bytearray) else str(value)


def _delivery_info(raw: str) -> Mapping[str, Any]:
    try:
        found = json.loads(raw)["properties"]["delivery_info"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
