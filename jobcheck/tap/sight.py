"""What the tap saw: one unit at one place, and the trace of all of them in the order of sight."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..clock import Clock
from ..history.records import Operation
from ..wire.unit import Change, Kind, Unit

if TYPE_CHECKING:
    from .link import Link

OUT = "out"
"""From the worker to the upstream."""
IN = "in"
"""From the upstream to the worker."""


@dataclass(slots=True, eq=False)
class Sight:
    """One unit as it passed a tap."""

    seq: int
    at: float
    worker: str
    upstream: str
    link: Link
    way: str
    unit: Unit
    role: str = ""
    job: str = ""
    sends: str = ""
    """Id of the job that it enqueues."""
    parent: str = ""
    root: str = ""
    task: str = ""
    text: str = ""
    """What the message of a job says of it: who caused it, the first job of its tree, its task, its arguments."""
    fate: str = "passed"
    code: str = ""
    reply: Sight | None = field(default=None, repr=False)
    """The answer to this request, once it was seen."""
    request: Sight | None = field(default=None, repr=False)
    """The request that this answers."""

    @property
    def changed(self) -> Change:
        """The server's truth where there is one, else the guess from the request."""
        if self.reply is not None:
            return self.reply.unit.change
        return self.unit.change


class Trace:
    """All sights of a lane since the last `begin`."""

    def __init__(self, clock: Clock, job_clock: Clock | None = None) -> None:
        """`clock` tells how long nothing has moved; `job_clock`, where the app lives by another one, when something
        was seen."""
        self._clock = clock
        self._job_clock = job_clock or clock
        self.sights: list[Sight] = []
        self._seq = 0
        self.started = self._job_clock.now()
        """On the clock that the app lives by."""
        self.last_at = clock.now()
        """When the last unit that is no noise was seen."""
        self.notes: list[str] = []

    def begin(self) -> None:
        """Forgets what was seen and starts the clock anew."""
        self.sights = []
        self._seq = 0
        self.started = self._job_clock.now()
        self.last_at = self._clock.now()

    def add(self, worker: str, upstream: str, link: Link, way: str, unit: Unit) -> Sight:
        self._seq += 1
        sight = Sight(self._seq, self.now(), worker, upstream, link, way, unit)
        self.sights.append(sight)
        if unit.note:
            self.note(f"{upstream}: {unit.note}")
        return sight

    def later(self, sight: Sight) -> None:
        """It happens now, and not when it was seen: it was held until then."""
        if sight in self.sights:
            self.sights.remove(sight)
            self.sights.append(sight)
        self._seq += 1
        sight.seq, sight.at = self._seq, self.now()

    def note(self, text: str) -> None:
        """Keeps a sentence for the user, once."""
        if text not in self.notes:
            self.notes.append(text)

    def now(self) -> float:
        """Seconds of the app's own time since the trial began."""
        return self._job_clock.now() - self.started

    def touch(self) -> None:
        """Something that matters moved just now."""
        self.last_at = self._clock.now()

    def quiet_for(self) -> float:
        """Seconds of real time since something that matters moved."""
        return self._clock.now() - self.last_at

    def operations(self, clean: Callable[[str], str], only: Iterable[Sight] | None = None) -> tuple[Operation, ...]:
        """The trace as records; `clean` takes secrets out of every text."""
        return tuple(
            Operation(
                seq=sight.seq,
                at=round(sight.at, 6),
                worker=sight.worker,
                upstream=sight.upstream,
                link=sight.link.number,
                way=sight.way,
                kind=str(sight.unit.kind),
                shape=sight.unit.shape,
                number=sight.unit.number,
                change=str(sight.unit.change),
                summary=clean(sight.unit.summary),
                failed=sight.unit.failed,
                role=sight.role,
                job=sight.job,
                fate=sight.fate,
                code=sight.code,
            )
            for sight in (self.sights if only is None else only)
            if sight.unit.kind is not Kind.PART
        )
