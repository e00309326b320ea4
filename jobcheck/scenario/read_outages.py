"""How an upstream is out of order: the fields of an outage beside its times."""

from __future__ import annotations

import re
from typing import cast

from ..errors import UsageError
from ..faults.outages import ANSWERS, CUT, EACH, GARBAGE, HANG, LOST, REFUSED, SLOW, Answering, Beyond, Capacity, Reply
from ..faults.routes import checked
from . import units
from .nodes import Fields, Problem, Value, unknown

OUTAGE_FIELDS = (
    *("route", "status", "answer", "retry_after", "slow", "content_type", "counts", "first"),
    *("capacity", "queue", "beyond"),
)
NOT_WITH: dict[Answering, tuple[str, ...]] = {
    HANG: ("status", "retry_after", "slow", "content_type"),
    CUT: ("status", "retry_after", "content_type"),
    LOST: ("status", "retry_after", "content_type", "counts"),
    REFUSED: ("route", "status", "retry_after", "slow", "content_type", "counts", "first"),
    GARBAGE: (),
}
"""What makes no sense beside an answer, as it is never seen."""
OVERLOADED: Beyond = 503
FIRST = "how many, such as 2, or '2 of each case', or '2 of each key'"
_FIRST = re.compile(r"(\d+)(?:\s+(?:of\s+each|per|of\s+every)\s+(\w+))?")


def read_reply(fields: Fields) -> Reply:
    """What these fields say. Raises Problem where two of them contradict each other."""
    if "capacity" in fields.values:
        return _narrow(fields)
    for name in ("queue", "beyond"):
        if name in fields.values:
            raise Problem(fields.lines[name], f"{name!r} belongs to a 'capacity', and there is none")
    answer = cast(Answering, fields.get("answer", lambda value: value.one_of(tuple(ANSWERS), "answer"), ""))
    for name in NOT_WITH.get(answer, ()):
        if name in fields.values:
            does = ANSWERS[answer]
            raise Problem(fields.lines[name], f"{name!r} does not go with 'answer: {answer}', which {does}")
    first, each = fields.get("first", read_first, (0, ""))
    reply = Reply(
        status=fields.get("status", _status, None),
        answer=answer,
        route=fields.get("route", _route, ""),
        retry_after=fields.get("retry_after", _seconds, None),
        slow=fields.get("slow", _seconds, 0.0),
        content_type=fields.get("content_type", _content_type, ""),
        counts=fields.get("counts", Value.truth, None),
        first=first,
        each=each,
    )
    _consistent(fields, reply)
    return reply


def check_answers(fields: Fields) -> None:
    """Raises Problem for an answer that was written as a field: `hang: true`."""
    if name := next((name for name in fields.names if name in ANSWERS), ""):
        raise Problem(fields.lines[name], f"unknown field of an outage {name!r}; did you mean 'answer: {name}'?")


def _consistent(fields: Fields, reply: Reply) -> None:
    if "retry_after" in fields.values and "status" not in fields.values:
        raise Problem(fields.lines["retry_after"], "'retry_after' belongs to a status, such as status: 429")
    if "counts" in fields.values and not (reply.status or reply.answer):
        raise Problem(fields.lines["counts"], "'counts' is said of a call that fails; add a status or an answer")
    for name in ("route", "first"):
        if name in fields.values and reply.refused and not reply.answer:
            wish = "add what these calls are answered: status: 503, answer: hang, slow: 3s"
            raise Problem(fields.lines[name], f"a connection is refused before it says what it wants; {wish}")


def _narrow(fields: Fields) -> Reply:
    """A provider that works, and can do no more than so much."""
    for name in fields.names:
        if name in OUTAGE_FIELDS and name not in ("capacity", "queue", "beyond", "retry_after"):
            raise Problem(fields.lines[name], f"{name!r} does not go with a capacity; make two items of the list")
    beyond = fields.get("beyond", _beyond, OVERLOADED)
    if beyond == SLOW and "queue" in fields.values:
        raise Problem(fields.lines["queue"], "'queue' does not go with 'beyond: slow': everybody waits")
    return Reply(
        capacity=Capacity(
            rate=fields.get("capacity", lambda value: value.unit(units.rate), 1.0),
            queue=fields.get("queue", lambda value: value.whole("how many calls may wait, such as 20", 0), None),
            beyond=beyond,
            retry_after=fields.get("retry_after", _seconds, None),
        )
    )


def _status(value: Value) -> int:
    status = value.whole("an HTTP status such as 503")
    if not 400 <= status <= 599:
        raise value.wrong("an HTTP status from 400 to 599")
    return status


def _beyond(value: Value) -> Beyond:
    text = value.text("a status such as 503, or slow")
    if text == SLOW:
        return "slow"
    if not text.isdigit():
        raise unknown(value.line, "beyond", text, [SLOW, "503", "429"])
    return _status(value)


def _seconds(value: Value) -> float:
    return value.unit(units.duration)


def _route(value: Value) -> str:
    try:
        return checked(" ".join(value.text("a route such as POST /charges").split()))
    except UsageError as error:
        raise Problem(value.line, error.message) from None


def _content_type(value: Value) -> str:
    text = value.text("a content type such as text/html")
    if "/" not in text or not text.isascii() or not text.isprintable():
        raise value.wrong("a content type such as text/html")
    return text


def read_first(value: Value) -> tuple[int, str]:
    """How many, and of what each: `2`, `2 of each case`. Raises Problem."""
    found = _FIRST.fullmatch(value.text(FIRST))
    if not found or int(found[1]) < 1:
        raise value.wrong(FIRST)
    if found[2] and found[2] not in EACH:
        raise unknown(value.line, "word", found[2], EACH)
    return int(found[1]), found[2] or ""
