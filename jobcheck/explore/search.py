"""Which strikes cover the points of a job, and in which order they are tried.

A kill has N+1 distinct outcomes for N state changes of a sequential job (tap-notes 3.1): before each one, and after
the last. Unordered points are struck on both sides, and N+1 is not claimed for them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..history.ids import short_id
from ..history.records import Point, Strike


def kills(subject: str, points: Sequence[Point]) -> list[Strike]:
    """Before each point, after the last, and after each unordered one."""
    out = []
    for place, point in enumerate(points):
        out.append(strike(subject, point, "kill", "before"))
        if place == len(points) - 1 or not point.ordered:
            out.append(strike(subject, point, "kill", "after"))
    return out


def strike(subject: str, point: Point, fault: str, when: str) -> Strike:
    return Strike(id=short_id(subject, point.id, fault, when), point=point.id, fault=fault, when=when)


def ordered(strikes: Sequence[Strike], points: Sequence[Point], first: Collection[str] = ()) -> list[Strike]:
    """What failed last time first, then where effects and records meet, then the broker's own points."""
    broker = {point.id for point in points if point.broker}
    return sorted(strikes, key=lambda item: (item.id not in first, item.point in broker))


def place_of(strike: Strike, points: Sequence[Point]) -> int:
    """How many points are through when the strike falls: the gap between two messages that it stands for."""
    for place, point in enumerate(points):
        if point.id == strike.point:
            return place + (strike.when == "after")
    return -1
