"""What is told of a race: its story with the turns of both deliveries, its title, why it matters, what would mend it.

Pure text from evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..history.records import Operation, TrialRecord, Verdict
from ..history.report import StoryLine
from .advice import Evidence, advice
from .causes import Cause
from .points import PRODUCER
from .races import Schedule, Step
from .story import line_of, queued, shown, with_effects


@dataclass(frozen=True, slots=True)
class Change:
    """What jobcheck did: it delivered the job twice, or the turn went from one delivery to the other."""

    at: float
    """Seconds of the trial; of a turn: when its first message was passed on."""
    text: str
    held: bool = False
    """The other one was held although it could have gone on."""


def race_story(trial: TrialRecord, sides: Mapping[str, str], changes: Sequence[Change]) -> tuple[StoryLine, ...]:
    """The messages of A and B in the order in which they were carried out. `sides`: who each worker is."""
    names = {worker: side for side, worker in sides.items()}
    lines = [
        replace(line_of(op), lane=names.get(op.worker, op.worker))
        for op in sorted(trial.operations, key=lambda op: op.at)
        if shown(op) and _told(op, names, changes[0].at if changes else 0.0)
    ]
    for change in changes:
        at = round(change.at, 6)  # as operations are
        place = next((number for number, line in enumerate(lines) if line.at >= at), len(lines))
        kind = "strike" if change.held else "recovery"
        lines.insert(place, StoryLine("jobcheck", change.text, kind=kind, at=at))
    return tuple(with_effects(lines, trial.effects))


def _told(op: Operation, names: Mapping[str, str], doubled: float) -> bool:
    """The copy of the message has a line of its own."""
    if queued(op):
        return False
    return op.worker in names or (op.worker == PRODUCER and op.role == "enqueue" and op.at < doubled)


def occasion(schedule: Schedule) -> str:
    """Goes on with a title: `payments POST /charges happens again` ..."""
    return "when two workers have the job at once" if schedule.switches else "when the job is delivered twice"


def where(schedule: Schedule) -> str:
    """Who was held before what."""
    if not schedule.switches:
        return "A runs to its end, then B"
    return ", then ".join(f"{one.who} is held before {one.before.name}" for one in schedule.switches)


def title(cause: Cause, schedule: Schedule) -> str:
    """One sentence."""
    what = " and ".join(cause.effects) or "the job"
    many = len(cause.effects) > 1
    verbs = {
        Verdict.DUPLICATED: "happen again" if many else "happens again",
        Verdict.LOST: "are lost" if many else "is lost",
    }
    verb = verbs.get(cause.verdict, f"{'are' if many else 'is'} {cause.verdict}")
    return f"{what} {verb} {occasion(schedule)}"


def why(cause: Cause, schedule: Schedule) -> str:
    """One sentence: what it costs."""
    effect = " and ".join(cause.effects) or "the job"
    if not schedule.switches:
        return f"every queue delivers a job twice now and then, and then it runs twice: {effect} is {cause.verdict}"
    return (
        "a lease that runs out, a producer that sends again or a worker that is slow gives one job to two workers; "
        f"in this order of their messages {effect} is {cause.verdict}"
    )


def race_advice(cause: Cause, schedule: Schedule, steps: Sequence[Step], evidence: Evidence) -> str:
    """One or two sentences: what would mend it."""
    if not schedule.switches:
        return advice(cause, (), evidence)
    looked = _looked(schedule, steps)
    if not looked:
        return (
            "let one delivery win before it acts: insert a row with a unique key of the business event and go on only "
            "when it was inserted, or lock the row of the event first"
        )
    return (
        f"A acts on what it saw at {looked}, and B has changed that meanwhile: look and act in one step. Insert the "
        "marker first (unique key, ON CONFLICT DO NOTHING) and go on only when a row was inserted, or lock the row "
        "(SELECT ... FOR UPDATE) before you look"
    )


def _looked(schedule: Schedule, steps: Sequence[Step]) -> str:
    """The last look of the one that was held, before it was held."""
    switch = schedule.switches[0]
    before = []
    for step in steps:
        if step.who != switch.who:
            break
        before.append(step)
    looks = [step.message.name for step in before if not step.changes]
    return looks[-1] if looks else ""
