"""The ledger: one numbered list of everything that observers saw, in the order in which they saw it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..clock import Clock
from ..history.records import Effect
from .observer import Seen


class Ledger:
    """Appends effects and hands each to its listeners at once. Lives in one event loop, so it needs no lock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._effects: list[Effect] = []
        self._listeners: list[Callable[[Effect], None]] = []

    @property
    def seq(self) -> int:
        """The number of the last effect, 0 before the first; hand it to `since` later."""
        return len(self._effects)

    def record(
        self,
        name: str,
        body: str,
        *,
        fields: dict[str, Any] | None = None,
        key: str = "",
        applied: bool = True,
        note: str = "",
    ) -> Effect:
        """Appends an effect, or a call without effect (`applied=False`), stamped with the clock's now."""
        effect = Effect(
            seq=self.seq + 1,
            at=self.clock.now(),
            name=name,
            body=body,
            fields=fields or {},
            key=key,
            applied=applied,
            note=note,
        )
        self._effects.append(effect)
        for listener in self._listeners:
            listener(effect)
        return effect

    def add(self, seen: Seen) -> Effect:
        """Appends what a snapshot found."""
        return self.record(seen.name, seen.body, fields=dict(seen.fields))

    def since(self, seq: int) -> list[Effect]:
        """The effects after number `seq`, oldest first; `since(0)` gives all."""
        return self._effects[seq:]

    def subscribe(self, callback: Callable[[Effect], None]) -> Callable[[], None]:
        """Calls `callback` with each effect as it is recorded. Returns a function that ends this."""
        self._listeners.append(callback)

        def end() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return end
