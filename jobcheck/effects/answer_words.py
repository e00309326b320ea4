"""The words of an outage in a scenario file, where a route of a provider is programmed in Python:

routes={"POST /charges": {"status": 429, "retry_after": "2s", "first": 2}, "GET /charges/*": {"slow": "3s"}}
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping
from typing import Any

from ..errors import UsageError
from ..faults.outages import ANSWERS, CUT, GARBAGE, HANG, LOST, REFUSED
from ..scenario import units

WORDS = ("answer", "slow", "retry_after", "content_type", "counts", "first")
NONSENSE = b'\x1f\x8b\x00<html>\xff\xfe{"id": \x00'
"""What `garbage` is: neither text nor JSON nor a web page."""


def plain(value: Mapping[str, Any], known: Collection[str], where: str) -> dict[str, Any]:
    """The fields of an answer that these words mean; `known` are the fields that it has by itself.

    Raises UsageError with the nearest right word, and for a value that is none.
    """
    words = [*known, *WORDS]
    for name in value:
        if name not in words:
            near = difflib.get_close_matches(str(name), words, n=1, cutoff=0.6)
            hint = f"did you mean {near[0]!r}?" if near else f"an answer has {', '.join(words)}"
            raise UsageError(f"{where}: unknown {name!r}", hint=hint)
    fields = {name: item for name, item in value.items() if name in known}
    means = _answered(value.get("answer"), where)
    headers = {**means.get("headers", {}), **(fields.get("headers") or {})}
    if "retry_after" in value:
        headers["retry-after"] = str(math.ceil(_seconds(value["retry_after"], f"{where}: retry_after")))
    if "content_type" in value:
        headers["content-type"] = str(value["content_type"])
    if headers:
        fields["headers"] = headers
    if "slow" in value:
        fields["delay"] = _seconds(value["slow"], f"{where}: slow")
    if "counts" in value:
        fields["applied"] = bool(value["counts"])
    if "first" in value:
        first = value["first"]
        if not isinstance(first, int) or isinstance(first, bool) or first < 1:
            raise UsageError(f"{where}: expected first to be a number of calls such as 2, got {first!r}")
        fields["first"] = first
    return {**means, **fields}


def _answered(answer: Any, where: str) -> dict[str, Any]:
    words = [word for word in ANSWERS if word != REFUSED]
    if answer is None:
        return {}
    if answer not in words:
        near = difflib.get_close_matches(str(answer), words, n=1, cutoff=0.6)
        rest = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(words)}"
        raise UsageError(f"{where}: unknown answer {answer!r}", hint=rest)
    means: dict[str, dict[str, Any]] = {
        HANG: {"hang": True},
        CUT: {"drop": True},
        LOST: {"drop": True, "applied": True},
        GARBAGE: {"raw": NONSENSE, "headers": {"content-type": "application/json"}},
    }
    return means[answer]


def _seconds(value: Any, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    try:
        return units.duration(str(value))
    except units.NoUnit as error:
        raise UsageError(f"{where}: expected {error}, or seconds as a number, got {value!r}") from None
