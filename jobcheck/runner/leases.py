"""How a lease ends after a strike: it is rewound, or, with real clocks, it runs out by itself.

A rewind moves one clock: that of the deliveries which the struck worker held, and with it the keys that would not have
outlived the lease. With real clocks nothing is moved: the job system's own recovery gives the job out again when it
finds that the lease is over, and everything else has grown older with it. On a faster clock (`--speed`) that takes
seconds. RabbitMQ has no lease but the connection: it gives up a worker that has been silent for some heartbeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..clock import span
from ..errors import UsageError
from ..explore.causes import Outcome
from ..explore.story import RAN_OUT
from ..faults.strikes import ZOMBIE, kind_of
from ..history.records import Strike
from ..scenario.model import Scenario
from ..systems.contract import Settings
from ..tap.link import Link
from ..tap.sight import OUT, Sight
from ..wire.amqp import AmqpDecoder
from .expiring import expire_keys
from .lane import Lane
from .lapse import LEASED, Lapse, beyond, check, in_a_file, outlived

if TYPE_CHECKING:
    from .queue import QueueMode
    from .queue_strikes import Struck
    from .stage import Stage

REWOUND = "rewound"
REAL = "run out by themselves (real clocks)"
"""What a report says of the leases, in its environment."""
REAL_CLOCKS, YES = "real_clocks", "yes"
"""Among the options of a remembered finding: nothing was rewound when it was found."""


def lapse_of(mode: QueueMode) -> Lapse:
    """What holds for the job under the app's settings, and by what the worker and its broker have agreed on."""
    stage, settings = mode.lane.stage, mode.settings
    lapse = _lapse(settings, stage, stage.deadline)
    if settings.lease:
        return lapse
    links = [link for seat in mode.crew.seats for link in seat.slot.links]
    return replace(lapse, heartbeat=_heartbeat(links))


def _lapse(settings: Settings, stage: Stage, deadline: float) -> Lapse:
    return Lapse(settings.lease, settings.sweep, 0.0, stage.speed, bool(stage.kept), stage.real_clocks, deadline)


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
    if note := await mode.system.rewind(broker, held, mode.settings, struck.crew.producer.agent.call):
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
            struck.note(f"{lapse.name} {RAN_OUT} after {seconds(took)}")
        return
    assert struck.running.strike is not None
    silent = kind_of(struck.running.strike.fault) == ZOMBIE and lapse.heartbeat
    again = [one for one in sights if one.seq > since.seq and one.role == "delivery" and one.worker != name]
    if again and silent:
        silence = seconds(again[0].at - since.at)
        struck.note(f"the broker gave the silent worker up by itself after {silence} ({lapse.name})")


def _first(sights: Iterable[Sight]) -> dict[str, float]:
    """When each job was first in one of these."""
    found: dict[str, float] = {}
    for sight in sights:
        found.setdefault(sight.job, sight.at)
    return found


def seconds(value: float) -> str:
    """`3.4 s`, `3652 s`."""
    return f"{value:.1f} s" if value < 100 else f"{value:.0f} s"


def check_plan(mode: QueueMode, strikes: Sequence[Strike]) -> None:
    """Raises UsageError where a strike of the plan would wait for longer than a job may take."""
    if not mode.at:
        check(strikes, mode.points, lapse_of(mode))


def not_over(mode: QueueMode) -> str:
    """Why the deadline says nothing of a job that is still held: its lease is longer. Empty where that is not so."""
    held: set[str] = set()
    for sight in mode.lane.trace.sights:
        if sight.role == "reserve":
            held.add(sight.job)
        elif sight.role in ("ack", "restore"):
            held.discard(sight.job)
    return beyond(lapse_of(mode)) if held else ""


def check_drain(settings: Settings, stage: Stage, scenario: Scenario) -> None:
    """Raises UsageError where a scenario would be given up before a lease has run out."""
    drain = scenario.timeouts.drain
    lapse = _lapse(settings, stage, drain)
    if lapse.lease and lapse.longest > drain:
        raise UsageError(
            f"{scenario.where.lead('clock')}a {lapse.name} and up to {lapse.sweep:g} s until a worker looks for it are "
            f"{span(lapse.longest)} of real time, and the time to drain is {drain:g} s",
            hint=in_a_file(lapse),
        )


def said(mode: QueueMode, outcomes: Sequence[Outcome]) -> list[str]:
    """What the report says of the leases: what was rewound is not proven."""
    lapse, settings = lapse_of(mode), mode.settings
    if lapse.waits and lapse.longest:
        return [f"leases ran out by themselves: nothing was rewound, and no key expired by hand ({lapse.name})"]
    if lapse.waits:
        return []
    faults = {kind_of(outcome.strike.fault) for outcome in outcomes}
    own = f"the user's own of {settings.lease:g} s was left as it is, so its length is not proven"
    notes = [f"leases were rewound; {own}"] if settings.lease else []
    if mode.timed and faults & (LEASED if settings.lease else {ZOMBIE}):
        faster = "" if lapse.fixed or lapse.speed > 1 else ", with --speed 100 it takes less long"
        notes.append(
            f"clock: not proven: {'; '.join(mode.timed)}, whose clock does not move when {what_moved(settings.lease)}; "
            f"--real-clocks proves it{faster}"
        )
    return notes


def what_moved(lease: float) -> str:
    """What is done in place of the time that would pass."""
    return "a lease is rewound" if lease else "the connection of a paused worker is cut"


def timed(lane: Lane) -> tuple[str, ...]:
    """The messages of this trial that compare something with the clock of a database, a text for each shape."""
    found: dict[str, None] = {}
    for sight in lane.trace.sights:
        clocks = sight.unit.info.get("clock", ())
        if clocks and sight.way == OUT and sight.role != "noise" and sight.worker != "producer":
            what = sight.unit.shape.partition(" ")[2]
            found[f"{sight.upstream} {what} compares something with {' and '.join(clocks)}"] = None
    return tuple(found)


def shorter_than_the_job(mode: QueueMode, jobs: Sequence[str]) -> str:
    """Why a clean run is none: the broker gave its job out again while it ran. Empty where it did not."""
    lane = mode.lane
    mine = [one for one in lane.trace.sights if one.role == "restore" and one.job in jobs and one.worker != "producer"]
    return outlived(mode.settings.lease, lane.stage.speed) if mine else ""
