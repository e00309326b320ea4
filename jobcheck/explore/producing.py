"""What is told of a producer: its story up to what was left behind, why it matters, what would mend it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..checks.producers import is_row
from ..history.records import TrialRecord, Verdict
from ..history.report import StoryLine
from .causes import Cause
from .points import PRODUCER
from .story import line_of, queued, shown, strike_line, with_effects

_OF_WORKERS = (" takes over", "a new worker is there, and the queue is empty", "the job was not handed out again")
OUTBOX = (
    "write the wish to enqueue into an outbox table, in the same transaction as the row, and let a relay that runs "
    "again and again enqueue it (a job may then come twice, which a right job bears)"
)


def producer_story(trial: TrialRecord) -> tuple[StoryLine, ...]:
    """The messages up to the strike, what ran afterwards, and what is left."""
    lines: list[StoryLine] = []
    struck = told = False
    for op in trial.operations:
        if struck and not told and op.worker == PRODUCER:
            lines += [StoryLine("jobcheck", note, kind="recovery", at=op.at) for note in trial.notes]
            told = True
        if not shown(op) or queued(op) or (op.shape.startswith("redis ") and op.change == "no"):
            continue  # kombu counts what waits in its queues before each message
        lines.append(line_of(op))
        if op.fate == "struck":
            strike = strike_line(trial, op)
            lines.append(replace(strike, text=of_a_producer(strike.text)))
            struck = True
    if not told:
        lines += [StoryLine("jobcheck", note, kind="recovery", at=trial.seconds) for note in trial.notes]
    effects = [effect for effect in trial.effects if effect.applied]
    left = ", ".join(effect.name for effect in effects) or "nothing"
    end = StoryLine("jobcheck", f"what is left: {left}", kind="note", at=trial.seconds)
    others = [effect for effect in trial.effects if not is_row(effect)]  # its commit is a line already
    return (*with_effects(lines, others), end)


def of_a_producer(text: str) -> str:
    """What is said of workers, said of a producer."""
    return text.replace("the whole worker", "the producer").replace("the worker", "the producer")


def producer_title(cause: Cause, occasion: str) -> str:
    """One sentence; `occasion` is the strike's own: `when the worker dies after db COMMIT`."""
    what = " and ".join(cause.effects) or "the job"
    many = len(cause.effects) > 1
    when = of_a_producer(occasion)
    match cause.verdict:
        case Verdict.LOST:
            return f"{what} {'are' if many else 'is'} never enqueued {when}, and the row is there"
        case Verdict.UNEXPECTED:
            return f"{what} {'are' if many else 'is'} enqueued without a row {when}"
        case Verdict.DUPLICATED:
            return f"{what} {'are' if many else 'is'} enqueued twice {when}"
        case other:
            return f"{what} {'are' if many else 'is'} {other} {when}"


def producer_why(cause: Cause) -> str:
    """One sentence: what it costs."""
    match cause.verdict:
        case Verdict.LOST:
            return "the row stays as it is for good: no worker ever hears of it, and no log line says so"
        case Verdict.UNEXPECTED:
            return (
                "a worker is given a job for a row that does not exist; the same happens without a crash whenever the "
                "worker is faster than the commit"
            )
        case Verdict.DUPLICATED:
            return "the same work is done twice, unless the job itself stops the second one"
        case _:
            return "what is left is neither nothing nor the whole"


def producer_advice(cause: Cause) -> str:
    """One or two sentences: what would mend it."""
    match cause.verdict:
        case Verdict.LOST:
            return f"{OUTBOX}; or keep the queue in the same database"
        case Verdict.UNEXPECTED:
            return (
                f"enqueue after the commit (Django: transaction.on_commit), and so that no job is lost then: {OUTBOX}"
            )
        case Verdict.DUPLICATED:
            return "no broker can exclude a second one: let the job bear it, and say at_least_once"
        case _:
            return "put what belongs together into one transaction"


def role_story(lines: Sequence[StoryLine], role: str) -> tuple[StoryLine, ...]:
    """The story of a strike at another process of the app: the workers live, so nobody takes over from them."""
    kept = [line for line in lines if not (line.kind in ("recovery", "note") and line.text.endswith(_OF_WORKERS))]
    return tuple(replace(line, text=said_of(role, line.text)) for line in kept)


def said_of(role: str, text: str) -> str:
    """What is said of workers, said of another process of the app."""
    return text.replace("the whole worker", role).replace("the worker", role)


def role_advice(cause: Cause, role: str) -> str:
    """What would mend a relay; empty where that is not about it."""
    match cause.verdict:
        case Verdict.LOST:
            return (
                f"{role} lets go of the wish before the job is on the broker: enqueue first, and only then delete or "
                "mark it (a job may then come twice, which a right job bears)"
            )
        case Verdict.DUPLICATED:
            return (
                f"{role} cannot exclude a second push, wherever it is killed: let the job bear it, by a marker or an "
                "idempotency key that comes from the business event"
            )
        case _:
            return ""
