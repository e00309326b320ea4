"""A URL path without its ids, as effects are named: `/charges/1000017/refund` -> `/charges/*/refund`."""

from __future__ import annotations

from ..wire.shapes import normalise


def template(target: str) -> str:
    """The path of a request target as the wire's labels have it, so that an effect is named like its point."""
    return normalise(target.partition("?")[0])
