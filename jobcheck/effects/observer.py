"""What the runner knows about observers: some listen all the time (servers), some are asked at the end (snapshots)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Seen:
    """An effect that a snapshot found, before the ledger gives it a number and a time."""

    name: str
    body: str
    fields: dict[str, Any] = field(default_factory=dict)


class Server(Protocol):
    """An observer that is an upstream itself: an HTTP provider, a mail sink, the mark server."""

    name: str

    @property
    def host(self) -> str:
        """Where it listens; empty before `start`."""
        ...

    @property
    def port(self) -> int:
        """Where it listens; 0 before `start`."""
        ...

    async def start(self) -> None:
        """Listens on a free loopback port. Raises OSError when that fails."""
        ...

    async def stop(self) -> None:
        """Closes the listener and every connection. May be called twice."""
        ...


class Snapshot(Protocol):
    """An observer that looks when it is asked: rows of a table, files of a folder."""

    name: str

    async def prime(self) -> None:
        """Takes what is there now as known."""
        ...

    async def read(self) -> list[Seen]:
        """What is new since the last `prime` or `read`."""
        ...

    async def close(self) -> None:
        """Gives back what it holds. May be called twice."""
        ...
