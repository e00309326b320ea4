"""Frames of AMQP 0-9-1: what their payloads say, and how they are called."""

from __future__ import annotations

import datetime
import struct
from typing import Any

from pamqp import base, commands

from .shapes import normalise, one_line
from .unit import Change, WireError

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FRAME_END = 0xCE
MAX_FRAME = 128 * 1024 * 1024
MAX_DECODED = 64 * 1024
"""Bytes of a method or header frame that is decoded; a longer one is known by its number only."""
BODY_CAP = 256 * 1024
"""Bytes of one content that are kept."""

CONTENT = frozenset(("Basic.Publish", "Basic.Deliver", "Basic.GetOk", "Basic.Return"))
"""Methods that a content header follows."""

_INDEX = struct.Struct(">I")
_SIZE = struct.Struct(">HHQ")

_CHANGES = {
    "Basic.Publish": Change.YES,
    "Basic.Ack": Change.YES,
    "Basic.Nack": Change.YES,
    "Basic.Reject": Change.YES,
    "Basic.Recover": Change.YES,
    "Basic.RecoverAsync": Change.YES,
    "Basic.Get": Change.MAYBE,
    "Queue.Delete": Change.YES,
    "Queue.Purge": Change.YES,
    "Exchange.Delete": Change.YES,
}
"""What requests do to state. Topology that every worker declares anew is no change."""

_SILENT = frozenset(("Basic.Ack", "Basic.Nack", "Basic.Reject", "Basic.RecoverAsync"))
"""Requests that are never answered."""


class Method:
    """A method frame."""

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.name = name
        """As the specification has it: `Basic.Publish`."""
        self.args = args

    def text(self, key: str) -> str:
        """An argument that is a text; empty when it is none or missing."""
        value = self.args.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> int:
        value = self.args.get(key)
        return value if isinstance(value, int) else 0

    def flag(self, key: str) -> bool:
        return bool(self.args.get(key))

    @property
    def changes(self) -> Change:
        return _CHANGES.get(self.name, Change.NO)

    @property
    def silent(self) -> bool:
        """The server does not answer it (a publish: unless the channel is in confirm mode)."""
        return self.name in _SILENT or self.flag("nowait")

    @property
    def wire_name(self) -> str:
        """`basic.publish`, `queue.declare-ok`."""
        group, _, name = self.name.partition(".")
        words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")
        return f"{group.lower()}.{words}"


def read_method(payload: bytes) -> Method:
    """A method frame. Raises WireError for a method that AMQP does not have, or one that is malformed."""
    if len(payload) < 4:
        raise WireError("a method frame is shorter than its number")
    index = _INDEX.unpack_from(payload)[0]
    kind: type[base.Frame] | None = commands.INDEX_MAPPING.get(index)
    if kind is None:
        raise WireError(f"method {index >> 16}.{index & 0xFFFF} does not exist")
    if len(payload) > MAX_DECODED:
        return Method(kind.name, {})
    found = kind.__new__(kind)  # the constructors warn of deprecated methods, and check what a peer has sent already
    try:
        found.unmarshal(payload[4:])
    except Exception as error:  # the library lets through whatever its parts raise, up to RecursionError
        raise WireError(f"{kind.name} is malformed ({type(error).__name__})") from None
    return Method(kind.name, {name: getattr(found, name, None) for name in kind.__slots__})


def read_header(payload: bytes) -> tuple[int, dict[str, Any]]:
    """Size of the content and its properties; none of those when they are malformed. Raises WireError."""
    if len(payload) < 14:
        raise WireError("a content header is shorter than its size")
    _, _, size = _SIZE.unpack_from(payload)
    found = commands.Basic.Properties()
    if len(payload) <= MAX_DECODED:
        try:
            flags = int.from_bytes(payload[12:14], "big")
            if not flags & 1:
                found.unmarshal(flags, payload[14:])
        except Exception:  # as above; the message is still a message
            found = commands.Basic.Properties()
    properties = {}
    for name in commands.Basic.Properties.__slots__:
        value = getattr(found, name, None)
        if value not in (None, ""):
            properties[name] = value.isoformat() if isinstance(value, datetime.datetime) else value
    return int(size), properties


def destination(method: Method) -> str:
    """Where a message goes or comes from: exchange and routing key, without ids; the default exchange is not named."""
    words = [method.text("exchange"), method.text("routing_key")]
    return normalise(" ".join(dict.fromkeys(word for word in words if word)))


def shape_of(method: Method) -> str:
    """`amqp basic.publish celery`, `amqp queue.declare celery`, `amqp basic.ack`."""
    if method.name in CONTENT:
        what = destination(method)
    elif method.name.startswith(("Exchange.", "Queue.", "Basic.Consume", "Basic.Get")):
        what = normalise(method.text("queue") or method.text("exchange"))
    else:
        what = ""
    return f"amqp {method.wire_name} {what}".rstrip()


def describe(method: Method, properties: dict[str, Any], body: bytes) -> str:
    """One line for a person: the task and its id where it is a Celery message, otherwise the start of the body."""
    words = [method.wire_name]
    for key in ("exchange", "routing_key", "queue", "delivery_tag", "reply_code", "reply_text"):
        if value := method.args.get(key):
            words.append(f"#{value}" if key == "delivery_tag" else str(value))
    headers = properties.get("headers")
    if isinstance(headers, dict):
        words += [str(headers[key]) for key in ("task", "id") if headers.get(key)]
    elif message := properties.get("message_id") or properties.get("correlation_id"):
        words.append(str(message))
    if body:
        words.append(body[:300].decode("utf-8", "replace"))
    return one_line(" ".join(words))
