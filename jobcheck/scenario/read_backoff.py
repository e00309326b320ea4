"""`backoff` among the expectations of a scenario file."""

from __future__ import annotations

import math

from ..checks.backoff import FULL, JITTERS, LATE, BackoffRule
from ..errors import UsageError
from ..faults.routes import checked
from . import units
from .nodes import Fields, Problem, Value, unknown

FIELDS = ("provider", "route", "base", "factor", "jitter", "limit", "max_attempts", "slack", "retry_after")
_DEFAULT: str | float = FULL
EXAMPLE = "backoff: {provider: payments, base: 1s, factor: 2, jitter: full, max_attempts: 8}"
A_FACTOR = "a number such as 2, at least 1"


def read_backoff(value: Value) -> BackoffRule:
    """The claim that these fields make. Raises Problem."""
    fields = value.fields(f"what the waits are, such as {EXAMPLE}")
    fields.only(FIELDS, "field of backoff")
    for name in ("provider", "base"):
        if name not in fields.values:
            what = {"provider": "who is called again", "base": "the first wait"}[name]
            raise Problem(value.line, f"expected {name!r}: {what}")
    return BackoffRule(
        provider=fields.get("provider", lambda item: item.text("the name of an upstream"), ""),
        base=fields.get("base", _seconds, 1.0),
        factor=fields.get("factor", _factor, 2.0),
        jitter=fields.get("jitter", _jitter, _DEFAULT),
        max_attempts=fields.get("max_attempts", lambda item: item.whole("a number of attempts such as 8"), None),
        limit=fields.get("limit", _seconds, math.inf),
        slack=fields.get("slack", lambda item: item.unit(units.duration), LATE),
        route=_route(fields),
        retry_after=fields.get("retry_after", Value.truth, False),
    )


def _seconds(value: Value) -> float:
    seconds = value.unit(units.duration)
    if seconds <= 0:
        raise value.wrong(f"{units.A_DURATION}, longer than 0s")
    return seconds


def _factor(value: Value) -> float:
    try:
        factor = float(value.text(A_FACTOR))
    except ValueError:
        raise value.wrong(A_FACTOR) from None
    if not 1 <= factor < math.inf:
        raise value.wrong(A_FACTOR)
    return factor


def _jitter(value: Value) -> str | float:
    text = value.text("full, equal, none, or a share such as 10%")
    if text in JITTERS:
        return text
    if text[0].isdigit():
        return value.unit(units.share)
    raise unknown(value.line, "jitter", text, [*JITTERS, "10%"])


def _route(fields: Fields) -> str:
    def read(value: Value) -> str:
        try:
            return checked(" ".join(value.text("a route such as POST /charges").split()))
        except UsageError as error:
            raise Problem(value.line, error.message) from None

    return fields.get("route", read, "")
