"""Routes of an HTTP provider, as people write them: `POST /charges`, `GET /charges/*`, `* /v1/**`, `*`.

`*` stands for any method or one segment of the path, `**` for the rest of the path.
"""

from __future__ import annotations

import difflib

from ..errors import UsageError

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
EVERYTHING = "*"


def split(route: str) -> tuple[str, list[str]]:
    """Method and segments. Raises UsageError for what is no route."""
    if route == EVERYTHING:
        return "*", ["**"]
    method, _, path = route.partition(" ")
    if not path.startswith("/") or (method != "*" and not method.isupper()):
        near = f"; did you mean '{method.upper()} {path}'?" if path.startswith("/") and method.isalpha() else ""
        raise UsageError(f"expected a route such as 'POST /charges' or 'GET /charges/*', got {route!r}{near}")
    return method, path.split("/")[1:]


def checked(route: str) -> str:
    """The route itself. Raises UsageError for what is no route, also for a method that HTTP has not."""
    method, _ = split(route)
    if method != "*" and method not in METHODS:
        near = difflib.get_close_matches(method, METHODS, n=1, cutoff=0.6)
        rest = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(METHODS)}"
        raise UsageError(f"unknown method {method!r}; {rest}")
    return route


def fits(route: str, method: str, path: str) -> bool:
    """Whether a call is one of this route; its query does not matter."""
    wanted, parts = split(route)
    if wanted not in ("*", method):
        return False
    seen = path.partition("?")[0].split("/")[1:]
    if parts and parts[-1] == "**":
        parts, seen = parts[:-1], seen[: len(parts) - 1]
    return len(parts) == len(seen) and all(part in ("*", item) for part, item in zip(parts, seen, strict=True))
