"""Which strikes cover the points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jobcheck.explore.points import reads, recorded
from jobcheck.explore.search import Space, kills, ordered, place_of, sampled
from jobcheck.faults.strikes import FAMILIES

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


def space(**options: Any) -> Space:
    wire = Wire().deliver().ask("db", "postgres SELECT orders", "no", guess="no")
    wire.ask("payments", "http POST /charges").ask("db", "postgres COMMIT").ask("broker", "redis LREM", role="ack")
    given = {"broker": "broker"}
    return Space(
        "s",
        recorded(wire.operations, **given).points,
        reads(wire.operations, **given),
        **{"queue": True, **options},
    )


def planned(family: str, **options: Any) -> list[str]:
    found = space(**options)
    names = {point.id: point.upstream for point in [*found.points, *(read.point for read in found.reads)]}
    return [f"{strike.fault} {strike.when} {names[strike.point]}" for strike in found.planned([family])]


def test_each_point_has_a_lost_request_a_lost_reply_and_the_errors_of_its_protocol() -> None:
    assert planned("reset") == [
        "lose-reply before broker",
        "lose-request before payments",
        "lose-reply after payments",
        "error-reply 500 before payments",
        "lose-request before db",
        "lose-reply after db",
        "error-reply 40001 before db",
        "error-reply 57P01 before db",
        "lose-request before broker",
        "lose-reply after broker",
        "error-reply READONLY before broker",
        "error-reply OOM before broker",
        "lose-reply after db",
    ]


def test_a_read_is_struck_once_at_the_place_where_it_was_seen() -> None:
    found = space()
    read = found.planned(["reset"])[-1]
    assert read.place == place_of(read, found.points) == 1
    assert read.point not in {point.id for point in found.points}


def test_a_paused_worker_loses_something_only_while_it_holds_a_lease() -> None:
    assert planned("zombie") == ["zombie before payments", "zombie before db", "zombie before broker"]
    assert planned("zombie", leased=False) == []


def test_a_handler_has_no_worker_that_could_be_told_to_end() -> None:
    assert len(planned("term")) == 2 * 4
    assert planned("term", queue=False) == planned("kill-child", queue=False) == []
    assert planned("duplicate", queue=False) == ["duplicate afterwards after broker"]


def test_the_message_is_doubled_before_during_and_after_the_job() -> None:
    assert planned("duplicate") == [
        "duplicate afterwards after broker",
        "duplicate meanwhile before payments",
        "duplicate beforehand before broker",
    ]


def test_a_bounded_number_of_strikes_is_spread_over_faults_and_shapes() -> None:
    found = space()
    every = found.planned(["kill", "zombie"])
    chosen = sampled(every, found.points, 6)
    assert len(chosen) == 6
    assert {(strike.fault, strike.point) for strike in chosen} == {
        *((strike.fault, strike.point) for strike in every[:4]),
        *((strike.fault, strike.point) for strike in every[5:7]),
    }
    assert sampled(every, found.points, 100) == every


def test_a_family_that_does_not_apply_says_why_when_it_was_asked_for_by_name() -> None:
    """One sentence each; all families together are those that there are."""
    queue = Space("s", (), queue=True)
    assert queue.unstruck(("kill", "order")) == [
        "no strike of order: the case enqueues one job, and it takes two to come in another order"
    ]
    assert replace(queue, jobs=2, leased=False).unstruck(("order", "zombie")) == [
        "no strike of zombie: jobs are acknowledged early, so nobody else gets one that is held"
    ]
    assert queue.unstruck(("webhook",)) == ["no strike of webhook: no provider calls back in this case"]
    assert replace(queue, callbacks=1).unstruck(("webhook",)) == []
    assert Space("s", ()).unstruck(("term", "order", "reset")) == [
        "no strike of term: it needs a worker, and a handler has none",
        "no strike of order: it needs a worker, and a handler has none",
    ]
    assert Space("s", ()).unstruck(tuple(FAMILIES)) == []
