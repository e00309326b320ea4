"""What a Celery worker says about one job, read from its output: how it ended, and where in the code."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass

_DROPPED = (
    (re.compile(r"Received unregistered task of type '(?P<what>[^']+)'"), "unregistered task"),
    (re.compile(r"Can't decode message body: (?P<what>.*)"), "cannot decode its body"),
    (re.compile(r"Received invalid task message: (?P<what>.*)"), "invalid message"),
    (re.compile(r"Received and deleted unknown message(?P<what>)"), "unknown message"),
)
_ENDED = (
    r"Task (?P<task>\S+?)\[{job}\] "
    r"(?:(?P<succeeded>succeeded) |(?P<how>raised unexpected|raised expected|INTERNAL ERROR): (?P<failed>.*)"
    r"|retry: (?P<retry>.*)|reject requeue=\w+: (?P<rejected>.*)|(?P<other>rejected|ignored|Reject\(.*))"
)
_RETRY = re.compile(r"^Retry (?:in \S+?|at .*?)(?:: (?P<error>[A-Za-z_][\w.]*\(.*))?$")
_REPR = re.compile(r"^(?P<name>[A-Za-z_][\w.]*)\((?P<inside>.*)\)$", re.DOTALL)
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)$')
_LAST = re.compile(r"^(?P<name>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")


class End(enum.StrEnum):
    """How a worker says that it was done with a job."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETRYING = "retrying"
    """It failed, and will be tried again later."""
    REJECTED = "rejected"
    """It failed, and neither comes again nor leaves a failure behind: what Celery does when a retry of a call that does
    not fit its function cannot be enqueued."""
    DROPPED = "dropped"
    """The message was thrown away and the job never ran."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a traceback."""

    file: str
    line: int
    function: str

    @property
    def of_celery(self) -> bool:
        """Whether it is Celery's own code, or that of the libraries under it."""
        return any(f"/{name}/" in self.file for name in ("celery", "kombu", "billiard"))


@dataclass(frozen=True, slots=True)
class Said:
    """The worker's word on one job."""

    end: End
    error: str = ""
    """The exception's class, without its module: `TypeError`; or why the message was dropped."""
    message: str = ""
    frames: tuple[Frame, ...] = ()
    """Outermost first; empty where no traceback was written (a retry has none)."""

    @property
    def text(self) -> str:
        """`TypeError: charge_card() missing ...`."""
        return f"{self.error}: {self.message}" if self.message else self.error

    @property
    def line(self) -> str:
        """The innermost line of the traceback outside of Celery: `jobs.py:31 charge_card`; empty when there is none."""
        frame = next((one for one in reversed(self.frames) if not one.of_celery), None)
        return f"{frame.file.rpartition('/')[2]}:{frame.line} {frame.function}" if frame is not None else ""


def read(lines: Sequence[str], job: str, task: str, *, complete: bool = False) -> Said | None:
    """What the output says about this job; None while it says nothing, or is in the middle of saying it.

    `lines` are those since the job was put into the queue, when no other job was there. With `complete` nothing more
    is to come: what is there has to do.
    """
    ended = re.compile(_ENDED.format(job=re.escape(job)))
    for number, line in enumerate(lines):
        if found := ended.search(line):
            return _ended(found, lines[number + 1 :], complete)
        if dropped := _dropped(line, task):
            return dropped
    return None


def _dropped(line: str, task: str) -> Said | None:
    for pattern, why in _DROPPED:
        if found := pattern.search(line):
            if why == "unregistered task" and found["what"] != task:
                return None
            return Said(End.DROPPED, why, found["what"].partition(" [type:")[0].strip())
    return None


def _ended(found: re.Match[str], following: Sequence[str], complete: bool) -> Said | None:
    if found["succeeded"]:
        return Said(End.SUCCEEDED)
    if found["other"]:
        return Said(End.FAILED, found["other"])
    if found["retry"] is not None:
        told = _RETRY.match(found["retry"])
        error, message = _from_repr((told["error"] if told else "") or found["retry"])
        return Said(End.RETRYING, error, message)
    # A log format of the user's may keep the traceback elsewhere; one that is still being written is waited for.
    complete = complete or found["how"] == "raised expected"  # it is written without one
    traced = bool(following) and following[0].startswith("Traceback ")
    if found["rejected"] is not None:
        # The line has the message alone, and the first of its tracebacks ends with the error itself.
        end, message, lines = End.REJECTED, found["rejected"], _first(following) if traced else []
        error = lines[-1].partition(":")[0].rpartition(".")[2] if lines else ""
    else:
        end, (error, message), lines = End.FAILED, _from_repr(found["failed"]), following
    frames, last = _traceback(lines, error) if traced and error else ((), None)
    if not complete and (not following or (traced and last is None)):
        return None
    return Said(end, error, last or message, frames)


def _first(lines: Sequence[str]) -> Sequence[str]:
    """The first traceback, up to the line with the error; empty while that has not come."""
    for number, line in enumerate(lines[1:], start=2):
        if line and not line.startswith(" "):
            return lines[:number]
    return []


def _traceback(lines: Sequence[str], error: str) -> tuple[tuple[Frame, ...], str | None]:
    """The frames of the last traceback, and the message after it; None when the end has not come yet."""
    frames: list[Frame] = []
    for line in lines:
        if line.startswith("Traceback "):
            frames = []  # what follows "During handling of the above exception" is the one that counts
        elif found := _FRAME.match(line):
            frames.append(Frame(found["file"], int(found["line"]), found["function"]))
        elif frames and (last := _LAST.match(line)) and last["name"].rpartition(".")[2] == error:
            return tuple(frames), last["message"] or ""
    return tuple(frames), None


def _from_repr(text: str) -> tuple[str, str]:
    """Class and message of an exception's `repr`: `KeyError('id')` gives `KeyError` and `'id'`."""
    found = _REPR.match(text.strip())
    if not found:
        name, _, message = text.strip().partition(": ")
        return name.rpartition(".")[2], message
    inside = found["inside"].strip()
    name = found["name"].rpartition(".")[2]
    if name != "KeyError" and len(inside) >= 2 and inside[0] == inside[-1] and inside[0] in "'\"":
        inside = inside[1:-1]
    return name, inside
