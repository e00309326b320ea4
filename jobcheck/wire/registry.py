"""Decoders by name."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import UsageError
from .amqp import AmqpDecoder
from .http import HttpDecoder
from .marks import MarkDecoder
from .opaque import OpaqueDecoder
from .postgres import PostgresDecoder
from .resp import RespDecoder
from .smtp import SmtpDecoder
from .unit import Decoder

DECODERS: dict[str, Callable[[], Decoder]] = {
    "redis": RespDecoder,
    "postgres": PostgresDecoder,
    "http": HttpDecoder,
    "smtp": SmtpDecoder,
    "amqp": AmqpDecoder,
    "marks": MarkDecoder,
    "opaque": OpaqueDecoder,
}
"""A decoder of a new connection, by protocol."""

ASKS_FOR_TLS: dict[str, Callable[..., Decoder]] = {"postgres": PostgresDecoder, "smtp": SmtpDecoder}
"""Protocols in which a plain connection may become TLS."""

PROTOCOL_OF = {
    "redis": "redis",
    "postgres": "postgres",
    "rabbitmq": "amqp",
    "provider": "http",
    "smtp": "smtp",
    "marks": "marks",
    "opaque": "opaque",
}
"""The protocol that an upstream of this kind (`services.spec`) speaks."""


def decoder_for(protocol: str, *, tls: bool = False) -> Decoder:
    """A decoder for one new connection. `tls`: a client that asks in the protocol's own words gets TLS.

    Raises UsageError for a protocol that nobody here speaks.
    """
    if tls and protocol in ASKS_FOR_TLS:
        return ASKS_FOR_TLS[protocol](tls=True)
    make = DECODERS.get(protocol)
    if make is None:
        raise UsageError(f"no decoder for {protocol!r}", hint=f"one of {', '.join(sorted(DECODERS))}")
    return make()
