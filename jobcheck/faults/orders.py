"""Jobs in another order, and jobs that come late: what the runner is told to do, and which order it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .base import Base


@dataclass(frozen=True, slots=True)
class ReorderJobs(Base):
    """Hand out the jobs of the next case, or of the next ones together, in another order."""

    nth: int
    """Number of the case."""
    cases: int = 1
    chance: float = 0.0
    """Which order, from 0 up to 1: see `permuted`."""

    @property
    def text(self) -> str:
        upto = f" to {self.nth + self.cases - 1}" if self.cases > 1 else ""
        return f"reorder the jobs of case {self.nth}{upto}"


@dataclass(frozen=True, slots=True)
class DelayJob(Base):
    """Hold back one job of the next case."""

    nth: int
    """Number of the case."""
    seconds: float | None = None
    others: int = 0
    chance: float = 0.0
    """Which of its jobs, from 0 up to 1."""

    @property
    def text(self) -> str:
        return f"delay a job of case {self.nth}"


@dataclass(frozen=True, slots=True)
class PutBack(Base):
    """Let a job that is held back be handed out, next of all."""

    job: str
    nth: int
    """Number of its case."""

    @property
    def text(self) -> str:
        return f"delay a job of case {self.nth}"


FINE = 2**53
"""How many different numbers a `chance` may be."""


def permuted(items: Sequence[str], chance: float) -> list[str]:
    """Another order than this one, chosen by a number from 0 up to 1, each as likely. Of one item there is none."""
    if len(items) < 2:
        return list(items)
    # 0 is the order as it is. There may be more orders than a float can count.
    number = 1 + int(chance * FINE) * (math.factorial(len(items)) - 1) // FINE
    left, out = list(items), []
    while left:
        place, number = divmod(number, math.factorial(len(left) - 1))
        out.append(left.pop(place))
    return out
