"""What Celery's messages on Redis mean (kombu's Redis transport, seen with kombu 5.3 to 5.7).

BRPOP celery ...                       poll; its reply is the delivery
MULTI ZADD unacked_index HSET unacked EXEC    the reservation, which makes the delivery recoverable
MULTI ZREM unacked_index HDEL unacked EXEC    the ack
MULTI ZREM unacked_index HDEL unacked RPUSH celery {...} EXEC    the job is put back: by a worker that ends, and has not
                                       done it; or, while it holds `unacked_mutex`, by whichever worker looks first when
                                       a lease has run out
LPUSH celery {...}                     an enqueued job
MULTI SET celery-task-meta-... PUBLISH ... EXEC    the job's result, where Redis is the result backend too
EVALSHA ... celery-taskset-meta-... .j .t .s ...    a part of a chord counts itself, claims the body, and clears up (a
                                                    script since Celery 5.7; before it, MULTI ZADD .j ZCOUNT GET EXEC)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...wire.unit import Kind, Unit
from ..contract import Meaning
from .headers import Said, said

MUTEX = b"unacked_mutex"
NOISE_KEYS = (b"_kombu.", b"celeryev", b"pidbox", MUTEX, b".reply.")
RESULT_KEY = b"celery-task-meta-"
CHORD_KEY = b"celery-taskset-meta-"
NOISE_COMMANDS = frozenset(
    {b"PUBLISH", b"SUBSCRIBE", b"PSUBSCRIBE", b"UNSUBSCRIBE", b"PUNSUBSCRIBE", b"WATCH", b"UNWATCH"}
)
SCRIPTS = frozenset({b"EVAL", b"EVALSHA", b"EVAL_RO", b"EVALSHA_RO", b"FCALL"})
SWEEPS = frozenset({b"ZRANGE", b"ZREVRANGEBYSCORE"})
"""Reads of `unacked_index`: each worker looks for leases that have run out, again and again."""
POPS = frozenset({b"BRPOP", b"RPOP", b"LPOP", b"BLPOP"})


def message_of(payload: object) -> tuple[Said, str]:
    """A message as kombu stores it, and its delivery tag; both empty where it is none."""
    if not isinstance(payload, bytes | str):
        return Said(), ""
    try:
        message = json.loads(payload)
        return said(message.get("headers", {})), str(message.get("properties", {}).get("delivery_tag", ""))
    except (ValueError, AttributeError):
        return Said(), ""


class RedisDialect:
    """Reads one worker's messages on the broker, and keeps the delivery tags that it holds."""

    def __init__(self) -> None:
        self._held: dict[str, None] = {}
        self._tags: dict[str, str] = {}
        """Jobs by delivery tag: a worker may have the next message before it acknowledges the last one."""
        self._sweeps = False
        """The worker looks for leases that have run out: it has the mutex."""
        self.tasks: dict[str, str] = {}
        """Task names by job id, as seen."""
        self.due: dict[str, str] = {}
        """When a job is to run at the earliest, by job id: ISO 8601; empty: at once."""

    def held(self) -> list[str]:
        return list(self._held)

    def reset(self) -> None:
        self._sweeps = False
        self._held.clear()
        self._tags.clear()

    def read(self, unit: Unit, request: Unit | None, role: str) -> Meaning:
        if unit.kind is Kind.REQUEST:
            return self._request(unit)
        if unit.kind is Kind.REPLY and request is not None:
            return self._reply(unit, request, role)
        return Meaning("noise") if unit.kind is Kind.PUSH else Meaning()

    def _request(self, unit: Unit) -> Meaning:
        ops = [op for op in unit.info.get("ops", ()) if op]
        if not ops:
            return Meaning()
        if locks := [op[0].upper() for op in ops if any(MUTEX in key for key in _keys(op))]:
            self._sweeps = b"SET" in locks  # it is freed by a script
        names = {op[0].upper() for op in ops}
        executes = unit.shape.startswith("redis EXEC")
        if all(_is_noise(op) for op in ops):
            return Meaning("noise")
        if chord := chord_role(ops):
            return Meaning(chord)
        if names & POPS:
            return Meaning("poll")
        if executes and self._sweeps and names >= {b"ZREM", b"HDEL", b"RPUSH"}:
            return self._restore(ops)
        if executes and names >= {b"ZREM", b"HDEL"}:
            return Meaning("ack", self._job_of(unit, b"ZREM"))  # a rejected job is put back in the same transaction
        if names & {b"LPUSH", b"RPUSH"}:
            return self._enqueue(ops)
        if executes and names == {b"ZADD", b"HSET"}:
            return Meaning("reserve", self._job_of(unit, b"ZADD"))
        if all(RESULT_KEY in op[1] for op in ops if len(op) > 1) and names & {b"SET", b"SETEX"}:
            return Meaning("result")
        return Meaning()

    def _restore(self, ops: list[tuple[bytes, ...]]) -> Meaning:
        pushed = next((op[2] for op in ops if op[0].upper() == b"RPUSH" and len(op) > 2), b"")
        return Meaning("restore", message_of(pushed)[0].job)

    def _enqueue(self, ops: list[tuple[bytes, ...]]) -> Meaning:
        for op in ops:
            if op[0].upper() in (b"LPUSH", b"RPUSH") and len(op) > 2:
                message, _ = message_of(op[2])
                if message.job:
                    self.tasks[message.job], self.due[message.job] = message.task, message.due
                    return message.meaning("enqueue")
        return Meaning()

    def _job_of(self, request: Unit, command: bytes) -> str:
        """The job of the one delivery that this settles or reserves."""
        jobs = {self._tags.get(tag, "") for tag in _tags(request, command)}
        return jobs.pop() if len(jobs) == 1 else ""

    def _reply(self, unit: Unit, request: Unit, role: str) -> Meaning:
        if role == "noise":
            self._sweeps = self._sweeps and not _refused(unit, request)
        elif role == "poll":
            value: Any = unit.info.get("value")
            if isinstance(value, list) and len(value) == 2:
                message, tag = message_of(value[1])
                self.tasks[message.job], self.due[message.job] = message.task, message.due
                self._tags[tag] = message.job
                return message.meaning("delivery")
        elif role == "reserve" and not unit.failed:
            for tag in _tags(request, b"ZADD"):
                self._held[tag] = None
        elif role == "ack" and not unit.failed:
            for tag in _tags(request, b"ZREM"):
                self._held.pop(tag, None)
        return Meaning(role)


