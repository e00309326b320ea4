"""What a scenario expects: contracts, and claims about all cases together."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..checks.contracts import WORDS, parse_contract
from ..checks.counts import Counts
from ..errors import UsageError
from . import units
from .model import BackoffIs, ContractHolds, CountsAre, Expectation, Limit, NoneLost, RecoveredWithin
from .nodes import Fields, Problem, Value, unknown
from .read_backoff import EXAMPLE, read_backoff

NOT_YET = {
    "dead_letters": "Celery keeps none: count what was given up by counts: {failed_visibly: 0}",
}
"""What a file may come to say one day, and what to say meanwhile. A claim that nobody checks must not look like one."""
KINDS = (*WORDS, "none_lost", "counts", "recovered_within", "backoff")
COUNTS = tuple(Counts.__dataclass_fields__)
_LIMIT = re.compile(r"(<=|>=|=)?\s*(\d+)")


def read_expect(value: Value) -> tuple[Expectation, ...]:
    """The expectations in their order; those that are wrong are noted and left out."""
    if not value.items("a list of expectations"):
        raise Problem(value.line, "expected at least one expectation, such as exactly_once: payments POST /charges")
    return value.each("a list of expectations", _one)


def _one(value: Value) -> Expectation:
    if value.is_text:
        return _word(value)
    fields = value.fields("an expectation such as exactly_once: payments POST /charges")
    name = next((name for name in fields.names if name in (*KINDS, *NOT_YET)), "")
    if not name:
        first = fields.names[0] if fields.names else ""
        raise unknown(fields.lines.get(first, value.line), "expectation", first, KINDS)
    if name in NOT_YET:
        raise _not_yet(fields.lines[name], name)
    if name in WORDS:
        return _contract(fields, name)
    fields.only([name], "field of an expectation")
    item = fields.values[name]
    read: dict[str, Callable[[Fields, Value], Expectation]] = {
        "none_lost": _none_lost,
        "counts": _counts,
        "recovered_within": _recovered,
        "backoff": _backoff,
    }
    return read[name](fields, item)


def _word(value: Value) -> Expectation:
    """An expectation without a value, or a contract in one text (`exactly once: mail`)."""
    text = value.text()
    if text == "none_lost":
        return NoneLost(value.source_where)
    if text in NOT_YET:
        raise _not_yet(value.line, text)
    if text in KINDS:
        raise Problem(value.line, f"{text!r} needs a value, such as {_example(text)}")
    if ":" in text:
        return ContractHolds(_parsed(value, text), value.source_where)
    raise unknown(value.line, "expectation", text, KINDS)


def _example(name: str) -> str:
    return {
        "counts": "counts: {lost: 0, duplicated: 0}",
        "recovered_within": "recovered_within: 30s",
        "backoff": EXAMPLE,
    }.get(name, f"{name}: payments POST /charges")


def _not_yet(line: int, name: str) -> Problem:
    return Problem(line, f"{name!r} cannot be checked yet; leave it out. {NOT_YET[name]}")


def _contract(fields: Fields, name: str) -> ContractHolds:
    fields.only([name, "key"], "field of a contract")
    said: dict[str, Any] = {name: plain(fields.values[name])}
    if "key" in fields.values:
        said["key"] = fields.values["key"].text("a key such as json:order_id")
    return ContractHolds(_parsed(fields.values[name], said), fields.where)


def _parsed(value: Value, said: object) -> Any:
    try:
        return parse_contract(said)
    except UsageError as error:
        meant = f"; {error.hint}" if error.hint else ""
        raise Problem(value.line, f"{error.message}{meant}") from None


def _none_lost(fields: Fields, value: Value) -> NoneLost:
    if not value.truth():
        raise value.wrong("true; leave it out where losses are allowed")
    return NoneLost(fields.where)


def _counts(fields: Fields, value: Value) -> CountsAre:
    counts = value.fields("counts such as {lost: 0, duplicated: 0}")
    counts.only(COUNTS, "count")
    limits = [
        Limit(name, *found)
        for name, item in counts.values.items()
        if name in COUNTS and (found := counts.get(name, _limit, None)) is not None and item
    ]
    return CountsAre(tuple(limits), counts.where)


def _limit(value: Value) -> tuple[str, int]:
    found = _LIMIT.fullmatch(value.text("a number such as 0, or a bound such as <= 3"))
    if not found:
        raise value.wrong("a number such as 0, or a bound such as <= 3")
    return found[1] or "=", int(found[2])


def _recovered(fields: Fields, value: Value) -> RecoveredWithin:
    return RecoveredWithin(value.unit(units.duration), fields.where)


def _backoff(fields: Fields, value: Value) -> BackoffIs:
    return BackoffIs(read_backoff(value), fields.where)


def plain(value: Value, depth: int = 8) -> Any:
    """The value as Python has it, without lines. Raises Problem where it is nested without end."""
    if depth == 0:
        raise Problem(value.line, "expected a plain value, got one nested too deep")
    if value.is_mapping:
        return {name: plain(item, depth - 1) for name, item in value.fields("a mapping").values.items()}
    if not value.is_text:
        return [plain(item, depth - 1) for item in value.items()]
    return value.scalar()
