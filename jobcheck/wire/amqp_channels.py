"""The channels of one AMQP connection: what waits for an answer, who consumes what, what a transaction holds."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from .amqp_frames import Method, describe, shape_of
from .shapes import normalise
from .unit import Change, Kind, Unit

MAX_KEPT = 2000
"""Channels, and consumers of one channel, that are remembered."""

_ABOUT_CONNECTION = ("Connection.", "Channel.")


@dataclass(slots=True)
class Asked:
    """A method of the client whose answer is due."""

    number: int
    shape: str
    change: Change
    method: Method


@dataclass(slots=True)
class Channel:
    """One channel of a connection."""

    number: int
    asked: deque[Asked] = field(default_factory=deque)
    consumers: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """Queue and no_ack by consumer tag."""
    confirms: bool = False
    published: int = 0
    """Messages published since confirm mode began: their delivery tags."""
    unconfirmed: dict[int, Asked] = field(default_factory=dict)
    transacted: bool = False
    wrote: bool = False
    """The transaction holds a publish or an ack."""


class Channels:
    """Makes the units of methods and contents. Raw bytes are the decoder's business."""

    def __init__(self) -> None:
        self._channels: dict[int, Channel] = {}
        self._number = 0

    def get(self, number: int) -> Channel:
        channel = self._channels.get(number)
        if channel is None:
            if len(self._channels) >= MAX_KEPT:
                del self._channels[next(iter(self._channels))]
            channel = self._channels[number] = Channel(number)
        return channel

    # From the client

    def client(self, channel: Channel, method: Method) -> list[Unit]:
        """A method without content; the last unit takes the bytes."""
        name = method.name
        info = _info(channel, method)
        if name == "Channel.Open":
            self._channels[channel.number] = Channel(channel.number)
        if name.startswith(_ABOUT_CONNECTION):
            summary = describe(method, {}, b"") if name.endswith("Close") else method.wire_name
            return [Unit(b"", Kind.CONTROL, shape_of(method), summary=summary, info=info)]
        change = method.changes
        if channel.transacted and name in ("Basic.Ack", "Basic.Nack", "Basic.Reject"):
            change, channel.wrote = Change.PENDING, True
        elif name == "Tx.Select":
            channel.transacted = True
        elif name == "Tx.Commit":
            change, channel.wrote = (Change.YES if channel.wrote else Change.NO), False
        elif name == "Tx.Rollback":
            channel.wrote = False
        elif name == "Confirm.Select":
            channel.confirms = True
        elif name == "Basic.Consume" and method.text("consumer_tag"):
            _consume(channel, method.text("consumer_tag"), method)
        shape = shape_of(method)
        self._number += 1
        if method.silent:
            info["no_reply"] = True
        else:
            channel.asked.append(Asked(self._number, shape, change, method))
        return [Unit(b"", Kind.REQUEST, shape, self._number, change, describe(method, {}, b""), info)]

    def client_content(self, channel: Channel, method: Method, properties: dict[str, Any], body: bytes) -> Unit:
        """A publish."""
        self._number += 1
        shape = shape_of(method)
        change = Change.YES
        if channel.transacted:
            change, channel.wrote = Change.PENDING, True
        info = _info(channel, method, properties, body)
        info["confirms"] = channel.confirms
        if channel.confirms:
            channel.published += 1
            channel.unconfirmed[channel.published] = Asked(self._number, shape, change, method)
        else:
            info["no_reply"] = True
        return Unit(b"", Kind.REQUEST, shape, self._number, change, describe(method, properties, body), info)

    # From the server

    def server(self, channel: Channel, method: Method) -> list[Unit]:
        """A method without content; the last unit takes the bytes, those before it answer requests that it ends."""
        name = method.name
        if name in ("Basic.Ack", "Basic.Nack"):
            return self._confirmed(channel, method)
        if name == "Channel.Close":
            return self._closed(channel, method)
        info = _info(channel, method)
        summary = describe(method, {}, b"")
        if name.startswith(_ABOUT_CONNECTION):
            failed = name == "Connection.Close"
            summary = summary if failed else method.wire_name
            return [Unit(b"", Kind.CONTROL, shape_of(method), summary=summary, info=info, failed=failed)]
        if not channel.asked or not name.endswith(("Ok", "Empty")):
            return [Unit(b"", Kind.PUSH, shape_of(method), summary=summary, info=info)]
        asked = channel.asked.popleft()
        if name == "Basic.ConsumeOk":
            _consume(channel, method.text("consumer_tag"), asked.method)
        change = asked.change if asked.change is not Change.MAYBE else Change.NO  # get-empty
        if "message_count" in method.args and name in ("Queue.PurgeOk", "Queue.DeleteOk"):
            emptied = method.number("message_count") > 0 or name == "Queue.DeleteOk"
            change = Change.YES if emptied else Change.NO
        return [Unit(b"", Kind.REPLY, asked.shape, asked.number, change, summary, info)]

    def server_content(self, channel: Channel, method: Method, properties: dict[str, Any], body: bytes) -> Unit:
        """A delivery, an answer to get, or a message that came back."""
        info = _info(channel, method, properties, body)
        summary = describe(method, properties, body)
        if method.name == "Basic.GetOk" and channel.asked:
            asked = channel.asked.popleft()
            info["queue"] = asked.method.text("queue")
            info["no_ack"] = asked.method.flag("no_ack")
            return Unit(b"", Kind.REPLY, asked.shape, asked.number, Change.YES, summary, info)
        shape = shape_of(method)
        if method.name == "Basic.Deliver":
            queue, no_ack = channel.consumers.get(method.text("consumer_tag"), ("", False))
            info["queue"], info["no_ack"] = queue, no_ack
            if queue:
                shape = f"amqp basic.deliver {normalise(queue)}"
        failed = method.name == "Basic.Return"
        return Unit(b"", Kind.PUSH, shape, summary=summary, info=info, failed=failed)

    def _confirmed(self, channel: Channel, method: Method) -> list[Unit]:
        """A publisher confirm, which may be about all messages up to one."""
        tag = method.number("delivery_tag")
        waiting = channel.unconfirmed
        if method.flag("multiple"):
            tags = list(takewhile(lambda own: own <= tag or tag == 0, waiting))
        else:
            tags = [tag] if tag in waiting else []
        info = _info(channel, method)
        summary = describe(method, {}, b"")
        failed = method.name == "Basic.Nack"
        if not tags:
            return [Unit(b"", Kind.CONTROL, shape_of(method), summary=summary, info=info)]
        units = []
        for own in tags:
            asked = waiting.pop(own)
            change = Change.MAYBE if failed else asked.change
            units.append(Unit(b"", Kind.REPLY, asked.shape, asked.number, change, summary, info, failed))
        return units

    def _closed(self, channel: Channel, method: Method) -> list[Unit]:
        """The server closes a channel: whatever waits on it has failed."""
        info = _info(channel, method)
        summary = describe(method, {}, b"")
        units = []
        for asked in [*channel.unconfirmed.values(), *channel.asked]:
            change = Change.MAYBE if asked.method.name == "Basic.Publish" else Change.NO
            units.append(Unit(b"", Kind.REPLY, asked.shape, asked.number, change, summary, info, failed=True))
        self._channels.pop(channel.number, None)
        return units or [Unit(b"", Kind.CONTROL, shape_of(method), summary=summary, info=info, failed=True)]


def _consume(channel: Channel, tag: str, method: Method) -> None:
    if len(channel.consumers) < MAX_KEPT:
        channel.consumers[tag] = (method.text("queue"), method.flag("no_ack"))


_KEPT = (
    "exchange",
    "routing_key",
    "queue",
    "consumer_tag",
    "delivery_tag",
    "redelivered",
    "multiple",
    "requeue",
    "no_ack",
    "reply_code",
    "reply_text",
)
"""Arguments that `info` holds."""


def _info(
    channel: Channel, method: Method, properties: dict[str, Any] | None = None, body: bytes | None = None
) -> dict[str, Any]:
    info: dict[str, Any] = {"channel": channel.number, "method": method.wire_name}
    for key in _KEPT:
        if key in method.args:
            info[key] = method.args[key]
    if properties is not None:
        info["properties"] = properties
        info["body"] = body
    return info
