"""Is it the version, or the data? What a worker said about a replayed payload, judged.

Only what a version can be blamed for is a fault: a name that is not registered, a call that does not fit the
function, a body that cannot be decoded, and an error while the payload is read. A job that fails later, by what it
found in a database, has at least understood its payload; whether its data or the version made it fail is not known.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from .words import End, Said

_SIGNATURE = re.compile(
    r"^(?P<function>[\w.<>]+)\(\) (?:missing \d+ required |takes .+ arguments? but .+ given|takes no "
    r"|got an unexpected keyword argument|got multiple values for |got some positional-only arguments)"
)
_READING = frozenset({"KeyError", "AttributeError", "IndexError", "TypeError", "ValueError"})
_READING_ENDS = ("ValidationError", "DecodeError", "UnpicklingError", "DeserializationError", "SchemaError")


class Verdict(enum.StrEnum):
    """How one payload fared with one version."""

    OK = "ok"
    BROKEN = "broken"
    """The job ran and could not take its payload."""
    LOST = "lost"
    """The worker threw the message away."""
    UNKNOWN = "unknown"
    """It neither succeeded nor failed by its version."""


WORST_FIRST = (Verdict.LOST, Verdict.BROKEN, Verdict.UNKNOWN, Verdict.OK)


class Fault(enum.StrEnum):
    """What kind of fault it is; advice goes by it."""

    NONE = ""
    UNREGISTERED = "unregistered task"
    UNDECODABLE = "cannot be decoded"
    SIGNATURE = "does not fit the function"
    READING = "failed while reading its payload"
    DATA = "ran, and failed by its own data"
    TOO_LONG = "did not end in time"
    UNFIT = "cannot be sent again"
    UNSENT = "was not sent"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the taps saw of the job between its delivery and its end, the broker's own messages left out."""

    asked: int = 0
    """Messages to any upstream, reads included."""
    changed: int = 0
    """Messages that changed state: points."""
    live: bool = False
    """The ids in the arguments name rows that were made for this very job."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict with its reason."""

    verdict: Verdict
    fault: Fault = Fault.NONE
    reason: str = ""
    line: str = ""
    """Where in the code: `jobs.py:31 charge_card`."""


def judge(said: Said, function: str, evidence: Evidence) -> Judgement:
    """The verdict on one replay; `function` is the last part of the name of the task's function."""
    if said.end is End.SUCCEEDED:
        return Judgement(Verdict.OK)
    if said.end is End.DROPPED:
        fault = Fault.UNREGISTERED if said.error == "unregistered task" else Fault.UNDECODABLE
        reason = f"the worker dropped it: {said.text}"
        return Judgement(Verdict.LOST, fault, reason)
    if is_signature(said, function):
        dropped = "; its retry was rejected, so it left no failure behind" if said.end is End.REJECTED else ""
        return Judgement(Verdict.BROKEN, Fault.SIGNATURE, said.text + dropped, said.line)
    if not _is_reading(said.error) or evidence.changed:
        return Judgement(Verdict.UNKNOWN, Fault.DATA, f"{Fault.DATA}: {said.text}", said.line)
    if evidence.asked and not evidence.live:
        reason = f"{said.text}, after it had read from an upstream: its rows may be missing"
        return Judgement(Verdict.UNKNOWN, Fault.DATA, reason, said.line)
    return Judgement(Verdict.BROKEN, Fault.READING, said.text, said.line)


def is_signature(said: Said, function: str) -> bool:
    """Whether the call itself failed: the function was never entered."""
    if said.error != "TypeError" or not (found := _SIGNATURE.match(said.message)):
        return False
    if found["function"].rpartition(".")[2] == function:
        return True
    return bool(said.frames) and said.frames[-1].of_celery


def _is_reading(error: str) -> bool:
    return error in _READING or error.endswith(_READING_ENDS)


def with_control(judgement: Judgement, said: Said, control: Said) -> Judgement:
    """The judgement after the same payload ran on its own version: what fails there too is not this version's doing."""
    if (
        judgement.fault is Fault.READING
        and control.end in (End.FAILED, End.RETRYING, End.REJECTED)
        and control.error == said.error
    ):
        reason = f"{Fault.DATA}, on its own version too: {said.text}"
        return Judgement(Verdict.UNKNOWN, Fault.DATA, reason, judgement.line)
    if judgement.fault is Fault.DATA and control.end is End.SUCCEEDED:
        return Judgement(judgement.verdict, judgement.fault, f"{judgement.reason}; on its own version it succeeded")
    return judgement
