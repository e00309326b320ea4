"""How a call is named: method and path without ids, and the verb where an API puts it elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from ..wire.shapes import normalise


def template(target: str) -> str:
    """The path of a request target as the wire's labels have it, so that an effect is named like its point:
    `/charges/1000017/refund` -> `/charges/*/refund`."""
    return normalise(target.partition("?")[0])


def label(method: str, target: str, headers: Mapping[str, str], value: Any) -> str:
    """`POST /charges`, and a verb behind it where `Action`, `X-Amz-Target` or `operationName` carries one:
    `POST /graphql createCharge`. `value` is the body's JSON or form."""
    verb = _verb(target, headers, value if isinstance(value, dict) else {})
    return f"{method} {template(target)}" + (f" {normalise(verb)}" if verb else "")


def _verb(target: str, headers: Mapping[str, str], fields: Mapping[str, Any]) -> str:
    if amazon := headers.get("x-amz-target", ""):
        return amazon.rpartition(".")[2]
    for found in (fields.get("operationName"), fields.get("Action")):
        if isinstance(found, str) and found:
            return found
    return (parse_qs(target.partition("?")[2]).get("Action") or [""])[0]
