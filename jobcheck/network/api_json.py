"""The JSON of Toxiproxy's HTTP API: bodies as its server reads them, and what it says of wrong ones.

Toxiproxy is a Go program. Clients show its error texts to people, and tests compare them, so they are Go's here too:
names of fields match in any case, what is unknown is passed over, null leaves the default, and whatever follows the
first value is not read. Measured on 2.12.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_DECODER_ERRORS = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ',' delimiter": "after object key:value pair",
    "Expecting ':' delimiter": "after object key",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
}
"""Python's words for a wrong character, and Go's."""
_LITERALS = ("true", "false", "null")
_LARGEST = 2**63
_LARGEST_FLOAT = 3.4028235e38


class BadBody(Exception):
    """The body cannot be read; `args[0]` says why, in Go's words."""


class _Float(float):
    """A number with a point or an exponent, which Go takes for no whole one; `raw` is how it was written."""

    raw: str


def _float(raw: str) -> _Float:
    made = _Float(raw)
    made.raw = raw
    return made


def _constant(word: str) -> object:
    raise BadBody(f"invalid character {_quoted(word[0])} looking for beginning of value")


_DECODER = json.JSONDecoder(parse_float=_float, parse_constant=_constant)


def read(body: bytes) -> Any:
    """The first value of a body. Raises BadBody."""
    text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
    if not text:
        raise BadBody("EOF")
    try:
        return _DECODER.raw_decode(text)[0]
    except json.JSONDecodeError as error:
        raise BadBody(_said(text, error)) from None
    except RecursionError:
        raise BadBody("exceeded max depth") from None
    except ValueError as error:  # a whole number that is too long for Python to read
        raise BadBody(str(error)) from None


def _said(text: str, error: json.JSONDecodeError) -> str:
    where = error.pos
    if error.msg.startswith("Illegal trailing comma"):
        where += 1
        where += len(text[where:]) - len(text[where:].lstrip())
    rest = text[where:]
    if not rest.strip() or "Unterminated" in error.msg or any(one.startswith(rest) for one in _LITERALS):
        return "unexpected EOF"
    words = _DECODER_ERRORS.get(error.msg)
    return f"invalid character {_quoted(rest[0])} {words}" if words else f"{error.msg}: {_quoted(rest[0])}"


def _quoted(char: str) -> str:
    return f"'{char}'" if char != "'" else r"'\''"


def fields(value: Any, what: str) -> dict[str, Any]:
    """An object by lower-case names; empty for null. `what` is Go's word for the type. Raises BadBody."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadBody(f"json: cannot unmarshal {_kind(value)} into Go value of type {what}")
    return {str(name).lower(): item for name, item in value.items()}


def text(found: Mapping[str, Any], name: str, otherwise: str, where: str) -> str:
    """A field that is a text. `where` is the Go struct for errors. Raises BadBody."""
    value = found.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, str):
        raise _wrong(value, f"{where}.{name}", "string")
    return value


def truth(found: Mapping[str, Any], name: str, otherwise: bool, where: str) -> bool:
    """A field that is true or false. Raises BadBody."""
    value = found.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, bool):
        raise _wrong(value, f"{where}.{name}", "bool")
    return value


def number(found: Mapping[str, Any], name: str, otherwise: float, where: str) -> float:
    """A field that is a number. Raises BadBody."""
    value = found.get(name)
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(value, f"{where}.{name}", "float32")
    if not -_LARGEST_FLOAT <= value <= _LARGEST_FLOAT:
        raise _wrong(value, f"{where}.{name}", "float32", f" {getattr(value, 'raw', value)}")
    return float(value)


def whole(found: Mapping[str, Any], name: str, otherwise: int, where: str) -> int:
    """A field that is a whole number. Raises BadBody."""
    value = found.get(name)
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int) or not -_LARGEST <= value < _LARGEST:
        shown = value if isinstance(value, int) and not isinstance(value, bool) else getattr(value, "raw", None)
        raise _wrong(value, f"{where}.{name}", "int64", "" if shown is None else f" {shown}")
    return value


def _wrong(value: object, field: str, kind: str, shown: str = "") -> BadBody:
    return BadBody(f"json: cannot unmarshal {_kind(value)}{shown} into Go struct field {field} of type {kind}")


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
