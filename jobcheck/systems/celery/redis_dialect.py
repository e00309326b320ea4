"""What Celery's messages on Redis mean (kombu's Redis transport, seen with kombu 5.3 to 5.7).

BRPOP celery ...                       poll; its reply is the delivery
MULTI ZADD unacked_index HSET unacked EXEC    the reservation, which makes the delivery recoverable
MULTI ZREM unacked_index HDEL unacked EXEC    the ack
LPUSH celery {...}                     an enqueued job
MULTI SET celery-task-meta-... PUBLISH ... EXEC    the job's result, where Redis is the result backend too
"""

from __future__ import annotations

import json
from typing import Any

from ...wire.unit import Kind, Unit
from ..contract import Meaning

NOISE_KEYS = (b"_kombu.", b"celeryev", b"pidbox", b"unacked_mutex", b".reply.")
RESULT_KEY = b"celery-task-meta-"
NOISE_COMMANDS = frozenset(
    {b"PUBLISH", b"SUBSCRIBE", b"PSUBSCRIBE", b"UNSUBSCRIBE", b"PUNSUBSCRIBE", b"WATCH", b"UNWATCH"}
)
SCRIPTS = frozenset({b"EVAL", b"EVALSHA", b"EVAL_RO", b"EVALSHA_RO", b"FCALL"})
POPS = frozenset({b"BRPOP", b"RPOP", b"LPOP", b"BLPOP"})


def message_of(payload: object) -> tuple[str, str, str]:
    """Id, task name and due time (ISO 8601; empty: at once) of a message as kombu stores it; empty where it is none."""
    if not isinstance(payload, bytes | str):
        return "", "", ""
    try:
        headers = json.loads(payload).get("headers", {})
        return str(headers.get("id", "")), str(headers.get("task", "")), str(headers.get("eta") or "")
    except (ValueError, AttributeError):
        return "", "", ""


def parent_of(payload: bytes | str) -> str:
    """Id of the job in which this message was sent; empty where it was none."""
    return str(json.loads(payload)["headers"].get("parent_id") or "")


class RedisDialect:
    """Reads one worker's messages on the broker, and keeps the delivery tags that it holds."""

    def __init__(self) -> None:
        self._held: dict[str, None] = {}
        self.tasks: dict[str, str] = {}
        """Task names by job id, as seen."""
        self.due: dict[str, str] = {}
        """When a job is to run at the earliest, by job id: ISO 8601; empty: at once."""

    def held(self) -> list[str]:
        return list(self._held)

    def reset(self) -> None:
        self._held.clear()

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
        names = {op[0].upper() for op in ops}
        executes = unit.shape.startswith("redis EXEC")
        if all(_is_noise(op) for op in ops):
            return Meaning("noise")
        if names & POPS:
            return Meaning("poll")
        if executes and names >= {b"ZREM", b"HDEL"}:
            return Meaning("ack")  # a rejected job is put back in the same transaction
        if names & {b"LPUSH", b"RPUSH"}:
            return self._enqueue(ops)
        if executes and names == {b"ZADD", b"HSET"}:
            return Meaning("reserve")
        if all(RESULT_KEY in op[1] for op in ops if len(op) > 1) and names & {b"SET", b"SETEX"}:
            return Meaning("result")
        return Meaning()

    def _enqueue(self, ops: list[tuple[bytes, ...]]) -> Meaning:
        for op in ops:
            if op[0].upper() in (b"LPUSH", b"RPUSH") and len(op) > 2:
                job, task, due = message_of(op[2])
                if job:
                    self.tasks[job], self.due[job] = task, due
                    return Meaning("enqueue", job, parent_of(op[2]))
        return Meaning()

    def _reply(self, unit: Unit, request: Unit, role: str) -> Meaning:
        if role == "poll":
            value: Any = unit.info.get("value")
            if isinstance(value, list) and len(value) == 2:
                job, task, due = message_of(value[1])
                self.tasks[job], self.due[job] = task, due
                return Meaning("delivery", job)
        elif role == "reserve" and not unit.failed:
            for tag in _tags(request, b"ZADD"):
                self._held[tag] = None
        elif role == "ack" and not unit.failed:
            for tag in _tags(request, b"ZREM"):
                self._held.pop(tag, None)
        return Meaning(role)


def _tags(request: Unit, command: bytes) -> list[str]:
    """Delivery tags that the operations of this command name: `ZADD key score tag`, `ZREM key tag`."""
    at = 3 if command == b"ZADD" else 2
    return [
        op[at].decode(errors="replace")
        for op in request.info.get("ops", ())
        if op and op[0].upper() == command and len(op) > at
    ]


def _is_noise(op: tuple[bytes, ...]) -> bool:
    command = op[0].upper()
    if command in NOISE_COMMANDS:
        return True
    keys = op[1:2]
    if command in SCRIPTS and len(op) > 2 and op[2].isdigit():
        keys = op[3 : 3 + int(op[2])]
    return bool(keys) and all(any(part in key for part in NOISE_KEYS) for key in keys)
