"""Payloads on a Redis broker: seen in what a tap saw, and put there through kombu's own structures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..services.clients import redis_client
from ..services.spec import Address
from ..systems.contract import Settings
from ..tap.sight import Sight

ENQUEUES = frozenset({b"LPUSH", b"RPUSH"})
CUT_AT = 256 * 1024
"""Bytes from which a tap keeps only the beginning of a value."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One message on its way to the broker."""

    queue: str
    raw: str
    whole: bool = True
    """False: it is larger than a tap keeps."""


def sent(sights: Iterable[Sight]) -> Iterator[Sent]:
    """The jobs that were enqueued, in order, each once."""
    seen: set[bytes] = set()
    for sight in sights:
        if sight.role != "enqueue":
            continue
        for op in sight.unit.info.get("ops", ()):
            if len(op) < 3 or op[0].upper() not in ENQUEUES:
                continue
            for value in op[2:]:
                if value not in seen:
                    seen.add(value)
                    queue = op[1].decode("utf-8", "replace")
                    yield Sent(queue, value.decode("utf-8", "replace"), len(value) < CUT_AT)


async def put(address: Address, queue: str, raw: str) -> None:
    """Puts a message into its queue, as kombu does: LPUSH, and workers take from the other end."""
    async with redis_client(address) as client:
        await client.lpush(queue, raw)


async def purge(address: Address, settings: Settings, queues: Sequence[str]) -> None:
    """Takes everything out of these queues, and forgets what dead workers held."""
    prefix = str(settings.values.get("global_keyprefix", ""))
    names = [prefix + name for name in ("unacked", "unacked_index", *settings.queues)]
    async with redis_client(address) as client:
        await client.delete(*names, *queues)
