"""Keys that would not have outlived a lease: a rewind moves one clock, and these belong to the same hour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..services.clients import redis_client
from ..services.spec import Address
from ..wire.unit import Unit
from .lane import Lane

SCRIPTS = frozenset({b"EVAL", b"EVALSHA", b"FCALL"})


async def expire_keys(lane: Lane, lease: float) -> list[str]:
    """Expires the keys of this trial that would not have outlived a lease of so many seconds either; names them.

    A dedupe key with a shorter life than the lease would be gone in production.
    """
    gone = []
    for provider in lane.providers.values():
        if expired := provider.keys.rewind(lease):
            gone.append(f"{expired} idempotency key(s) of {provider.name}")
    for sight in lane.trace.sights:
        for key, seconds in sight.unit.info.get("ttl", ()):
            if seconds >= lease or sight.role == "noise" or sight.worker == "producer":
                continue
            alone = lane.rig.picks_its_number(sight.upstream)
            if await _expire(lane.addresses[sight.upstream], key, alone=alone):
                gone.append(_text(key))
    return gone + await _expire_scripted(lane, lease)


async def _expire(address: Address, key: bytes | str, *, alone: bool) -> bool:
    """Deletes a key; on a server of this lane's own in whatever database number the app has put it."""
    numbers = [address.path]
    if alone:
        async with redis_client(address) as client:
            numbers = [name.removeprefix("db") for name in await client.info("keyspace")]
    gone = 0
    for number in numbers:
        async with redis_client(replace(address, path=number)) as client:
            gone += await client.delete(key)
    return bool(gone)


async def _expire_scripted(lane: Lane, lease: float) -> list[str]:
    """What a script sets is not on the wire, so the server is asked for the lives of the keys that it was given."""
    asked: dict[tuple[str, bytes], None] = {}
    for sight in lane.trace.sights:
        if sight.role != "noise" and sight.worker != "producer":
            asked |= dict.fromkeys((sight.upstream, key) for key in keys_of_scripts(sight.unit))
    gone = []
    for upstream, key in asked:
        async with redis_client(lane.addresses[upstream]) as client:
            if 0 < await client.pttl(key) < lease * 1000 and await client.delete(key):
                gone.append(_text(key))
    return gone


def keys_of_scripts(unit: Unit) -> Iterator[bytes]:
    """The keys that the scripts in a message to Redis name: `EVALSHA sha 2 key key argument`."""
    for op in unit.info.get("ops", ()):
        if len(op) > 2 and op[0].upper() in SCRIPTS and op[2].isdigit():
            yield from op[3 : 3 + int(op[2])]


def _text(key: bytes | str) -> str:
    return key.decode(errors="replace") if isinstance(key, bytes) else str(key)
