"""The answers of Toxiproxy's HTTP API as values, and which requests there are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .api_values import ApiProxy


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, body and its type; no type: there is no body."""

    status: int
    body: bytes = b""
    kind: str = ""
    location: str = ""
    routed: bool = True
    """It has the number of a request, as all have whose path and method there are."""


def methods(parts: list[str]) -> tuple[str, ...]:
    """What a path may be asked for; empty: there is no such path."""
    if any(not part for part in parts):
        return ()
    if len(parts) == 1:
        return {"proxies": ("GET", "POST"), "version": ("GET",), "reset": ("POST",), "populate": ("POST",)}.get(
            parts[0], ()
        )
    if parts[0] != "proxies" or len(parts) > 4 or (len(parts) > 2 and parts[2] != "toxics"):
        return ()
    return ("GET", "POST") if len(parts) == 3 else ("GET", "POST", "PATCH", "DELETE")


def all_of(proxies: list[ApiProxy]) -> list[dict[str, Any]] | None:
    """The JSON of proxies; null for none, as Go has it."""
    return [proxy.shown() for proxy in proxies] or None


def as_json(status: int, value: Any) -> Answer:
    """An answer whose body is JSON."""
    return Answer(status, json.dumps(value, separators=(",", ":")).encode(), "application/json")


def as_error(status: int, message: str) -> Answer:
    """An error as Toxiproxy says it."""
    body = json.dumps({"error": message, "status": status}, separators=(",", ":")).encode() + b"\n"
    return Answer(status, body, "text/plain; charset=utf-8")
