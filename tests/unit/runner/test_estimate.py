"""The estimate before an exploration: from its recordings, with the retries that make it long."""

from __future__ import annotations

from jobcheck.clock import left_of
from jobcheck.history.records import Strike
from jobcheck.runner.estimate import RECONNECTS, WAITS, estimate, told, waits
from jobcheck.systems.contract import Settings

KILLS = [Strike(f"k{at}", "p") for at in range(5)]
RESETS = [Strike("r1", "p", "lose-reply", "after"), Strike("r2", "p", "error-reply 500", "before")]
SLOW = Settings("at-least-once", "late", retry_delay=180.0, retry_says="shop.charge retries after 180 s (why)")


def test_a_strike_is_two_runs_and_a_boot_where_a_worker_is_booted() -> None:
    assert estimate(KILLS, 0.5, 3.0, "zygote") == 5.0
    assert estimate(KILLS, 0.5, 3.0, "cold") == 5.0 + 15.0
    assert estimate(RESETS, 0.5, 3.0, "cold") == 2.0, "the worker lives on"
    assert estimate([Strike("d", "p", "race", "before")], 0.5, 3.0, "zygote") == 1.25


def test_what_a_strike_waits_for_counts() -> None:
    """A handler has no broker and no worker: there nothing is waited for."""
    assert estimate(RESETS, 0.5, 3.0, "zygote", ["p"]) == 2.0 + 2 * RECONNECTS
    assert estimate([Strike("t", "p", "term", "before")], 0.5, 0.0, "zygote") == 1.0 + WAITS["term"]


def test_retries_are_named_where_a_strike_can_cause_them() -> None:
    assert waits(KILLS, SLOW, 30.0) == ""
    assert waits(RESETS, None, 30.0) == ""
    assert waits(RESETS, Settings("at-least-once", "late"), 30.0) == ""
    assert waits([*KILLS, *RESETS], SLOW, 30.0) == (
        "shop.charge retries after 180 s (why): up to 2 of the strikes make it retry, and are hung after 30 s "
        "(--speed 100 makes them short; a deadline above 180s waits for them)"
    )
    assert waits(RESETS, SLOW, 30.0, kept=True) == (
        "shop.charge retries after 180 s (why): up to 2 of the strikes make it retry, and are unknown then: the clock "
        "could not be sped up, and a deadline is 30 s"
    )
    assert waits(RESETS, SLOW, 300.0) == "shop.charge retries after 180 s (why): up to 2 of the strikes make it retry"


def test_it_is_told_in_the_unit_that_fits() -> None:
    assert [told(seconds) for seconds in (0.2, 39.6, 240.0, 9000.0)] == [
        "about 1 s",
        "about 40 s",
        "about 4 min",
        "about 2.5 h",
    ]


def test_what_is_left_until_a_time() -> None:
    assert left_of("1970-01-01T00:01:40+00:00", 40.0) == 60.0
    assert left_of("1970-01-01T00:01:40", 40.0) == 60.0
    assert left_of("", 40.0) == left_of("soon", 40.0) == 0.0
