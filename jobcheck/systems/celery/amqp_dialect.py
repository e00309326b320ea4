"""What Celery's messages on AMQP mean (seen with Celery 5.7, amqp 5.4, RabbitMQ 3.10).

basic.consume celery        poll: what comes after it is given out
basic.deliver               the delivery; unacknowledged until its ack
basic.publish               an enqueued job
basic.ack, basic.reject     the ack
"""

from __future__ import annotations

from typing import Any

from ...wire.unit import Kind, Unit
from ..contract import Meaning
from .headers import Said, said

NOISE_NAMES = ("celeryev", "pidbox", ".reply.")


class AmqpDialect:
    """Reads one worker's messages on the broker, and keeps the deliveries that it holds."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], str] = {}
        self._last: dict[int, int] = {}
        """The last tag of each channel."""
        self._turn = 0
        """How often the worker has connected anew."""
        self.tasks: dict[str, str] = {}
        """Task names by job id, as seen."""
        self.due: dict[str, str] = {}
        """When a job is to run at the earliest, by job id: ISO 8601; empty: at once."""

    def held(self) -> list[str]:
        turn = f"{self._turn}:" if self._turn else ""
        return [f"{turn}{channel}/{tag}" for channel, tag in self._held]

    def reset(self) -> None:
        self._held.clear()
        self._last.clear()
        self._turn = 0

    def read(self, unit: Unit, request: Unit | None, role: str) -> Meaning:
        shape, info = unit.shape, unit.info
        if unit.kind is Kind.REPLY:
            return Meaning(role)
        if any(part in _names(info) for part in NOISE_NAMES):
            return Meaning("noise")
        if shape.startswith("amqp basic.deliver"):
            return self._delivered(info)
        if shape.startswith("amqp basic.consume"):
            return Meaning("poll")
        if shape.startswith("amqp basic.publish"):
            message = _message(info)
            self._note(message)
            return message.meaning("enqueue") if message.job else Meaning()
        if shape.startswith(("amqp basic.ack", "amqp basic.reject", "amqp basic.nack")):
            return self._settled(info)
        return Meaning()

    def _delivered(self, info: Any) -> Meaning:
        message = _message(info)
        channel, tag = info["channel"], info["delivery_tag"]
        if tag <= self._last.get(channel, 0):  # tags begin anew with a connection, whose broker gives all out again
            self.reset_connection()
        self._last[channel] = tag
        self._held[channel, tag] = message.job
        self._note(message)
        return message.meaning("delivery")

    def _note(self, message: Said) -> None:
        if message.job:
            self.tasks[message.job], self.due[message.job] = message.task, message.due

    def reset_connection(self) -> None:
        """The worker has connected anew: what it held on the connection before is not its own any more."""
        self._turn += 1
        self._held.clear()
        self._last.clear()

    def _settled(self, info: Any) -> Meaning:
        channel, tag = info["channel"], info["delivery_tag"]
        job = self._held.get((channel, tag), "")
        for key in list(self._held):
            if key[0] == channel and (key[1] == tag or (info.get("multiple") and key[1] <= tag)):
                del self._held[key]
        return Meaning("ack", job)


def _names(info: Any) -> str:
    return f"{info.get('exchange', '')} {info.get('routing_key', '')} {info.get('queue', '')}"


def _message(info: Any) -> Said:
    return said((info.get("properties") or {}).get("headers") or {})
