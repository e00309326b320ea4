"""Named streams of random numbers from one seed. The only module that imports `random`.

Each part of a run draws from its own named stream, so that a draw added in one part does not move the others.
"""

from __future__ import annotations

import hashlib
import random
import secrets


class Seeds:
    """All randomness of a run. The same seed gives the same streams, on every machine."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def stream(self, *name: object) -> random.Random:
        """A generator that depends on the seed and the name alone."""
        text = "/".join(str(part) for part in name)
        digest = hashlib.sha256(f"{self.seed}/{text}".encode()).digest()
        return random.Random(int.from_bytes(digest[:8], "big"))


def fresh_seed() -> int:
    """A new seed, short enough to type."""
    return secrets.randbelow(1_000_000)


def token(length: int = 8) -> str:
    """A random lower-case hex name that no other run uses."""
    return secrets.token_hex((length + 1) // 2)[:length]
