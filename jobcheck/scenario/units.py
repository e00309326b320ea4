"""Durations, rates and shares as people write them: `3s`, `500ms`, `2m`, `20/s`, `10%`."""

from __future__ import annotations

import re

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(s|m|h)")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")

A_DURATION = "a duration such as 3s, 500ms or 2m"
A_RATE = "a rate such as 20/s or 90/m"
A_SHARE = "a share such as 10%"


class NoUnit(ValueError):
    """The text is none of the kind; `args[0]` says what was expected, `near` what was perhaps meant."""

    def __init__(self, expected: str, near: str = "") -> None:
        super().__init__(expected)
        self.near = near


def duration(text: str) -> float:
    """Seconds of `3s`, `500ms`, `1m30s`. Raises NoUnit."""
    compact = text.replace(" ", "")
    parts = _DURATION.findall(compact)
    if parts and "".join(number + unit for number, unit in parts) == compact:
        return sum(float(number) * SECONDS[unit] for number, unit in parts)
    raise NoUnit(A_DURATION, f"{compact}s" if _NUMBER.fullmatch(compact) else "")


def rate(text: str) -> float:
    """Per second of `20/s`, `90/m`. Raises NoUnit, also for zero."""
    found = _RATE.fullmatch(text.strip())
    if found and float(found[1]) > 0:
        return float(found[1]) / SECONDS[found[2]]
    raise NoUnit(A_RATE, f"{text.strip()}/s" if _NUMBER.fullmatch(text.strip()) and float(text) > 0 else "")


def share(text: str) -> float:
    """From 0 to 1 of `10%`. Raises NoUnit, also above 100%."""
    stripped = text.strip()
    found = _SHARE.fullmatch(stripped)
    if found and float(found[1]) <= 100:
        return float(found[1]) / 100
    near = ""
    if _NUMBER.fullmatch(stripped) and float(stripped) <= 100:
        number = float(stripped)
        near = f"{number * 100:g}%" if number < 1 else f"{number:g}%"
    raise NoUnit(A_SHARE, near)
