"""The toxics of the embedded engine: one stage for each, put into one direction of one connection.

    data -> [stage] -> [stage] -> the receiver          (tap/toxic_pipeline.py makes the chain)

The settings (`faults.toxics`) are frozen and shared by all connections; what happens to one of them lives in its stage.
A stage has no tasks and no locks: it is fed, and sets timers of the loop. Its due times follow from each other and not
from when a timer really ran, so a late timer does not add up. Whatever a stage holds it hands on, in order, when it is
removed.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from ..errors import UsageError
from ..faults.toxics import Bandwidth, Latency, LimitData, ResetPeer, Slicer, SlowClose, Timeout, Toxic

KB = 1000
"""Bytes, as Toxiproxy counts them."""
HELD = 64 * 1024
"""Bytes that a stage takes before the sender is asked to wait."""
LATENCY_HELD = 32 * 1024 * 1024
"""The same for latency, which must hold all that is under way, as a long line does. (Toxiproxy: 1024 pieces.)"""
PIECE_SECONDS = 0.1
"""A slow bandwidth passes data on in pieces of this time."""
NEVER = float("inf")


class How(enum.IntEnum):
    """How a direction ends. A later one outranks an earlier one."""

    END = 1
    """The sender has said all: the receiver sees the end, the other direction goes on."""
    CLOSE = 2
    """The connection is closed once what came before is through."""
    RESET = 3
    """The connection is broken with a TCP reset."""


class Outlet(Protocol):
    """Where a stage hands its data on: the next stage, or the connection."""

    def feed(self, data: bytes, at: float) -> None:
        """`at` is when the data came here, in a world where timers are exact."""
        ...

    def finish(self, how: How) -> None: ...


class Cancels(Protocol):
    """A timer that is set."""

    def cancel(self) -> None: ...


class Timers(Protocol):
    """What stages need of an event loop."""

    def time(self) -> float: ...
    def call_at(self, when: float, callback: Callable[[], None], /) -> Cancels: ...


class Chance(Protocol):
    """A stream of random numbers (`seeds.Seeds.stream`)."""

    def random(self) -> float: ...
    def randrange(self, start: int, stop: int, /) -> int: ...


class Stage:
    """One toxic on one direction of one connection. This one passes everything on as it comes."""

    capacity = HELD

    def __init__(self, timers: Timers) -> None:
        self.out: Outlet
        """Set by the pipeline."""
        self.moved: Callable[[], None] = _nothing
        """Called when a timer made the stage hand something on."""
        self.held = 0
        """Bytes."""
        self._timers = timers
        self._timer: Cancels | None = None

    def begin(self) -> None:
        """The stage is in its place, and `out` is set."""

    def feed(self, data: bytes, at: float) -> None:
        self.out.feed(data, at)

    def finish(self, how: How) -> None:
        self.out.finish(how)

    def inherit(self, old: Stage) -> None:
        """Takes over what has happened to this connection so far, from the stage in whose place it comes."""

    def flush(self) -> None:
        """Hands on at once whatever is held."""

    def remove(self) -> None:
        """The toxic is gone: as `flush`, and nothing will be fed any more."""
        self.flush()

    def discard(self) -> None:
        """The connection is gone: forgets what is held."""
        self._stop_timer()
        self.held = 0

    def _at(self, when: float, callback: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self._timers.call_at(when, callback)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _nothing() -> None:
    pass


class _Queue(Stage):
    """Holds pieces until each is due, in order."""

    def __init__(self, timers: Timers) -> None:
        super().__init__(timers)
        self._queue: deque[tuple[float, bytes | How]] = deque()
        self._last_due = -NEVER

    def finish(self, how: How) -> None:
        self._push(how, self._last_due)
        self._run()

    def flush(self) -> None:
        self._stop_timer()
        now = self._timers.time()
        self._last_due = now
        while self._queue:
            self._hand_on(now)

    def discard(self) -> None:
        super().discard()
        self._queue.clear()

    def _push(self, item: bytes | How, due: float) -> None:
        self._queue.append((due, item))
        self._last_due = due
        if isinstance(item, bytes):
            self.held += len(item)

    def _run(self) -> None:
        now = self._timers.time()
        while self._queue and self._queue[0][0] <= now:
            self._hand_on(self._queue[0][0])
        if not self._queue:
            self._stop_timer()
        elif self._timer is None and self._queue[0][0] != NEVER:
            self._timer = self._timers.call_at(self._queue[0][0], self._due)

    def _hand_on(self, at: float) -> None:
        item = self._queue.popleft()[1]
        if isinstance(item, bytes):
            self.held -= len(item)
            self.out.feed(item, at)
        else:
            self.out.finish(item)

    def _due(self) -> None:
        self._timer = None
        self._run()
        self.moved()


class LatencyStage(_Queue):
    """Everything is due some time after it came, and never before what came earlier. The end itself is not delayed."""

    capacity = LATENCY_HELD

    def __init__(self, toxic: Latency, timers: Timers, chance: Chance) -> None:
        super().__init__(timers)
        self._toxic = toxic
        self._chance = chance

    def feed(self, data: bytes, at: float) -> None:
        delay = self._toxic.latency
        if self._toxic.jitter:
            delay += self._chance.randrange(-self._toxic.jitter, self._toxic.jitter)
        self._push(data, max(self._last_due, at + max(delay, 0) / 1000))
        self._run()


class BandwidthStage(_Queue):
    """Each piece is due when its last byte would have come over a line of that rate."""

    def __init__(self, toxic: Bandwidth, timers: Timers) -> None:
        super().__init__(timers)
        self._rate = toxic.rate * KB
        self._piece = max(1, int(self._rate * PIECE_SECONDS))
        self.capacity = max(HELD, self._piece)

    def feed(self, data: bytes, at: float) -> None:
        if not self._rate:
            self._push(data, NEVER)
            return
        due = max(at, self._last_due)
        for start in range(0, len(data), self._piece):
            piece = data[start : start + self._piece]
            due += len(piece) / self._rate
            self._push(piece, due)
        self._run()


class SlicerStage(_Queue):
    """Data is halved, with some variation, until the slices are small enough; one is due `delay` after the other."""

    def __init__(self, toxic: Slicer, timers: Timers, chance: Chance) -> None:
        super().__init__(timers)
        self._toxic = toxic
        self._chance = chance
        self._free = -NEVER

    def feed(self, data: bytes, at: float) -> None:
        due = max(at, self._free)
        for one in self._slices(data):
            self._push(one, due)
            due += self._toxic.delay / 1_000_000
        self._free = due
        self._run()

    def flush(self) -> None:
        super().flush()
        self._free = -NEVER

    def _slices(self, data: bytes) -> Iterator[bytes]:
        average, variation = self._toxic.average_size, self._toxic.size_variation
        todo = [(0, len(data))]
        while todo:
            start, stop = todo.pop()
            if stop - start <= average + variation:
                yield data[start:stop]
                continue
            middle = start + (stop - start) // 2
            if variation:
                middle += self._chance.randrange(-variation, variation)
            todo += [(middle, stop), (start, middle)]


class SlowCloseStage(Stage):
    """Data passes; the end waits."""

    def __init__(self, toxic: SlowClose, timers: Timers) -> None:
        super().__init__(timers)
        self._delay = toxic.delay / 1000
        self._how: How | None = None

    def finish(self, how: How) -> None:
        if self._how is None:
            self._at(self._timers.time() + self._delay, self._due)
        self._how = max(how, self._how or how)

    def flush(self) -> None:
        self._stop_timer()
        if self._how is not None:
            how, self._how = self._how, None
            self.out.finish(how)

    def _due(self) -> None:
        self.flush()
        self.moved()


class TimeoutStage(Stage):
    """Data vanishes. The connection is closed after a time without any, and when the toxic is removed."""

    def __init__(self, toxic: Timeout, timers: Timers) -> None:
        super().__init__(timers)
        self._seconds = toxic.timeout / 1000
        self._over = False

    def begin(self) -> None:
        if self._seconds and not self._over:
            self._at(self._timers.time() + self._seconds, self.remove)

    def feed(self, data: bytes, at: float) -> None:
        self.begin()

    def remove(self) -> None:
        self._over = True
        self._stop_timer()
        self.out.finish(How.CLOSE)


class ResetStage(Stage):
    """The first data, or the end, is the trigger; it vanishes, as all that comes after it."""

    def __init__(self, toxic: ResetPeer, timers: Timers) -> None:
        super().__init__(timers)
        self._seconds = toxic.timeout / 1000
        self._triggered = False

    def feed(self, data: bytes, at: float) -> None:
        if self._triggered:
            return
        self._triggered = True
        if self._seconds:
            self._at(self._timers.time() + self._seconds, self.remove)
        else:
            self.remove()

    def finish(self, how: How) -> None:
        self.feed(b"", 0.0)

    def remove(self) -> None:
        """What was triggered happens: data is missing already."""
        self._stop_timer()
        if self._triggered:
            self.out.finish(How.RESET)


class LimitStage(Stage):
    """Passes so many bytes, then closes."""

    def __init__(self, toxic: LimitData, timers: Timers) -> None:
        super().__init__(timers)
        self._left = toxic.bytes
        self._passed = 0
        self._over = False

    def inherit(self, old: Stage) -> None:
        """What has passed counts."""
        if isinstance(old, LimitStage):
            self._passed, self._over = old._passed, old._over
            self._left = max(0, self._left - self._passed)

    def feed(self, data: bytes, at: float) -> None:
        if self._over:
            return
        if passes := data[: self._left]:
            self._left -= len(passes)
            self._passed += len(passes)
            self.out.feed(passes, at)
        if not self._left:
            self._over = True
            self.out.finish(How.CLOSE)


def stage_for(toxic: Toxic, timers: Timers, chance: Chance) -> Stage:
    """A stage with fresh state. Raises UsageError for a toxic that is none of a connection's (down)."""
    if isinstance(toxic, Latency):
        return LatencyStage(toxic, timers, chance)
    if isinstance(toxic, Slicer):
        return SlicerStage(toxic, timers, chance)
    if isinstance(toxic, Bandwidth):
        return BandwidthStage(toxic, timers)
    if isinstance(toxic, SlowClose):
        return SlowCloseStage(toxic, timers)
    if isinstance(toxic, Timeout):
        return TimeoutStage(toxic, timers)
    if isinstance(toxic, ResetPeer):
        return ResetStage(toxic, timers)
    if isinstance(toxic, LimitData):
        return LimitStage(toxic, timers)
    raise UsageError(f"{toxic.kind}: expected a toxic that acts on connections")
