"""Records to plain JSON values and back. Readers ignore unknown keys."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


_PLAIN = frozenset((str, int, float, bool, type(None)))


class _NoDefault:
    """Equal to nothing."""


@cache
def _defaults(kind: type) -> list[tuple[str, Any, Callable[[], Any] | None]]:
    """Name, default and maker of the default of each field: the journal asks for every operation of every trial."""
    missing, nothing = dataclasses.MISSING, _NoDefault()
    return [
        (
            item.name,
            nothing if item.default is missing else item.default,
            None if item.default_factory is missing else item.default_factory,
        )
        for item in dataclasses.fields(kind)
    ]


def to_json(value: Any) -> Any:
    """A JSON value of a record, a tuple or list of records, or a plain value. Fields at their default are left out."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is not type and dataclasses.is_dataclass(kind):
        out = {}
        for name, default, make in _defaults(kind):
            current = getattr(value, name)
            if current == default or (make is not None and current == make()):
                continue
            out[name] = current if type(current) in _PLAIN else to_json(current)
        return out
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    return value


def from_json(kind: type[T], data: Any) -> T:
    """The record of class `kind` that `to_json` gave. Raises TypeError or ValueError when `data` cannot be one."""
    if not isinstance(data, dict):
        raise ValueError(f"expected an object for {kind.__name__}, got {type(data).__name__}")
    hints = typing.get_type_hints(kind)
    known = {item.name for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: _read(hints[name], item) for name, item in data.items() if name in known})


def _read(hint: Any, data: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        if data is None:
            return None
        inner = [arg for arg in typing.get_args(hint) if arg is not type(None)]
        return _read(inner[0], data)
    if origin is tuple:
        return tuple(_read(typing.get_args(hint)[0], item) for item in data)
    if origin is list:
        return [_read(typing.get_args(hint)[0], item) for item in data]
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return from_json(hint, data)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(data)
    return data
