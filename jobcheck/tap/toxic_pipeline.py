"""The toxics of one direction of one connection as a chain, and the toxics of one listener as a set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from ..errors import UsageError
from ..faults.toxics import Stream, Toxic
from .sight import IN, OUT
from .toxics import Chance, How, Outlet, Stage, Timers, stage_for

WAYS = {Stream.UPSTREAM: OUT, Stream.DOWNSTREAM: IN}
"""The tap's word for each direction."""


class Receiver(Protocol):
    """The connection, as its pipelines see it."""

    def deliver(self, way: str, data: bytes) -> None:
        """Writes to the receiver of this direction."""
        ...

    def finished(self, way: str, how: How) -> None:
        """Everything of this direction was delivered."""
        ...

    def throttle(self, way: str, on: bool) -> None:
        """Asks the sender of this direction to wait, or to go on."""
        ...


class Pipeline:
    """A chain of stages; it is its own last outlet. New stages come last, as in Toxiproxy."""

    def __init__(self, receiver: Receiver, way: str, timers: Timers) -> None:
        self._receiver = receiver
        self._way = way
        self._timers = timers
        self._stages: dict[str, Stage] = {}
        self._mouth = _Mouth(receiver, way)
        self._wanted = 0
        self._throttled = False
        self._gone = False
        self._retiring: set[str] = set()

    @property
    def empty(self) -> bool:
        """No stage is left."""
        return not self._stages

    @property
    def busy(self) -> bool:
        """Something is still to be handed on."""
        if self._gone:
            return False
        return self._mouth.done < self._wanted or any(stage.held for stage in self._stages.values())

    def feed(self, data: bytes) -> None:
        """Data from the sender."""
        if self._gone:
            return
        self._first().feed(data, self._timers.time())
        self._balance()

    def finish(self, how: How) -> None:
        """The sender's end; a later, harder one may follow."""
        if self._gone:
            return
        self._wanted = max(self._wanted, how)
        self._first().finish(how)

    def add(self, name: str, stage: Stage) -> None:
        """Puts a stage behind the others. What those hold goes through it."""
        if self._gone:
            return
        for last in list(self._stages.values())[-1:]:
            last.out = stage
        stage.out = self._mouth
        stage.moved = self._balance
        self._stages[name] = stage
        stage.begin()

    def has(self, name: str) -> bool:
        """Whether there is a stage of that name; it stays then, also if it was to be taken out."""
        self._retiring.discard(name)
        return name in self._stages

    def retire(self, name: str) -> None:
        """Takes a stage out as soon as it holds nothing. Nothing happens when it has no such stage."""
        if name in self._stages:
            self._retiring.add(name)
            self._balance()

    def remove(self, name: str) -> None:
        """Takes a stage out; what it holds goes to the next one. Nothing happens when it has no such stage."""
        if (stage := self._stages.get(name)) is None:
            return
        stage.remove()
        for before in self._stages.values():
            if before.out is stage:
                before.out = stage.out
        del self._stages[name]
        self._balance()

    def change(self, name: str, stage: Stage) -> None:
        """Puts another stage in the place of one; what that held is handed on. Without one it is added."""
        if (old := self._stages.get(name)) is None or self._gone:
            self.add(name, stage)
            return
        old.flush()
        stage.inherit(old)
        old.discard()
        stage.out, stage.moved = old.out, old.moved
        for before in self._stages.values():
            if before.out is old:
                before.out = stage
        self._stages[name] = stage
        stage.begin()
        self._balance()

    def flush(self) -> None:
        """Hands on whatever is held, past all stages."""
        for stage in list(self._stages.values()):
            stage.flush()
        self._balance()

    def discard(self) -> None:
        """The receiver is gone: forgets what is held, and takes nothing any more."""
        self._gone = True
        for stage in self._stages.values():
            stage.discard()

    def _first(self) -> Outlet:
        return next(iter(self._stages.values()), self._mouth)

    def _balance(self) -> None:
        for name in [name for name in self._retiring if name not in self._stages or not self._stages[name].held]:
            self._retiring.discard(name)
            if name in self._stages:
                self.remove(name)
        if self._throttled:
            full = any(stage.held > stage.capacity // 2 for stage in self._stages.values())
        else:
            full = any(stage.held > stage.capacity for stage in self._stages.values())
        if full is not self._throttled:
            self._throttled = full
            self._receiver.throttle(self._way, full)


class _Mouth:
    """The end of a pipeline."""

    def __init__(self, receiver: Receiver, way: str) -> None:
        self._receiver = receiver
        self._way = way
        self.done = 0

    def feed(self, data: bytes, at: float) -> None:
        if self.done < How.CLOSE:
            self._receiver.deliver(self._way, data)

    def finish(self, how: How) -> None:
        if how > self.done:
            self.done = how
            self._receiver.finished(self._way, how)


class Piped(Protocol):
    """A connection that can be given stages."""

    @property
    def ordinal(self) -> int:
        """Which connection of its listener it is, from 1."""
        ...

    def pipeline(self, way: str) -> Pipeline:
        """The chain of this direction, made when there is none."""
        ...

    def unpipe(self, way: str, name: str) -> None:
        """Takes a stage out of the chain of this direction, if there is one."""
        ...


class ToxicSet:
    """The toxics that act on one listener's connections, those of today and those to come."""

    def __init__(self) -> None:
        self._active: dict[str, tuple[Toxic, Callable[[int], Chance]]] = {}

    def __bool__(self) -> bool:
        return bool(self._active)

    def add(
        self, name: str, toxic: Toxic, chances: Callable[[int], Chance], links: Iterable[Piped], timers: Timers
    ) -> None:
        """`chances` gives the random numbers of the n-th connection. Raises UsageError when the name is taken."""
        if name in self._active:
            raise UsageError(f"expected a new name for a toxic, and {name!r} acts already")
        self._active[name] = (toxic, chances)
        for link in links:
            _put(name, toxic, chances(link.ordinal), link, timers)

    def remove(self, name: str, links: Iterable[Piped]) -> None:
        """Heals the connections of this toxic. Nothing happens when there is no such toxic."""
        if (found := self._active.pop(name, None)) is not None:
            for link in links:
                link.unpipe(WAYS[found[0].stream], name)

    def change(
        self, name: str, toxic: Toxic, chances: Callable[[int], Chance], links: Iterable[Piped], timers: Timers
    ) -> None:
        """Other settings for a toxic, in the same direction; which connections it acts on is drawn again."""
        self._active[name] = (toxic, chances)
        way = WAYS[toxic.stream]
        for link in links:
            chance = chances(link.ordinal)
            if chance.random() < toxic.toxicity:
                link.pipeline(way).change(name, stage_for(toxic, timers, chance))
            else:
                link.unpipe(way, name)

    def dress(self, link: Piped, timers: Timers) -> None:
        """Gives a new connection its stages."""
        for name, (toxic, chances) in self._active.items():
            _put(name, toxic, chances(link.ordinal), link, timers)


def _put(name: str, toxic: Toxic, chance: Chance, link: Piped, timers: Timers) -> None:
    if chance.random() < toxic.toxicity:
        link.pipeline(WAYS[toxic.stream]).add(name, stage_for(toxic, timers, chance))
