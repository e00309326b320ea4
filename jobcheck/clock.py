"""The injected clock. The only module that imports `time`."""

from __future__ import annotations

import datetime as _dt
import time
from typing import Protocol


class Clock(Protocol):
    """What the rest of jobcheck may know about time."""

    def now(self) -> float:
        """Seconds on a clock that never goes back; the zero is arbitrary."""
        ...

    def wall(self) -> float:
        """Seconds since the Unix epoch."""
        ...

    def today(self) -> _dt.date:
        """The date in UTC."""
        ...


class RealClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    def today(self) -> _dt.date:
        return _dt.datetime.fromtimestamp(self.wall(), _dt.UTC).date()


class ManualClock:
    """A clock that moves only when told to, for tests."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._now

    def today(self) -> _dt.date:
        return _dt.datetime.fromtimestamp(self._now, _dt.UTC).date()

    def advance(self, seconds: float) -> None:
        self._now += seconds


class FasterClock:
    """Goes so many times as fast as another clock, and was the same as it when it was made."""

    def __init__(self, inner: Clock, speed: float) -> None:
        self._inner = inner
        self.speed = speed
        self._now = inner.now()
        self._wall = inner.wall()

    def now(self) -> float:
        return self._now + (self._inner.now() - self._now) * self.speed

    def wall(self) -> float:
        return self._wall + (self._inner.now() - self._now) * self.speed

    def today(self) -> _dt.date:
        return _dt.datetime.fromtimestamp(self.wall(), _dt.UTC).date()


REAL = RealClock()


def stamp(wall: float) -> str:
    """A folder-safe UTC time such as `20261129-221804`."""
    return _dt.datetime.fromtimestamp(wall, _dt.UTC).strftime("%Y%m%d-%H%M%S")


def iso(wall: float) -> str:
    """An ISO 8601 UTC time with seconds."""
    return _dt.datetime.fromtimestamp(wall, _dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def left_of(iso_time: str, wall: float) -> float:
    """Seconds from `wall` until an ISO 8601 time (without a zone: UTC); 0 where it is none."""
    try:
        due = _dt.datetime.fromisoformat(iso_time)
    except ValueError:
        return 0.0
    return (due if due.tzinfo else due.replace(tzinfo=_dt.UTC)).timestamp() - wall


def span(seconds: float) -> str:
    """`45 s`, `50 min`, `1 h`, `2.5 h`: rounded for people."""
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 ", " ")
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h".replace(".0 ", " ")
