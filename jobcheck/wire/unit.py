"""The unit: what a decoder gives the tap, and the interface of every decoder.

A decoder is fed the bytes of both directions of one connection in the order in which they arrived, and answers with
units. Its rules:

* The `raw` of all units of a direction, joined, is exactly what was received on it. The tap forwards `raw` and nothing
  else (the one exception is a unit with `answer`, which the tap answers itself and does not forward).
* Three outcomes only: units, nothing yet (need more), or a wire error. After a wire error the decoder turns opaque:
  it gives everything it still holds, and all that follows, as OPAQUE units, and says why once in `note`.
* Nothing waits for more bytes while the peer waits for us: whatever a server must see before it answers is given out
  (a batch ends at Flush as well as at Sync; a request with `Expect: 100-continue` gives its head first).
* Nothing is held without bound: a unit that grows beyond `MAX_HELD` bytes is given out as its labelled head, and the
  rest follows as PART units.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

MAX_HELD = 4 * 1024 * 1024
"""Bytes of one unit that a decoder keeps before it gives it out in parts."""


class WireError(Exception):
    """The bytes are not this protocol. Raised inside a decoder only; callers see OPAQUE units with a note."""


class Kind(enum.StrEnum):
    """What a unit is on its connection."""

    REQUEST = "request"
    """From the client: one message that gets an answer, or is sent without one. It has a number."""
    REPLY = "reply"
    """From the server: the answer to the request with the same number."""
    PUSH = "push"
    """From the server without a request: pub/sub, notification, delivery."""
    CONTROL = "control"
    """Either direction: start-up, handshake, authentication, heartbeat, 1xx. Seen and never a point."""
    PART = "part"
    """More bytes of a unit that was given out before it was complete."""
    OPAQUE = "opaque"
    """Bytes that nobody decoded."""


class Change(enum.StrEnum):
    """What a request does to state, and how sure we are."""

    NO = "no"
    """Reads, or talks about the connection only."""
    PENDING = "pending"
    """Writes inside a transaction: it becomes true with a later commit, into which it folds."""
    YES = "yes"
    """Changes state when it is carried out."""
    MAYBE = "maybe"
    """Cannot be told from the request (an unknown function, opaque bytes): taken as a change until the answer says."""


@dataclass(slots=True)
class Unit:
    """One message of one direction of one connection.

    `shape` is the label without ids, led by the protocol: `postgres INSERT job_effects`, `http POST /charges`,
    `redis LPUSH celery`, `smtp DATA`. Empty for PART.

    `change` of a REQUEST is the guess from its text; `change` of a REPLY is the server's own truth about the request
    that it answers (command tags and transaction status, reply values, HTTP status), which outranks the guess.

    `info` holds what dialects, stories and observers read; keys by protocol are listed in each decoder's docstring.
    """

    raw: bytes
    kind: Kind
    shape: str = ""
    number: int = 0
    """Serial of the request on this connection, from 1; a REPLY carries the number of its request. 0: none."""
    change: Change = Change.NO
    summary: str = ""
    """One line for a person, ids included, at most 200 characters: `INSERT INTO job_effects VALUES ('charge:17')`."""
    info: Mapping[str, Any] = field(default_factory=dict)
    failed: bool = False
    """REPLY: the server refused (an error reply, a 4xx or 5xx status)."""
    answer: bytes | None = None
    """Set: the tap sends these bytes back to the sender and does not forward `raw` (Postgres SSLRequest -> `N`)."""
    note: str = ""
    """A sentence for the user about the connection: TLS seen, decoder gave up and why."""
    last: bool = True
    """REPLY: false when PART units of this reply follow."""


class Decoder(Protocol):
    """Both directions of one connection."""

    protocol: str
    """`redis`, `postgres`, `http`, `smtp`, `amqp` or `opaque`."""
    asks_for_tls: bool
    """The client asks for TLS in the protocol's own words, and gets it."""

    def client(self, data: bytes) -> list[Unit]:
        """Units completed by these bytes from the client. Never raises."""
        ...

    def server(self, data: bytes) -> list[Unit]:
        """Units completed by these bytes from the server. Never raises."""
        ...

    def client_end(self) -> list[Unit]:
        """What is still held of the client's direction, when it ends."""
        ...

    def server_end(self) -> list[Unit]:
        """What is still held of the server's direction, when it ends."""
        ...