def _refused(unit: Unit, request: Unit) -> bool:
    """Whether this answer to a request for the mutex says that another worker has it."""
    asked = any(MUTEX in key for op in request.info.get("ops", ()) if op for key in _keys(op))
    return asked and unit.info.get("value") is None


def _tags(request: Unit, command: bytes) -> list[str]:
    """Delivery tags that the operations of this command name: `ZADD key score tag`, `ZREM key tag`."""
    at = 3 if command == b"ZADD" else 2
    return [
        op[at].decode(errors="replace")
        for op in request.info.get("ops", ())
        if op and op[0].upper() == command and len(op) > at
    ]


def _keys(op: tuple[bytes, ...]) -> Sequence[bytes]:
    """The keys of a command, as far as they matter here: the first argument, or those that a script names."""
    if op[0].upper() in SCRIPTS and len(op) > 2 and op[2].isdigit():
        return op[3 : 3 + int(op[2])]
    return op[1:2]


def chord_role(ops: Sequence[tuple[bytes, ...]]) -> str:
    """What a message that is only about the counter of a chord does; empty for any other message.

    Keys end with `.j` (results), `.s` (size), `.t` (more), `.d` (who has counted) and `.c` (who calls the body).
    """
    keys = [key for op in ops for key in _keys(op)]
    if not keys or not all(CHORD_KEY in key for key in keys):
        return ""
    names, ends = {op[0].upper() for op in ops}, {key[-2:] for key in keys}
    if names & SCRIPTS:
        return "chord claim" if b".j" not in ends else "chord end" if keys[0].endswith(b".c") else "chord count"
    if names & {b"ZADD", b"RPUSH"}:
        return "chord count"
    return "chord end" if b"DEL" in names else "chord size" if b".s" in ends else "chord"


class ResultsDialect:
    """Reads the messages to a Redis that keeps results and is not the broker."""

    def read(self, unit: Unit, request: Unit | None, role: str) -> Meaning:
        if unit.kind is not Kind.REQUEST:
            return Meaning(role)
        return Meaning(chord_role([op for op in unit.info.get("ops", ()) if op]))


def _is_noise(op: tuple[bytes, ...]) -> bool:
    if op[0].upper() in NOISE_COMMANDS:
        return True
    keys = _keys(op)
    if op[0].upper() in SWEEPS and any(b"unacked_index" in key for key in keys):
        return True
    if op[0].upper() == b"HGET" and all(key.endswith(b"unacked") for key in keys):
        return True  # what the sweep found
    return bool(keys) and all(any(part in key for part in NOISE_KEYS) for key in keys)
