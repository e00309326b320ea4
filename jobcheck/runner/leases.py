"""How a lease ends after a strike: it is rewound, or, with real clocks, it runs out by itself.

A rewind moves one clock: that of the deliveries which the struck worker held, and with it the keys that would not have
outlived the lease. With real clocks nothing is moved: the job system's own recovery gives the job out again when it
finds that the lease is over, and everything else has grown older with it. On a faster clock (`--speed`) that takes
seconds. RabbitMQ has no lease but the connection: it gives up a worker that has been silent for some heartbeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..clock import span
from ..errors import UsageError
from ..explore.causes import Outcome
from ..explore.search import place_of
from ..faults.strikes import KILL, KILL_PARENT, SURVIVED, ZOMBIE, kind_of
from ..history.records import Point, Strike
from ..tap.link import Link
from ..tap.sight import Sight
from ..wire.amqp import AmqpDecoder
from .expiring import expire_keys

if TYPE_CHECKING:
    from .queue import QueueMode
    from .queue_strikes import Struck

REWOUND = "rewound"
REAL = "run out by themselves (--real-clocks)"
"""What a report says of the leases, in its environment."""
REAL_CLOCKS, YES = "real_clocks", "yes"
"""Among the options of a remembered finding: nothing was rewound when it was found."""
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
    waits: bool = False
    """Real clocks: it is waited for."""

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
        return self.longest if self.waits else 0.0

    @property
    def of_living(self) -> float:
        """The same where the worker lives and goes on with its heartbeats."""
        return self.real if self.lease else 0.0

    @property
    def name(self) -> str:
        return f"lease of {self.lease:g} s" if self.lease else f"heartbeat of {self.heartbeat:g} s"


def lapse_of(mode: QueueMode) -> Lapse:
    """What holds for the job under the app's settings, and by what the worker and its broker have agreed on."""
    stage, settings = mode.lane.stage, mode.settings
    if settings.lease:
        return Lapse(settings.lease, settings.sweep, speed=stage.speed, waits=stage.real_clocks)
    links = [link for seat in mode.crew.seats for link in seat.slot.links]
    return Lapse(heartbeat=_heartbeat(links), speed=stage.speed, waits=stage.real_clocks)


def _heartbeat(links: Iterable[Link]) -> float:
    decoders = [link.decoder for link in links]
    return float(max((one.heartbeat for one in decoders if isinstance(one, AmqpDecoder)), default=0))


async def rewind(struck: Struck, held: Sequence[str]) -> None:
    """The lease of what the struck worker held runs out, with all keys that would not have outlived it. With real
    clocks nothing is done: that is waited for."""
    lane, mode = struck.mode.lane, struck.mode
    if lane.stage.real_clocks:
        return
    broker = lane.addresses[mode.system.broker]
    if note := await mode.system.rewind(broker, held, struck.crew.producer.agent.call):
        struck.note(note)
    if expired := await expire_keys(lane, mode.settings.lease):
        struck.note("expired with the lease: " + ", ".join(expired))


def ran_out(struck: Struck, lapse: Lapse) -> None:
    """Notes how long it took until the job was given out again by itself, in the job's own time."""
    if not lapse.waits:
        return
    sights, since, name = struck.mode.lane.trace.sights, struck.hit, struck.seat.slot.name
    if lapse.lease:
        taken = _first(one for one in sights if one.seq < since.seq and one.worker == name and one.role == "delivery")
        back = _first(one for one in sights if one.seq > since.seq and one.role == "restore")
        took = max((back[job] - taken[job] for job in back if job in taken), default=0.0)
        if took:
            struck.note(f"{lapse.name} ran out by itself after {seconds(took)}")
        return
    assert struck.running.strike is not None
    silent = kind_of(struck.running.strike.fault) == ZOMBIE and lapse.heartbeat
    again = [one for one in sights if one.seq > since.seq and one.role == "delivery" and one.worker != name]
    if again and silent:
        took = seconds(again[0].at - since.at)
        struck.note(f"the broker gave the silent worker up by itself after {took} ({lapse.name})")


def _first(sights: Iterable[Sight]) -> dict[str, float]:
    """When each job was first in one of these."""
    found: dict[str, float] = {}
    for sight in sights:
        found.setdefault(sight.job, sight.at)
    return found


def seconds(value: float) -> str:
    """`3.4 s`, `3652 s`."""
    return f"{value:.1f} s" if value < 100 else f"{value:.0f} s"


# Before anything is struck.


def check_plan(mode: QueueMode, strikes: Sequence[Strike]) -> None:
    """Raises UsageError where a strike of the plan would wait for longer than a job may take."""
    if not mode.at:
        check(strikes, mode.points, lapse_of(mode), mode.lane.stage.deadline)


def waiting(strikes: Sequence[Strike], points: Sequence[Point], lapse: Lapse) -> int:
    """How many of the strikes leave a job with a worker that does not settle it."""
    kinds = (KILL, KILL_PARENT, ZOMBIE) if lapse.lease else (ZOMBIE,)
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
    if not lapse.lease:
        return f"{who} until the broker gives up a silent worker ({lapse.name}), up to {span(lapse.longest)}: {told}"
    fast = f", {span(lapse.lease / lapse.speed)} at speed {lapse.speed:g}" if lapse.speed != 1 else ""
    late = f" (and up to {span(lapse.sweep / lapse.speed)} until a worker looks for it)" if lapse.sweep else ""
    return f"{who} for a real {lapse.name}{fast}{late}: {told}"


def check(strikes: Sequence[Strike], points: Sequence[Point], lapse: Lapse, deadline: float) -> None:
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
    if lapse.longest <= deadline:
        return
    waits = f"for a {lapse.name} to run out" if lapse.lease else f"until RabbitMQ gives up a worker ({lapse.name})"
    late = f" and up to {lapse.sweep:g} s until a worker looks for it" if lapse.sweep else ""
    fast = f" ({span(lapse.longest)} at speed {lapse.speed:g})" if lapse.speed != 1 else ""
    raise UsageError(
        f"--real-clocks: {_strikes(count)} {waits}{late}{fast}, which is longer than the deadline of {deadline:g} s",
        hint=_instead(lapse, deadline),
    )


def _strikes(count: int) -> str:
    return "a strike would wait" if count == 1 else f"{count} strikes would wait"


def _instead(lapse: Lapse, deadline: float) -> str:
    """What to type: a faster clock where there can be one, and a deadline that is long enough."""
    patient = f"--deadline {_time(MORE * lapse.longest)}"
    if not lapse.lease:
        return f"{patient}, or a shorter broker_heartbeat for the tests"
    if lapse.speed >= FAST:
        return patient
    quick = lapse.longest * lapse.speed / FAST
    faster = f"--speed {FAST:g}" + ("" if quick <= deadline else f" --deadline {_time(MORE * quick)}")
    return f"{faster}, or {patient}"


def _time(value: float) -> str:
    """As `--deadline` is written: `45s`, `62m`."""
    return f"{-(-value // 5) * 5:.0f}s" if value <= 90 else f"{-(-value // 60):.0f}m"


# After all.


def said(mode: QueueMode, outcomes: Sequence[Outcome]) -> list[str]:
    """What the report says of the leases: what was rewound is not proven."""
    lapse, settings = lapse_of(mode), mode.settings
    if lapse.waits and lapse.longest:
        return [f"leases ran out by themselves: nothing was rewound, and no key expired by hand ({lapse.name})"]
    if lapse.waits or not settings.lease:
        return []
    return [
        f"leases were rewound; the user's own of {settings.lease:g} s was left as it is, so its length is not proven"
    ]
