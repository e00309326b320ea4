"""Turns: a gate that holds every message of one worker that may matter to another one, until it is its turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ..wire.unit import Change
from .gate import COUNTED
from .sight import IN, OUT, Sight


class Turns:
    """The gate of one of two deliveries. `moved` is called when it has come to a message that it must wait with."""

    def __init__(self, counts: Callable[[Sight], bool], moved: Callable[[], None], *, started: bool = True) -> None:
        """`counts`: the message is about shared state. With `started` false, it begins with the first delivery."""
        self.started = started
        self.over = False
        """The delivery has ended: everything passes."""
        self.delivery: Sight | None = None
        self.held: list[tuple[Sight, int]] = []
        """What waits, in the order in which it came, each with its number among those of its shape."""
        self.sent: Sight | None = None
        """What was passed on last, and is not known to be answered."""
        self._polls: list[Sight] = []
        self._counts = counts
        self._moved = moved
        self._seen: Counter[tuple[str, str]] = Counter()

    def holds(self, sight: Sight) -> bool:
        if sight.role == "delivery" and sight.way == IN:
            self.started = True
            if self.delivery is None:
                self.delivery = sight
            self._moved()
        if self.over or not self.started or sight.way != OUT or sight.unit.kind not in COUNTED:
            return False
        if sight.role == "poll" and self.delivery is not None:
            self._polls.append(sight)  # the copy of the message is for the other one
            return True
        if sight.role in ("noise", "poll"):
            return False
        address = sight.upstream, sight.unit.shape
        self._seen[address] += 1
        if not self._counts(sight):
            return False
        self.held.append((sight, self._seen[address]))
        self._moved()
        return True

    @property
    def resting(self) -> bool:
        """It waits for its turn, and what it was let do last is done."""
        return bool(self.held) and not self.busy

    @property
    def busy(self) -> bool:
        """What it sent last has no answer yet."""
        sent = self.sent
        if sent is None or not sent.link.answers(sent.unit):
            return False
        return sent.reply is None and sent.link in sent.link.listener.links

    @property
    def changed(self) -> bool:
        """Whether what it sent last changed anything, by the server's own word."""
        return self.sent is None or self.sent.changed is not Change.NO

    def go(self) -> Sight:
        """Passes on what has waited longest."""
        sight, _ = self.held.pop(0)
        self.sent = sight
        sight.at = sight.link.listener.slot.trace.now()  # it happens now, and not when it was held
        sight.link.release(OUT)
        return sight

    def finish(self) -> None:
        """The delivery has ended, or the race is over: whatever waits or comes is passed on."""
        self.over = True
        while self.held:
            self.go()
        for poll in self._polls:
            poll.link.release(OUT)
        self._polls.clear()
