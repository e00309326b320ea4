"""Which strikes cover the points."""

from __future__ import annotations

from dataclasses import replace

from jobcheck.explore.points import recorded
from jobcheck.explore.search import kills, ordered, place_of

from .hand import Wire


def points(*upstreams: str) -> tuple:
    wire = Wire()
    for upstream in upstreams:
        wire.ask(upstream, f"http POST /{upstream}")
    return recorded(wire.operations, broker="broker").points


def test_n_points_need_n_plus_one_kills() -> None:
    found = points("a", "b", "c")
    strikes = kills("s", found)
    assert [(place_of(strike, found), strike.when) for strike in strikes] == [
        (0, "before"),
        (1, "before"),
        (2, "before"),
        (3, "after"),
    ]


def test_both_sides_of_an_unordered_point_are_struck() -> None:
    first, second = points("a", "b")
    strikes = kills("s", [replace(first, ordered=False), second])
    assert [strike.when for strike in strikes] == ["before", "after", "before", "after"]


def test_no_points_need_no_strikes() -> None:
    assert kills("s", []) == []


def test_what_failed_last_time_comes_first_and_the_broker_last() -> None:
    found = points("broker", "a", "b")
    strikes = kills("s", found)
    last = strikes[2]
    names = [next(point.upstream for point in found if point.id == s.point) for s in ordered(strikes, found, {last.id})]
    assert names == ["b", "a", "b", "broker"]


def test_strike_ids_name_what_they_strike_and_nothing_else() -> None:
    assert [strike.id for strike in kills("s", points("a"))] == [strike.id for strike in kills("s", points("a"))]
    assert kills("s", points("a"))[0].id != kills("t", points("a"))[0].id
