"""Who answers a provider's calls when nothing was programmed: a mock behind it, or a stand-in that knows the API.

Without one, calls are answered with ids and echoes (`resources`).
"""

from __future__ import annotations

from typing import Protocol

from .answers import Answer, Call


class Backend(Protocol):
    """Answers complete calls. Whether an answer counts as an effect is said as in a programmed one."""

    async def answer(self, call: Call) -> Answer:
        """Never raises: what goes wrong is an answer too."""
        ...

    def conflict(self, status: int, why: str) -> Answer:
        """What is said about an idempotency key that is in flight (409), or came with another body (422)."""
        ...


def plain_conflict(status: int, why: str) -> Answer:
    """The answer of a provider that nothing else is known of."""
    return Answer(status=status, json={"error": why})
