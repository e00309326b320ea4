"""When a fault happens: triggers as data, and the moments that they give.

All times are seconds since the workload began, or since the event that the trigger waits for (`after`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

DELIVERIES, CASES = "deliveries", "cases"
UNITS = (DELIVERIES, CASES)
MIDDLE = (0.1, 0.9)
"""A fault without a time happens at a random moment between these shares of its span: not in the first and the last
moments, when few jobs run."""


class Draw(Protocol):
    """What is used of a stream of `seeds.Seeds`."""

    def random(self) -> float:
        """A number from 0 up to, not including, 1."""
        ...

    def randrange(self, start: int, stop: int, /) -> int:
        """A whole number from `start` up to, not including, `stop`."""
        ...


@dataclass(frozen=True, slots=True)
class Span:
    """From one moment until another, in seconds."""

    start: float
    end: float

    @property
    def text(self) -> str:
        return f"{self.start:g}s..{self.end:g}s"


@dataclass(frozen=True, slots=True)
class After:
    """The event that a trigger waits for: the n-th delivery of a job, or the n-th case."""

    number: int
    unit: str = DELIVERIES

    @property
    def text(self) -> str:
        return f"after {self.number} {self.unit}"


@dataclass(frozen=True, slots=True)
class Trigger:
    """`at`, `every`, `for`, `during`, `after`, `times` of one fault, as written."""

    at: float | None = None
    """Its first moment."""
    every: float | None = None
    """Once in each period of this length, at a random moment of the period."""
    lasts: float | None = None
    """`for`: how long a lasting fault stays. None: until the end of the run."""
    during: Span | None = None
    """Outside of it nothing begins. None: while the workload goes on."""
    times: int | None = None
    """How often at most; without `every`, this many random moments."""
    after: After | None = None
    """Times count from this event on."""

    def span(self, length: float) -> Span:
        """The time in which the fault may begin; `length` is that of the workload."""
        if self.during is not None:
            return self.during
        return Span(0.0, max(length, 0.001))

    def moments(self, length: float, draw: Draw) -> tuple[float, ...]:
        """When the fault begins, in order, in whole milliseconds. `length` is that of the workload."""
        found = sorted(round(moment, 3) for moment in self._moments(self.span(length), draw))
        return tuple(found if self.times is None else found[: self.times])

    def _moments(self, span: Span, draw: Draw) -> Iterator[float]:
        if self.every is not None:
            yield from self._periods(span, self.every, draw)
        elif self.at is not None:
            yield self.at
        else:
            low, high = (0.0, 1.0) if self.during is not None else MIDDLE
            for _ in range(self.times or 1):
                yield span.start + (low + (high - low) * draw.random()) * (span.end - span.start)

    def _periods(self, span: Span, every: float, draw: Draw) -> Iterator[float]:
        """One moment in each whole period; a lasting fault is over before the next one may begin."""
        room = every - (self.lasts or 0.0)
        begin = max(span.start, self.at or 0.0)
        for number in range(int((span.end - begin) / every + 1e-9)):
            yield begin + number * every + draw.random() * room


ALWAYS = Trigger()
