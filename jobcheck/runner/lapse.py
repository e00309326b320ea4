"""How long a job stays with a worker that does not settle it: told before anything is struck, by its plan. Pure.

On Redis it is a lease: so many seconds after the delivery, a worker that looks for it may put the job back. RabbitMQ
has no lease but the connection, and gives up a worker that has been silent for some heartbeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..clock import span
from ..errors import UsageError
from ..explore.search import place_of
from ..faults.strikes import KILL, KILL_PARENT, SURVIVED, ZOMBIE, kind_of
from ..history.records import Point, Strike

LEASED = frozenset((KILL, KILL_PARENT, ZOMBIE))
"""Strikes that leave a job with a worker that does not settle it."""
SILENT = 3.0
"""Heartbeats that a worker may miss until RabbitMQ has closed its connection, at most: 177.5 s were measured of 60 s
each, and 4.8 s of 2 s (`delivery-matrix.md`)."""
DUE = 0.5
"""The share of a sweep's interval that passes on average until the sweep after the end of a lease."""
MORE = 1.2
"""How much longer than the longest wait a deadline is that jobcheck proposes."""
FAST = 100.0
"""The speed that it proposes: real work of 50 ms is then 5 s of the job's own time."""


@dataclass(frozen=True, slots=True)
class Lapse:
    """How long a job stays with a worker that does not settle it, when nobody rewinds anything."""

    lease: float = 0.0
    """Seconds of the app's own time; 0: none."""
    sweep: float = 0.0
    """Seconds at most until the system sees that the lease is over."""
    heartbeat: float = 0.0
    """Seconds between two heartbeats, where there is no lease but the connection."""
    speed: float = 1.0
    fixed: bool = False
    """There is no faster clock for this app."""
    waits: bool = False
    """Real clocks: it is waited for."""
    deadline: float = 30.0
    """Seconds of real time that a job may take: nothing that lasts longer is waited for."""

    @property
    def longest(self) -> float:
        """Seconds of real time, whether they are waited for or not."""
        return (self.lease + self.sweep if self.lease else SILENT * self.heartbeat) / self.speed

    @property
    def usual(self) -> float:
        """The same on average."""
        return (self.lease + DUE * self.sweep if self.lease else SILENT * self.heartbeat) / self.speed

    @property
    def real(self) -> float:
        """Seconds of real time that a strike waits at most."""
        return self.longest if self.waits and self.longest <= self.deadline else 0.0

    @property
    def of_living(self) -> float:
        """The same where the worker lives and goes on with its heartbeats."""
        return self.real if self.lease else 0.0

    @property
    def name(self) -> str:
        return f"lease of {self.lease:g} s" if self.lease else f"heartbeat of {self.heartbeat:g} s"


NONE = Lapse()
"""Nothing stays with anybody: a handler without its queue."""


def waiting(strikes: Sequence[Strike], points: Sequence[Point], lapse: Lapse) -> int:
    """How many of the strikes leave a job with a worker that does not settle it."""
    kinds = LEASED if lapse.lease else {ZOMBIE}
    return sum(kind_of(one.fault) in kinds and _is_held(one, points, lapse) for one in strikes)


def _is_held(strike: Strike, points: Sequence[Point], lapse: Lapse) -> bool:
    struck = next((point for point in points if point.id == strike.point), None)
    if struck is None:
        return False
    passed = {point.role for point in points[: place_of(strike, points)] if point.job == struck.job}
    return ("reserve" if lapse.lease else "delivery") in passed and "ack" not in passed


def takes(strikes: Sequence[Strike], points: Sequence[Point], lapse: Lapse) -> float:
    """Seconds of real time that these strikes wait in all."""
    return waiting(strikes, points, lapse) * lapse.usual if lapse.waits else 0.0


