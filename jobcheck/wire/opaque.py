"""Bytes that nobody decodes: every chunk of the client may be a change."""

from __future__ import annotations

from .stream import OPAQUE_SHAPE
from .unit import Change, Kind, Unit


class OpaqueDecoder:
    """Passes chunks as they come. Requests have no numbers, and replies answer none."""

    protocol = "opaque"
    asks_for_tls = False

    def client(self, data: bytes) -> list[Unit]:
        """One OPAQUE unit that may change state."""
        return [Unit(data, Kind.OPAQUE, OPAQUE_SHAPE, change=Change.MAYBE)] if data else []

    def server(self, data: bytes) -> list[Unit]:
        """One OPAQUE unit that changes nothing."""
        return [Unit(data, Kind.OPAQUE, OPAQUE_SHAPE)] if data else []

    def client_end(self) -> list[Unit]:
        """Nothing is ever held."""
        return []

    def server_end(self) -> list[Unit]:
        """Nothing is ever held."""
        return []
