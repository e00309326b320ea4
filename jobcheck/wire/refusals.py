"""How a server refuses a request: what is sent to it instead, and what the client is answered. Pure bytes.

Wherever the protocol allows it, the server itself gives the refusal, so that both ends agree about what happened: a
Postgres server raises the error in place of the statement (and so aborts the transaction), a broker closes the channel
of a publish to an exchange that is not there. Where a server cannot be made to refuse, the tap answers in its place.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from pamqp import commands, frame

from .unit import Unit

REDIS = {
    "READONLY": "READONLY You can't write against a read only replica.",
    "OOM": "OOM command not allowed when used memory > 'maxmemory'.",
}
"""The server's own words, as redis-server 7.0 says them."""
NOWHERE = "jobcheck-refuses"
"""An exchange that is not there: RabbitMQ closes the channel of whoever publishes to it (404)."""
UNKNOWN_TAG = 2**63 - 1
"""A delivery tag that was never given: RabbitMQ closes the channel of whoever settles it (406)."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Exactly one request is refused by it."""

    send: bytes = b""
    """Goes to the server in place of the request; empty: the server hears nothing."""
    answer: bytes = b""
    """The client's answer, where the server gives none."""
    instead: bytes = b""
    """Takes the place of the server's answer to `send`."""


def refusal(unit: Unit, how: str) -> Refusal:
    """Refuses this request. `how` is one of `faults.strikes.REFUSALS` of its protocol.

    Raises ValueError when this protocol or this message cannot be refused so.
    """
    protocol = unit.shape.partition(" ")[0]
    if protocol == "postgres" and how == "57P01":
        return Refusal(send=_postgres(unit, "SELECT pg_terminate_backend(pg_backend_pid())"))
    if protocol == "postgres":
        statement = f"DO $$ BEGIN RAISE EXCEPTION 'refused by jobcheck' USING ERRCODE = '{how}'; END $$"
        return Refusal(send=_postgres(unit, statement))
    if protocol == "redis":
        return _redis(unit, REDIS[how])
    if protocol == "http":
        return Refusal(answer=_http(int(how)))
    if protocol == "amqp":
        return Refusal(send=_amqp(unit))
    raise ValueError(f"{unit.shape} cannot be refused by {how}")


def _postgres(unit: Unit, sql: str) -> bytes:
    """The statement in the form of the request: a simple query, or a whole extended batch up to Sync."""
    text = sql.encode() + b"\x00"
    if unit.raw[:1] == b"Q":
        return _message(b"Q", text)
    return b"".join(
        (
            _message(b"P", b"\x00" + text + b"\x00\x00"),
            _message(b"B", b"\x00\x00" + struct.pack("!hhh", 0, 0, 0)),
            _message(b"E", b"\x00" + struct.pack("!i", 0)),
            _message(b"S", b""),
        )
    )


def _message(kind: bytes, payload: bytes) -> bytes:
    return kind + struct.pack("!i", len(payload) + 4) + payload


def _redis(unit: Unit, words: str) -> Refusal:
    if unit.raw[:1] == b"*" and b"\r\nEXEC\r\n" in unit.raw.upper()[:40]:
        aborted = f"-EXECABORT Transaction discarded because of: {words}\r\n"
        return Refusal(send=_command("DISCARD"), instead=aborted.encode())
    quoted = words.replace("\\", "\\\\").replace("'", "\\'")
    return Refusal(send=_command("EVAL", f"return redis.error_reply('{quoted}')", "0"))


def _command(*words: str) -> bytes:
    parts = [f"*{len(words)}\r\n".encode()]
    for word in words:
        raw = word.encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
    return b"".join(parts)


def _http(status: int) -> bytes:
    body = b'{"error":"refused by jobcheck"}'
    head = f"HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _amqp(unit: Unit) -> bytes:
    """The same message to an exchange that is not there, or the same settlement of a delivery that never was."""
    channel = int(unit.info["channel"])
    first = 8 + struct.unpack_from(">I", unit.raw, 3)[0]
    method = str(unit.info["method"])
    if method == "basic.publish":
        key = str(unit.info.get("routing_key", ""))
        return (
            bytes(frame.marshal(commands.Basic.Publish(exchange=NOWHERE, routing_key=key), channel)) + unit.raw[first:]
        )
    if method == "basic.ack":
        return bytes(frame.marshal(commands.Basic.Ack(delivery_tag=UNKNOWN_TAG), channel)) + unit.raw[first:]
    raise ValueError(f"{method} cannot be refused")
