"""Toxics of a scenario file: Toxiproxy's names, parameters and units, with times also as people write them."""

from __future__ import annotations

import dataclasses

from ..errors import UsageError
from ..faults.toxics import TOXICS, Down, Stream, Toxic
from . import units
from .nodes import Fields, Problem, Value, unknown

PER_SECOND = {"milliseconds": 1_000, "microseconds": 1_000_000}


def _parameters(kind: type[Toxic]) -> dict[str, str]:
    """The unit of each parameter, by name."""
    return {one.name: one.metadata["unit"] for one in dataclasses.fields(kind) if "unit" in one.metadata}


TOXIC_FIELDS = ("stream", "toxicity", *dict.fromkeys(name for kind in TOXICS.values() for name in _parameters(kind)))
"""What a toxic may have, all kinds together."""


def read_toxic(fields: Fields, value: Value) -> Toxic:
    """The toxic that these fields say; `value` is its name. Raises Problem, also for a parameter of another toxic."""
    kind = TOXICS[value.one_of(tuple(TOXICS), "toxic")]
    parameters = _parameters(kind)
    allowed = [*parameters, *(() if kind is Down else ("stream", "toxicity"))]
    for name in fields.names:
        if name in TOXIC_FIELDS and name not in allowed:
            raise unknown(fields.lines[name], f"parameter of {kind.kind}", name, allowed or ["none"])
    made: dict[str, object] = {}
    for name in allowed:
        if name not in fields.values:
            continue
        item = fields.values[name]
        if name == "stream":
            made[name] = item.one_of([str(one) for one in Stream], "stream")
        elif name == "toxicity":
            made[name] = _toxicity(item)
        else:
            made[name] = _number(item, parameters[name])
    for one in dataclasses.fields(kind):
        if one.name in parameters and one.name not in made and one.default is dataclasses.MISSING:
            raise Problem(fields.owner.line, f"expected {one.name!r} of {kind.kind}: {parameters[one.name]}")
    try:
        return kind(**made)  # type: ignore[arg-type]  # each was read by its own rule
    except UsageError as error:
        raise Problem(value.line, error.message) from None


def _number(value: Value, unit: str) -> int:
    """A plain number of the unit, or for times a duration."""
    per_second = PER_SECOND.get(unit)
    expected = f"a whole number of {unit}" + (", or a duration such as 200ms" if per_second else "")
    text = value.text(expected)
    if text.isdigit():
        return int(text)
    if per_second is None:
        raise value.wrong(expected)
    try:
        return round(units.duration(text) * per_second)
    except units.NoUnit:
        raise value.wrong(expected) from None


def _toxicity(value: Value) -> float:
    """A share: `50%`, or Toxiproxy's number from 0 to 1."""
    text = value.text(units.A_SHARE)
    try:
        number = float(text)
    except ValueError:
        return value.unit(units.share)
    if not 0 <= number <= 1:
        raise value.wrong("a number from 0 to 1, or a share such as 50%")
    return number