def says(strikes: Sequence[Strike], points: Sequence[Point], lapse: Lapse, told: str) -> str:
    """A sentence for the plan; `told` is what they take in all. Empty where nothing is waited for."""
    count = waiting(strikes, points, lapse)
    if not lapse.waits or not count:
        return ""
    who = f"each of {count} strikes waits" if count > 1 else "1 strike waits"
    fast = f" at speed {lapse.speed:g}" if lapse.speed != 1 else ""
    if not lapse.lease:
        most = f"{span(lapse.longest)}{fast}"
        return f"{who} until the broker gives up a silent worker ({lapse.name}), up to {most}: {told}"
    fast = f", {span(lapse.lease / lapse.speed)}{fast}" if fast else ""
    late = f" (and up to {span(lapse.sweep / lapse.speed)} until a worker looks for it)" if lapse.sweep else ""
    return f"{who} for a real {lapse.name}{fast}{late}: {told}"


def check(strikes: Sequence[Strike], points: Sequence[Point], lapse: Lapse) -> None:
    """Raises UsageError where a strike would wait for longer than a job may take, with what to type instead."""
    if not lapse.waits:
        return
    brokers = {point.id for point in points if point.broker}
    left = sum(kind_of(one.fault) in SURVIVED and one.point in brokers for one in strikes) if lapse.lease else 0
    count = waiting(strikes, points, lapse) + left
    if not count:
        return
    if not lapse.longest:
        raise UsageError(
            f"--real-clocks: {_strikes(count)} for ever: without heartbeats RabbitMQ never gives up a silent worker",
            hint="set broker_heartbeat (Celery's default is 120), or leave --real-clocks out",
        )
    if lapse.longest <= lapse.deadline:
        return
    waits = f"for a {lapse.name} to run out" if lapse.lease else f"until RabbitMQ gives up a worker ({lapse.name})"
    late = f" and up to {lapse.sweep:g} s until a worker looks for it" if lapse.sweep else ""
    fast = f" ({span(lapse.longest)} at speed {lapse.speed:g})" if lapse.speed != 1 else ""
    raise UsageError(
        f"--real-clocks: {_strikes(count)} {waits}{late}{fast}, which is longer than the deadline of "
        f"{lapse.deadline:g} s",
        hint=_instead(lapse),
    )


def _strikes(count: int) -> str:
    return "a strike would wait" if count == 1 else f"{count} strikes would wait"


def _instead(lapse: Lapse) -> str:
    """What to type: a faster clock where there can be one, and a deadline that is long enough."""
    patient = f"--deadline {_time(MORE * lapse.longest)}"
    if lapse.speed >= FAST or lapse.fixed:
        return patient
    quick = lapse.longest * lapse.speed / FAST
    faster = f"--speed {FAST:g}" + ("" if quick <= lapse.deadline else f" --deadline {_time(MORE * quick)}")
    return f"{faster}, or {patient}"


def beyond(lapse: Lapse) -> str:
    """Why nobody knows how a job ends that a worker holds still, where its lease is too long to be waited for."""
    if not lapse.waits or lapse.longest <= lapse.deadline:
        return ""
    return (
        f"its {lapse.name} was not over after the deadline of {lapse.deadline:g} s, and nothing was rewound: "
        f"{_instead(lapse)}"
    )


def in_a_file(lapse: Lapse) -> str:
    """The same for a scenario file."""
    patient = f"timeouts: {{drain: {_time(MORE * lapse.longest)}}}"
    if lapse.speed >= FAST or lapse.fixed:
        return patient
    quick = lapse.longest * lapse.speed / FAST
    more = "" if quick <= lapse.deadline else f" and timeouts: {{drain: {_time(MORE * quick)}}}"
    return f"clock: {{real: true, speed: {FAST:g}}}{more}, or {patient}"


def _time(value: float) -> str:
    """As `--deadline` is written: `45s`, `62m`."""
    return f"{-(-value // 5) * 5:.0f}s" if value <= 90 else f"{-(-value // 60):.0f}m"


def outlived(lease: float, speed: float) -> str:
    """What is wrong where a job takes longer than its lease."""
    slower = ", or take a smaller speed" if speed != 1 else ""
    return (
        f"the job was put back into its queue while a healthy worker ran it: its lease of {lease:g} s was over; make "
        f"the visibility timeout longer than the longest job{slower}"
    )
