"""A provider's memory of idempotency keys, after the IETF draft `Idempotency-Key`.

The same key with the same request gives the stored answer; with another request 422; while the first is in flight 409.
Only accepted calls are remembered: after a 5xx the same key is a new call.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..clock import Clock


@dataclass(frozen=True, slots=True)
class Stored:
    """The answer that was given to the first call with a key."""

    status: int
    headers: dict[str, str]
    content: bytes


@dataclass(slots=True)
class _Entry:
    fingerprint: str
    born: float
    stored: Stored | None = None


class IdempotencyKeys:
    """The keys of one provider. `retention`: the seconds that a key is remembered, on this clock."""

    def __init__(self, clock: Clock, retention: float) -> None:
        self._clock = clock
        self._retention = retention
        self._entries: dict[str, _Entry] = {}

    def begin(self, key: str, fingerprint: str) -> Stored | str:
        """The stored answer to replay, a refusal (`409 in flight`, `422 same key, another body`), or an empty text:
        the call is new and in flight from now on, until `finish` or `forget`."""
        entry = self._entries.get(key)
        if entry is not None and entry.stored and self._clock.now() - entry.born >= self._retention:
            entry = None
        if entry is None:
            self._entries[key] = _Entry(fingerprint, self._clock.now())
            return ""
        if entry.fingerprint != fingerprint:
            return "422 same key, another body"
        return entry.stored or "409 in flight"

    def finish(self, key: str, stored: Stored) -> None:
        """The call was accepted and its answer is known."""
        self._entries[key].stored = stored

    def forget(self, key: str) -> None:
        """The call was refused: the key counts as never used."""
        self._entries.pop(key, None)

    def rewind(self, seconds: float) -> int:
        """Makes every stored key `seconds` older and forgets those past their retention; returns how many went."""
        gone = []
        for key, entry in self._entries.items():
            entry.born -= seconds
            if entry.stored and self._clock.now() - entry.born >= self._retention:
                gone.append(key)
        for key in gone:
            del self._entries[key]
        return len(gone)
