"""A faster clock for an app: all that its due times depend on goes along, or all of it stays in real time.

What cannot be sped up is found before anything of the app is started, and said; the run goes on in real time then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ..clock import left_of, span
from ..errors import ServiceError, UsageError
from ..events import Warned
from ..faults.strikes import FAMILIES, RACE
from ..services import find, rabbit_clock
from ..services.spec import RabbitMQ
from ..systems.contract import Settings
from ..workers.linked import stays_real
from .rig import Rig
from .stage import Stage, programs_of

ROOM = 2
"""Times its work that a job must have: a strike makes it begin again."""
SPEED = "speed"
"""Among the options of a remembered finding: the clock under which it was found."""


def check(speed: float, families: Collection[str]) -> None:
    """Raises UsageError for races by name; whoever asks for all strikes asks for those that there are."""
    if speed != 1 and RACE in families and not set(families) >= set(FAMILIES):
        raise UsageError(
            f"--speed {speed:g} and races do not go together: in a race a worker is held while the other one goes on, "
            "and minutes of its own clock would go by, so that its time-outs fire",
            hint="leave race out of --faults, or explore races in real time, without --speed",
        )


def kept_back(rig: Rig) -> Iterator[str]:
    """A sentence for each thing of the rig that cannot go faster with the rest, as far as its words and files tell."""
    due = rig.system.due_times
    if due.real:
        yield f"{rig.system.name} cannot be sped up: {due.real}"
    for name, spec in rig.upstreams.items():
        if getattr(spec, "url", None):
            yield f"{name!r} is given by its url and lives in real time"
    for name, role in rig.others.items():
        if role.words and (why := stays_real(role.words, programs_of(rig), rig.folder)):
            yield f"the process {name!r} {why}"


async def agree(rigs: Iterable[Rig], interpreters: Iterable[str], stage: Stage) -> None:
    """Asks all that is to live faster whether it follows, and puts the whole stage back to real time where one part
    does not. `stage.told` has what a report says of it. To be called before anything of the app is started.

    `interpreters` are those of the app beside the rigs' own.
    """
    if stage.asked == 1:
        return
    rigs = list(rigs)
    why = [*filter(None, [stage.kept]), *dict.fromkeys(text for rig in rigs for text in kept_back(rig))]
    notes: list[str] = []
    if not why:
        why, notes = await _asked([*(rig.system.interpreter for rig in rigs), *interpreters], rigs, stage)
    if why:
        stage.in_real_time("; ".join(why))
        said = f"clock: {stage.clock_words}; all clocks go faster, or none"
        stage.told = (said, _owners(rigs))
        stage.bus.emit(Warned(said))
        return
    goes = f"clock: workers, producers, brokers and databases live {stage.speed:g} times as fast (libfaketime), and "
    stage.told = (f"{goes}all times here are theirs; {_owners(rigs)}", *notes)


async def _asked(interpreters: Iterable[str], rigs: Iterable[Rig], stage: Stage) -> tuple[list[str], list[str]]:
    """Why some do not follow, and what of those that do is to be known."""
    why, notes = [], []
    for python in dict.fromkeys(interpreters):
        try:
            notes += await stage.check_pace(python)
        except ServiceError as error:
            why.append(error.message)
    specs = [spec for rig in rigs for spec in rig.upstreams.values()]
    node = any(isinstance(spec, RabbitMQ) for spec in specs) and find.rabbitmq_bin() is not None
    if node and stage.pace is not None:
        refused = await rabbit_clock.refusal(stage.pace, stage.supervisor, stage.folder)
        why += [f"RabbitMQ does not follow: {refused}"] if refused else []
    return why, notes


def _owners(rigs: Iterable[Rig]) -> str:
    return "; ".join(dict.fromkeys(f"due times on {rig.system.name}: {rig.system.due_times.owner}" for rig in rigs))


def own_time(stage: Stage, settings: Settings | None, work: float) -> list[str]:
    """What `work` seconds of real time are on the job's own clock, beside the time-outs that are known."""
    if stage.pace is None:
        return []
    limits, speed = settings.limits if settings is not None else {}, stage.speed
    tight = {name: text for name, limit in limits.items() if (text := too_tight(name, limit, work, speed))}
    room = ", ".join(f"{name} {limit:g} s" for name, limit in limits.items() if name not in tight)
    said = f"clock: {work:.3g} s of work x {speed:g} = {work * speed:.3g} s of the job's own time"
    said += f", within {room}" if room else ""
    return [f"{said}; shorter time-outs that nobody told of fire, such as those of HTTP clients", *tight.values()]


def too_tight(name: str, limit: float, work: float, speed: float) -> str:
    """A limit that the clock alone brings on: a struck job does its work twice. Empty where there is room."""
    own = ROOM * work * speed
    if own <= limit:
        return ""
    most = int(limit / (ROOM * work))
    at_most = f"at most speed {most}" if most >= 1 else "it leaves no room in real time either"
    return (
        f"clock: {name} is {limit:g} s, and {ROOM} x {work:.3g} s of work x {speed:g} = {own:.3g} s: it may fire by "
        f"the clock alone; {at_most}"
    )


def out_of_reach(stage: Stage, unsettled: str, dues: Iterable[str]) -> str:
    """Why nobody knows how a job ends that had not ended at the deadline: it was to wait on a faster clock, and there
    was none. Empty where none was asked for. `dues` are ISO 8601 times at which jobs are due that workers hold.
    """
    if not stage.kept or not unsettled:
        return ""
    left = max((left_of(due, stage.job_clock.wall()) for due in dues), default=0.0)
    what = f"its retry is due in another {span(left)}" if left > 0 else f"it had not ended ({unsettled})"
    return f"{what}, and the clock could not be sped up: {stage.kept}"
