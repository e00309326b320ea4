"""What only the first job of a worker changes."""

from __future__ import annotations

from jobcheck.explore.oneoff import first_only
from jobcheck.explore.points import Recorded
from jobcheck.history.records import Point


def recorded(*shapes: str) -> Recorded:
    points = tuple(
        Point(id=shape, upstream="broker", shape=shape, nth=shapes[:at].count(shape) + 1, side="request")
        for at, shape in enumerate(shapes)
    )
    return Recorded(points, tuple(1 for _ in points))


def test_a_cache_that_is_filled_once_is_told():
    (sentence,) = first_only(recorded("redis SET rates", "redis DEL lock"), recorded("redis DEL lock"))
    assert sentence.startswith("broker SET rates came in the first job only, so it is no point")


def test_what_later_jobs_change_as_well_is_not_even_where_the_first_did_it_twice():
    assert first_only(recorded("redis SET a", "redis SET a"), recorded("redis SET a")) == []
    assert first_only(recorded("redis SET a"), recorded("redis SET a", "redis SET b")) == []
