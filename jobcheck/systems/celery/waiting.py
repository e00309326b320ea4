"""Celery's jobs that wait on Redis: lists by queue and priority, whose right end is taken first (kombu 5.3 to 5.7).

While nobody takes from them, they can be arranged: producers add on the left, so places counted from the right stay.
A job that is held back is moved to where kombu writes what a worker has and has not acknowledged: the hash `unacked`,
and the sorted set `unacked_index` with a time that never comes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ...errors import CaseError
from ...services.spec import Address
from ..contract import Settings
from .redis_dialect import message_of

NEVER = 1e12
"""A score of `unacked_index`: the moment of the delivery, in seconds since 1970. Its lease never runs out."""


def prefix(settings: Settings) -> str:
    """What stands before every key of the app."""
    return str(settings.values.get("global_keyprefix", ""))


def lists(settings: Settings) -> list[str]:
    """The keys of all lists in which jobs wait."""
    return [
        prefix(settings) + (queue if not step else f"{queue}{settings.values['sep']}{step}")
        for queue in settings.queues
        for step in settings.values.get("priority_steps", [0])
    ]


async def unblock(address: Address) -> None:
    """Ends every BRPOP that waits, as its time-out does."""
    from ...services.clients import redis_client  # rigs are read where no client is installed

    async with redis_client(address) as client:
        for one in await client.client_list():
            if one["cmd"] == "brpop":
                await client.client_unblock(int(one["id"]))


async def arrange(address: Address, settings: Settings, jobs: Sequence[str], kept: Sequence[str]) -> None:
    """These jobs are taken in this order from now on, each list by itself; those that are kept are moved away.

    Nobody takes jobs meanwhile. Raises CaseError when one does not wait there.
    """
    from ...services.clients import redis_client  # rigs are read where no client is installed

    found: set[str] = set()
    async with redis_client(address) as client:
        for key in lists(settings):
            raws = [str(raw) for raw in await client.lrange(key, 0, -1)]
            mine = {job: (-1 - place, raw) for place, raw in enumerate(reversed(raws)) if (job := _job(raw)) in jobs}
            found |= set(mine)
            wanted = [job for job in jobs if job in mine]
            pipe = client.pipeline(transaction=True)
            for (place, _), job in zip(mine.values(), wanted, strict=True):
                pipe.lset(key, place, mine[job][1])
            for job in wanted:
                if job in kept:
                    raw = mine[job][1]
                    tag = message_of(raw)[1]
                    pipe.lrem(key, -1, raw)
                    pipe.hset(prefix(settings) + "unacked", tag, json.dumps([json.loads(raw), "", key]))
                    pipe.zadd(prefix(settings) + "unacked_index", {tag: NEVER})
            await pipe.execute()
    _all_there(jobs, found)


async def put_back(address: Address, settings: Settings, jobs: Sequence[str]) -> None:
    """Jobs that were kept are the next to be taken. Raises CaseError when one is not kept there."""
    from ...services.clients import redis_client  # rigs are read where no client is installed

    found: set[str] = set()
    async with redis_client(address) as client:
        for tag, entry in (await client.hgetall(prefix(settings) + "unacked")).items():
            message, _, key = json.loads(entry)
            raw = json.dumps(message)
            if (job := _job(raw)) in jobs and await client.zscore(prefix(settings) + "unacked_index", tag) == NEVER:
                pipe = client.pipeline(transaction=True)
                pipe.hdel(prefix(settings) + "unacked", tag)
                pipe.zrem(prefix(settings) + "unacked_index", tag)
                pipe.rpush(key, raw)
                await pipe.execute()
                found.add(job)
    _all_there(jobs, found)


def _job(raw: str) -> str:
    return message_of(raw)[0].job


def _all_there(jobs: Sequence[str], found: set[str]) -> None:
    if missing := [job for job in jobs if job not in found]:
        raise CaseError(f"expected {', '.join(missing)} to wait on the broker, and it is not there")
