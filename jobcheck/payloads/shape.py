"""The shape of a payload: types and names without values, and the difference of two shapes in words.

A shape is plain JSON: a word (`integer`, `string` ...), `{"each": shape}` for a list, `{"fields": {name: shape}}` for
an object, `{"opaque": content type}` for a body that is not JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..history.ids import digest

Shape = str | Mapping[str, Any]
_MOST_DEPTH = 40


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a task's function, as its code declares it."""

    name: str
    required: bool
    kind: str = "positional"
    """`positional` (by place or by name), `keyword` (by name only), `rest` (`*args`) or `others` (`**kwargs`)."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument that a payload carries."""

    name: str
    """The parameter's name where it is known, else `1st argument`."""
    shape: str
    """In words."""


def shape_of(value: Any, depth: int = 0) -> Shape:
    """The shape of a JSON value. Items of a list share one shape; where they differ it is `a|b`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    if depth > _MOST_DEPTH:
        return "deeper"
    if isinstance(value, Mapping):
        if value and all(str(name).isdigit() for name in value):  # ids as names: they are values, not names
            return {"fields": {"*": _one_of([shape_of(item, depth + 1) for item in value.values()])}}
        return {"fields": {str(name): shape_of(value[name], depth + 1) for name in sorted(value, key=str)}}
    return {"each": _one_of([shape_of(item, depth + 1) for item in value])}


def _one_of(shapes: Sequence[Shape]) -> Shape:
    different = {json.dumps(shape, sort_keys=True): shape for shape in shapes}
    if not different:
        return "nothing"
    if len(different) == 1:
        return next(iter(different.values()))
    return "|".join(sorted(in_words(shape) for shape in different.values()))


def payload_shape(args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None, content_type: str) -> Mapping[str, Any]:
    """The shape of a whole payload; `args` None is a body that nobody but the app may decode."""
    if args is None:
        return {"opaque": content_type}
    named = kwargs or {}
    return {
        "args": [shape_of(value) for value in args],
        "kwargs": {name: shape_of(named[name]) for name in sorted(named)},
    }


def shape_id(task: str, shape: Mapping[str, Any]) -> str:
    """Eight hex characters, the same for every payload of this task with this shape."""
    return digest(task, json.dumps(shape, sort_keys=True))[:8]


def in_words(shape: Shape) -> str:
    """`integer`, `[string]`, `{id: integer, name: string}`."""
    if isinstance(shape, str):
        return shape
    if "each" in shape:
        return f"[{in_words(shape['each'])}]"
    if "opaque" in shape:
        return str(shape["opaque"])
    return "{" + ", ".join(f"{name}: {in_words(item)}" for name, item in shape.get("fields", {}).items()) + "}"


def arguments(shape: Mapping[str, Any], parameters: Sequence[Parameter]) -> list[Argument]:
    """The arguments of a payload in order, positional ones named after the parameters that take them."""
    places = [one.name for one in parameters if one.kind == "positional"]
    found = []
    for number, item in enumerate(shape.get("args", ())):
        name = places[number] if number < len(places) else f"{ordinal(number + 1)} argument"
        found.append(Argument(name, in_words(item)))
    found += [Argument(name, in_words(item)) for name, item in shape.get("kwargs", {}).items()]
    return found


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `4th`."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def difference(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    old_parameters: Sequence[Parameter] = (),
    new_parameters: Sequence[Parameter] = (),
) -> tuple[str, ...]:
    """What differs between two payloads of one task, in words: added, removed, renamed and changed arguments, then
    parameters that the function has gained or lost without any payload saying so."""
    if "opaque" in old or "opaque" in new:
        return () if old == new else (f"{_kind(old)} -> {_kind(new)}",)
    before = _leaves(old, old_parameters)
    after = _leaves(new, new_parameters or old_parameters)
    gone = [name for name in before if name not in after]
    come = [name for name in after if name not in before]
    lines = []
    if len(gone) == len(come) == 1 and before[gone[0]] == after[come[0]]:
        lines.append(f"{gone[0]} renamed to {come[0]}")
        gone, come = [], []
    lines += [f"{name} removed" for name in gone]
    lines += [f"{name} added: {after[name]}{_duty(name, new_parameters)}" for name in come]
    lines += [
        f"{name}: {before[name]} -> {after[name]}" for name in before if name in after and before[name] != after[name]
    ]
    if old_parameters and new_parameters:
        sent = {one.name for one in (*arguments(old, old_parameters), *arguments(new, new_parameters))}
        lines += _unsent(old_parameters, new_parameters, sent)
    return tuple(lines)


def _leaves(shape: Mapping[str, Any], parameters: Sequence[Parameter]) -> dict[str, str]:
    """The values of a payload by their path, each with its shape in words: `order.lines[].price`."""
    found: dict[str, str] = {}

    def walk(name: str, item: Shape) -> None:
        if isinstance(item, str) or not ("each" in item or item.get("fields")):
            found[name] = in_words(item)
        elif "each" in item:
            walk(f"{name}[]", item["each"])
        else:
            for field, inner in item["fields"].items():
                walk(f"{name}.{field}", inner)

    shapes = [*shape.get("args", ()), *shape.get("kwargs", {}).values()]
    for argument, item in zip(arguments(shape, parameters), shapes, strict=True):
        walk(argument.name, item)
    return found


def _kind(shape: Mapping[str, Any]) -> str:
    return str(shape.get("opaque", "JSON"))


def _duty(name: str, parameters: Sequence[Parameter]) -> str:
    known = next((one for one in parameters if one.name == name), None)
    return "" if known is None else " (required)" if known.required else " (optional)"


def _unsent(old: Sequence[Parameter], new: Sequence[Parameter], sent: set[str]) -> list[str]:
    before, after = {one.name for one in old}, {one.name for one in new}
    lines = [
        f"{one.name} accepted now ({'required' if one.required else 'optional'}), not sent"
        for one in new
        if one.name not in before and one.name not in sent
    ]
    return lines + [f"{one.name} no longer accepted" for one in old if one.name not in after and one.name not in sent]
