"""A URL path without its ids, as effects are named: `/charges/1000017/refund` -> `/charges/*/refund`."""

from __future__ import annotations

import re
from urllib.parse import unquote

_ID = re.compile(
    r"""
    \d+
    | [0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}
    | (?=[^/]*\d)[0-9a-fA-F]{8,}
    | (?:[A-Za-z]+[-_.:])+(?=[^/]*\d)[0-9A-Za-z-]+
    | (?=(?:[^/]*\d){3})[0-9A-Za-z_-]{16,}
    """,
    re.VERBOSE,
)
_VERSION = re.compile(r"v\d{1,3}")


def template(path: str) -> str:
    """The path with `*` for every segment that is a number, a UUID, a long hex or another id; `/v1` stays."""
    segments = unquote(path.partition("?")[0]).split("/")
    return "/".join("*" if _is_id(segment) else segment for segment in segments)


def _is_id(segment: str) -> bool:
    return bool(segment) and not _VERSION.fullmatch(segment) and _ID.fullmatch(segment) is not None
