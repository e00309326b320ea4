"""The gate: who decides, message by message, whether the tap passes it on or holds it.

A gate is asked synchronously and answers at once; whatever takes time (a kill, a rewind) is done by the runner, which
awaits `Gate` events and then releases or drops what is held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ..history.records import Point
from ..wire.unit import Kind
from .sight import IN, OUT, Sight

if TYPE_CHECKING:
    from .link import Link

COUNTED = frozenset({Kind.REQUEST, Kind.OPAQUE})


class Gate(Protocol):
    """Asked about each unit of one worker."""

    def holds(self, sight: Sight) -> bool:
        """True: the unit, and what follows it in its direction, waits until the link is released."""
        ...


class HoldFetch:
    """Holds a standby at its first fetch, so that it takes no job before it is wanted."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.held: list[Sight] = []

    def holds(self, sight: Sight) -> bool:
        if sight.role != "poll" or sight.way != OUT:
            return False
        self.held.append(sight)
        self.reached.set()
        return True


class Armed:
    """Holds one worker at one point, once.

    `before`: the request is held before it reaches the upstream; a delivery before it reaches the worker. `after`: the
    request passes and its answer is held; where there is no answer, `fired` is set as soon as it was passed on.
    Counting begins with the window, which is open from the start (`window=True`) or opens at the first delivery.

    Nobody waits for the answer to a message that has none: its sender would go on until the strike reaches it. With
    `freeze` the other connections that it has by then are held too, from that message on.
    """

    def __init__(
        self,
        point: Point,
        when: str,
        *,
        window: bool,
        freeze: bool = False,
        whose: Callable[[Sight], bool] = lambda sight: True,
    ) -> None:
        """`whose`: the message is of the job that the point belongs to."""
        self._whose = whose
        self.point = point
        self.when = when
        self.window = window
        self.count = 0
        self.fired = asyncio.Event()
        self.hit: Sight | None = None
        self._awaiting: Sight | None = None
        self._freeze = freeze
        self._frozen: frozenset[Link] = frozenset()

    def holds(self, sight: Sight) -> bool:
        if self.fired.is_set():
            return sight is self.hit or (sight.way == OUT and sight.link in self._frozen)
        if sight.role == "delivery":
            self.window = True
        if not self.window:
            return False
        if self._awaiting is not None:
            return self._answers(sight)
        if not self._counts(sight):
            return False
        self.count += 1
        if self.count != self.point.nth:
            return False
        return self._reached(sight)

    def _counts(self, sight: Sight) -> bool:
        if (
            not self._whose(sight)
            or sight.upstream != self.point.upstream
            or sight.unit.shape != self.point.shape
            or sight.role == "noise"
        ):
            return False
        if self.point.side == "delivery":
            return sight.role == "delivery" and sight.way == IN
        return sight.way == OUT and sight.unit.kind in COUNTED

    def _reached(self, sight: Sight) -> bool:
        if self.when == "before":
            self._fire(sight)
            return True
        if self.point.side == "delivery" or not sight.link.answers(sight.unit):
            self._fire(sight)
            return False
        self._awaiting = sight
        return False

    def _answers(self, sight: Sight) -> bool:
        if sight.request is not self._awaiting:
            return False
        self._fire(sight)
        return True

    def _fire(self, sight: Sight) -> None:
        self.hit = sight
        sight.fate = "struck"
        if self._freeze and sight.way == OUT and not sight.link.answers(sight.unit):
            self._frozen = frozenset(sight.link.listener.slot.links)
        self.fired.set()
