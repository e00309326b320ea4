"""Backoff is told from what looks like it: no wait, no growth, no jitter, no end, and an end too soon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate

import pytest

from jobcheck.checks.backoff import ALL_WHOLE, EQUAL, FULL, NONE, Attempts, BackoffRule, judge_backoff
from jobcheck.seeds import Seeds

Wait = Callable[[int], float]
"""Seconds of the n-th wait."""


def jobs(wait: Wait, attempts: int = 4, cases: int = 24, given_up: bool = False) -> list[Attempts]:
    """So many cases, each with so many attempts, the first of them at its own time."""
    found = []
    for case in range(cases):
        times = accumulate([wait(number) for number in range(1, attempts)], initial=case / 8)
        found.append(Attempts(f"case-{case}", tuple(times), given_up))
    return found


def rule(jitter: str | float = FULL, **more: float) -> BackoffRule:
    return BackoffRule("payments", 1.0, jitter=jitter, **more)  # type: ignore[arg-type]


def drawn(jitter: str, whole: bool = False, seed: int = 7) -> Wait:
    """Right waits, late by up to 100 ms as real ones are."""
    draw = Seeds(seed).stream("waits")

    def wait(number: int) -> float:
        longest = 2.0 ** (number - 1)
        late = draw.random() / 10
        if jitter == NONE:
            return longest + late
        low = longest / 2 if jitter == EQUAL else 0.0
        return late + (draw.randrange(0, int(longest) + 1) if whole else low + (longest - low) * draw.random())

    return wait


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("jitter", [NONE, EQUAL, FULL])
def test_right_waits_hold(jitter: str, seed: int) -> None:
    held, detail = judge_backoff(rule(jitter), jobs(drawn(jitter, seed=seed)))
    assert held is True, detail
    assert detail.startswith("72 waits of 24 cases, from ")


@pytest.mark.parametrize("seed", range(20))
def test_full_jitter_in_whole_seconds_holds(seed: int) -> None:
    """Celery draws from 0, 1 ... to the whole wait."""
    held, detail = judge_backoff(rule(), jobs(drawn(FULL, whole=True, seed=seed), attempts=3))
    assert held is True, detail


WRONG: dict[str, tuple[str | float, Wait, str]] = {
    "at once": (NONE, lambda number: 0.01, "72 of 72 waits are too short: wait 3 of case-"),
    "at once, jitter allowed": (FULL, lambda number: 0.01, "the waits are too short: 72 of them took 0.7 s together"),
    "always a second": (NONE, lambda number: 1.0, "48 of 72 waits are too short: wait 3 of case-"),
    "jitter that does not grow": (FULL, lambda number: (number % 2) * 0.5, "the waits are too short: 72 of them"),
    "a minute": (NONE, lambda number: 60.0, "72 of 72 waits are too long: wait 1 of case-"),
    "no jitter": (FULL, lambda number: 2.0 ** (number - 1), "no jitter: 72 waits, and each lasted its whole time"),
    "no jitter where a half is asked": (EQUAL, lambda number: 2.0 ** (number - 1), "no jitter: 72 waits, and each"),
    "no jitter where a share is asked": (0.2, lambda number: 2.0 ** (number - 1), "no jitter: 72 waits, and each"),
    "too much jitter": (0.2, drawn(FULL), "waits are too short: wait "),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_waits_are_told_with_the_worst_of_them(name: str) -> None:
    jitter, wait, sentence = WRONG[name]
    held, detail = judge_backoff(rule(jitter), jobs(wait))
    assert held is False
    assert sentence in detail


def test_attempts_without_end_and_an_end_too_soon_are_wrong() -> None:
    wait = drawn(NONE)
    assert judge_backoff(rule(NONE, max_attempts=3), jobs(wait))[1] == "case-0 made 4 attempts, at most 3"
    assert judge_backoff(rule(NONE, max_attempts=4), jobs(wait, given_up=True))[0] is True
    assert judge_backoff(rule(NONE, max_attempts=5), jobs(wait))[0] is True
    given_up = judge_backoff(rule(NONE, max_attempts=5), jobs(wait, given_up=True))
    assert given_up == (False, "case-0 was given up after 4 attempt(s) of 5")


def test_a_limit_holds_the_waits_down_and_slack_lets_them_be_late() -> None:
    assert judge_backoff(rule(NONE, limit=2.0), jobs(lambda number: min(2.0, 2.0 ** (number - 1))))[0] is True
    late: Wait = lambda number: 2.0 ** (number - 1) + 1.0  # noqa: E731
    assert judge_backoff(rule(NONE), jobs(late))[0] is True
    assert judge_backoff(rule(NONE, slack=0.5), jobs(late))[0] is False
    assert rule(NONE, limit=9.0).wait(10_000) == 9.0


def test_who_was_told_when_to_come_again_comes_no_earlier() -> None:
    """And is not late for it: what the provider asked for outranks the backoff."""
    kept: Wait = lambda number: 9.5 if number == 1 else drawn(NONE)(number)  # noqa: E731
    told = [replace(one, asked=(9.0, 0.0, 0.0, 0.0)) for one in jobs(kept)]
    assert judge_backoff(rule(NONE, retry_after=True), told)[0] is True
    assert judge_backoff(rule(NONE), jobs(kept))[0] is False
    rude = [replace(one, asked=(0.0, 9.0, 0.0, 0.0)) for one in jobs(drawn(NONE))]
    held, detail = judge_backoff(rule(NONE, retry_after=True), rude)
    assert held is False
    assert detail.startswith("24 of 72 waits are too short: wait 2 of case-")
    assert detail.endswith("s, and Retry-After had asked for 9 s")
    assert judge_backoff(rule(NONE), rude)[0] is True


def test_waits_that_the_provider_asked_for_say_nothing_of_jitter() -> None:
    asked = [replace(one, asked=(9.0, 0.0)) for one in jobs(lambda number: 9.5, attempts=2)]
    assert judge_backoff(rule(retry_after=True), asked) == (
        None,
        "0 waits (and 24 that the provider asked for) are too few to tell full jitter from no wait at all",
    )
    assert judge_backoff(rule(EQUAL, retry_after=True), asked)[0] is True


def test_what_cannot_be_told_is_no_pass() -> None:
    """No second call, or too few waits to see that there is no wait at all."""
    assert judge_backoff(rule(NONE), jobs(drawn(NONE), attempts=1)) == (None, "no case called a second time")
    few = judge_backoff(rule(), jobs(drawn(FULL), attempts=2, cases=20))
    assert few == (None, "20 waits are too few to tell full jitter from no wait at all")
    assert judge_backoff(rule(), jobs(drawn(FULL), attempts=2, cases=30))[0] is True
    assert judge_backoff(rule(), jobs(lambda number: 0.01, attempts=2, cases=20))[0] is False
    assert judge_backoff(rule(NONE), jobs(drawn(NONE), attempts=2, cases=1))[0] is True
    assert judge_backoff(rule(EQUAL), jobs(lambda number: 1.0, attempts=2, cases=ALL_WHOLE - 1))[0] is True


def test_a_rule_is_told_in_one_line() -> None:
    assert rule(0.1, limit=300.0, max_attempts=8).text == (
        "backoff at payments: base 1 s, factor 2, jitter 10%, at most 300 s, 8 attempts"
    )
