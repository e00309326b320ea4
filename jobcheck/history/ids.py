"""Short ids that are hashes of what they name: the same tomorrow and on another machine."""

from __future__ import annotations

import hashlib


def short_id(*parts: object) -> str:
    """Four or more hex characters from the parts; `lengthen` where two of one report would be the same."""
    return digest(*parts)[:6]


def digest(*parts: object) -> str:
    """Forty hex characters from the parts."""
    return hashlib.sha1("\x1f".join(str(part) for part in parts).encode(), usedforsecurity=False).hexdigest()
