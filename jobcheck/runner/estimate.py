"""How long an exploration will take, said before it starts: from what its own recordings took."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..clock import span
from ..faults.strikes import KILL_CHILD, RACE, SURVIVED, TERM, TERM_GROUP, kind_of
from ..history.records import Strike
from ..systems.contract import Settings
from . import lapse, leases
from .boots import ZYGOTE
from .queue import QueueMode
from .trial import Mode

RUNS = {RACE: 2.5}
"""Runs of the job that a strike stands for; two for all others: until the strike, and once more after it. The two of a
race take turns, which takes a little longer."""

WAITS = {TERM: 1.5, TERM_GROUP: 1.0, KILL_CHILD: 5.0}
"""Seconds of waiting that a strike on a worker brings beside its runs: until it has ended, or until its main process
has seen the end of its child. Measured with Celery 5.7, which looks after its children every 5 s."""
RECONNECTS = 4.0
"""Seconds until a worker whose connection to the broker broke fetches again. Celery 5.7 waits 2 s before its first
attempt; 3 to 5 s were measured."""


def takes_of(mode: Mode, planned: Sequence[Strike], recorded: float, booted: float) -> str:
    """`about 40 s`, and what makes it long."""
    queue = mode if isinstance(mode, QueueMode) else None
    broker = queue.system.broker if queue else ""
    on_broker = frozenset(point.id for point in mode.points if point.upstream == broker)
    stage = mode.lane.stage
    speed = stage.pace.speed if stage.pace is not None else 1.0
    settings = queue.settings if queue else None
    mine = [strike for strike in planned if strike.point not in on_broker]
    least = estimate(planned, recorded, booted, queue.boot if queue else ZYGOTE, on_broker)
    stays = leases.lapse_of(queue) if queue and not queue.at else lapse.NONE
    lasts = lapse.takes(planned, mode.points, stays)
    first, every = waited(mine, settings, stage.deadline, speed)
    least += lasts
    text = told(least + first)
    if every > 2 * first and told(least + every) != text:
        text += f", and {told(least + every).removeprefix('about ')} where all retries are needed"
    further = (
        lapse.says(planned, mode.points, stays, told(lasts)),
        waits(mine, settings, stage.deadline, speed, kept=bool(stage.kept)),
    )
    return "; ".join(filter(None, (text, *further)))


def estimate(
    strikes: Sequence[Strike], recorded: float, booted: float, boot: str, on_broker: Collection[str] = ()
) -> float:
    """Seconds. `recorded`: what one clean run took; `booted`: what the workers took to boot at the beginning;
    `on_broker`: the ids of the points that are messages to the broker.

    A worker that is ended has to be replaced. A zygote's fork costs next to nothing; a spare one that is booted
    meanwhile is not ready sooner than a job of some tenths of a second is over.
    """
    total = 0.0
    for strike in strikes:
        kind = kind_of(strike.fault)
        total += RUNS.get(kind, 2.0) * recorded + WAITS.get(kind, 0.0)
        if kind in SURVIVED and strike.point in on_broker:
            total += RECONNECTS
        if kind not in SURVIVED and boot != ZYGOTE:
            total += booted
    return total


def waited(
    strikes: Sequence[Strike], settings: Settings | None, deadline: float, speed: float = 1.0
) -> tuple[float, float]:
    """Seconds of real time that the app's own retries add: when each of these strikes leads to one, and to all."""
    if settings is None or not settings.retry_says:
        return 0.0, 0.0
    many = sum(kind_of(strike.fault) in SURVIVED for strike in strikes)
    first = many * min(settings.retry_delay / speed, deadline)
    return first, max(first, many * min(settings.retry_total / speed, deadline))


def waits(
    strikes: Sequence[Strike],
    settings: Settings | None,
    deadline: float,
    speed: float = 1.0,
    *,
    kept: bool = False,
) -> str:
    """A sentence on retries of the app that make strikes long; empty when there is nothing to say. `kept`: a faster
    clock was asked for, and cannot be had."""
    if settings is None or not settings.retry_says or settings.retry_delay < 1:
        return ""
    many = sum(kind_of(strike.fault) in SURVIVED for strike in strikes)
    if not many:
        return ""
    text = f"{settings.retry_says}: up to {many} of the strikes make it retry"
    if speed != 1:
        text += f", each after {span(settings.retry_delay / speed)} of real time at speed {speed:g}"
    if settings.retry_delay / speed < deadline:
        return text
    delay = settings.retry_delay
    if kept:
        return f"{text}, and are unknown then: the clock could not be sped up, and a deadline is {deadline:g} s"
    return (
        f"{text}, and are hung after {deadline:g} s (--speed {quick(delay, deadline):g} makes them short; a deadline "
        f"above {delay / speed:g}s waits for them)"
    )


def quick(seconds: float, deadline: float) -> float:
    """A round speed at which so many seconds are over long before the deadline: 10, 100 or 1000."""
    return next((speed for speed in (10.0, 100.0) if seconds * 15 / speed < deadline), 1000.0)


def told(seconds: float) -> str:
    """`about 40 s`, `about 4 min`, `about 2.5 h`."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
