"""Backoff: whether the waits between the attempts of a job, as a provider saw them, are those that were asked for.

The n-th wait is `base * factor ** (n - 1)` seconds, at most `limit`, before jitter:

    none     that long
    equal    from half of it to all of it
    full     from nothing to all of it
    10%      a tenth more or less

A wait that is too short or too long is seen alone. With full jitter no wait is too short, so that all of them together
are asked: how likely is it that full jitter gives so little? Chernoff's bound says it at most, where each wait is taken
for nothing or all of it: no other wait with the same bounds and mean is further off, also not one in whole seconds, as
Celery draws it. Less than `ALPHA`, and the claim does not hold. Where waits of a tenth (`SHARE`) would not be found
out, there are too few of them to tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

NONE, EQUAL, FULL = "none", "equal", "full"
JITTERS = (NONE, EQUAL, FULL)
ALPHA = 1e-4
"""How unlikely waits must be before they are called wrong."""
SHARE = 0.1
"""Of the longest waits: so short they must be found out, or nothing is said."""
EARLY = 0.05
"""Seconds that a wait may be shorter than it should: clocks and timers are not exact."""
LATE = 5.0
"""Seconds that a wait may be longer: the call's own time, and the job's in the queue."""
STEEP = 700.0
"""What `exp` can take."""
WHOLE = 0.98
"""Of its longest wait: a wait from here on had no jitter."""
ALL_WHOLE = math.ceil(math.log(ALPHA) / math.log(0.5))
"""So many waits without jitter are no accident, even if each was so with one chance in two."""


@dataclass(frozen=True, slots=True)
class BackoffRule:
    """What is claimed of the waits at one provider. Times are seconds."""

    provider: str
    base: float
    """The first wait."""
    factor: float = 2.0
    """By which each wait is longer than the one before."""
    jitter: str | float = NONE
    """`none`, `equal`, `full`, or a share from 0 to 1: so much more or less."""
    max_attempts: int | None = None
    """Attempts of one job at most; one that was given up has made so many."""
    limit: float = math.inf
    """No wait is longer, before jitter."""
    slack: float = LATE
    """How much later than it should an attempt may come."""
    route: str = ""
    """Only calls of this route; empty: all that can change something."""
    retry_after: bool = False
    """Whoever was told `Retry-After` waits at least so long."""

    @property
    def text(self) -> str:
        jitter = self.jitter if isinstance(self.jitter, str) else f"{self.jitter * 100:g}%"
        parts = [f"base {self.base:g} s", f"factor {self.factor:g}", f"jitter {jitter}"]
        parts += [f"at most {self.limit:g} s"] if self.limit < math.inf else []
        parts += [f"{self.max_attempts} attempts"] if self.max_attempts else []
        parts += ["Retry-After is kept"] if self.retry_after else []
        return f"backoff at {self.provider}{' ' + self.route if self.route else ''}: {', '.join(parts)}"

    def wait(self, number: int) -> float:
        """The longest n-th wait with full jitter, from 1."""
        try:
            return min(self.limit, self.base * self.factor ** (number - 1))
        except OverflowError:
            return self.limit

    def bounds(self, number: int) -> tuple[float, float]:
        """The shortest and the longest n-th wait."""
        whole = self.wait(number)
        if isinstance(self.jitter, float):
            return whole * (1 - self.jitter), whole * (1 + self.jitter)
        return {NONE: whole, EQUAL: whole / 2, FULL: 0.0}[self.jitter], whole


@dataclass(frozen=True, slots=True)
class Attempts:
    """The attempts of one case to do one thing at the provider."""

    case: str
    times: tuple[float, ...]
    """When each call came, in seconds, in order."""
    given_up: bool = False
    """The job is filed as failed."""
    asked: tuple[float, ...] = ()
    """Seconds that each answer asked for (`Retry-After`), 0 where it did not; empty: none did."""


@dataclass(frozen=True, slots=True)
class _Wait:
    case: str
    number: int
    seconds: float
    whole: float
    """The longest that full jitter gives."""
    low: float
    high: float
    asked: float = 0.0
    """Seconds that the provider had asked for."""


def judge_backoff(rule: BackoffRule, found: Sequence[Attempts]) -> tuple[bool | None, str]:
    """Whether the claim holds, and what says so; None: it cannot be told."""
    if wrong := _too_many_or_few(rule, found):
        return False, wrong
    waits = [_wait(rule, one, number, pair) for one in found for number, pair in enumerate(pairwise(one.times), 1)]
    if not waits:
        return None, "no case called a second time"
    own = [wait for wait in waits if not wait.asked]
    if wrong := _single(rule, waits) or _together(rule, own):
        return False, wrong
    if rule.jitter == FULL and not _tells(own):
        asked = f" (and {len(waits) - len(own)} that the provider asked for)" if len(own) < len(waits) else ""
        return None, f"{len(own)} waits{asked} are too few to tell full jitter from no wait at all"
    cases = len({wait.case for wait in waits})
    shortest, longest = min(wait.seconds for wait in waits), max(wait.seconds for wait in waits)
    return True, f"{len(waits)} waits of {cases} cases, from {shortest:.1f} s to {longest:.1f} s"


def _wait(rule: BackoffRule, one: Attempts, number: int, pair: tuple[float, float]) -> _Wait:
    low, high = rule.bounds(number)
    asked = one.asked[number - 1] if one.asked else 0.0
    return _Wait(one.case, number, pair[1] - pair[0], rule.wait(number), low, max(high, asked), asked)


def _too_many_or_few(rule: BackoffRule, found: Sequence[Attempts]) -> str:
    if rule.max_attempts is None:
        return ""
    if more := [one for one in found if len(one.times) > rule.max_attempts]:
        worst = max(more, key=lambda one: len(one.times))
        return f"{worst.case} made {len(worst.times)} attempts, at most {rule.max_attempts}"
    if fewer := [one for one in found if one.given_up and len(one.times) < rule.max_attempts]:
        return f"{fewer[0].case} was given up after {len(fewer[0].times)} attempt(s) of {rule.max_attempts}"
    return ""


def _single(rule: BackoffRule, waits: Sequence[_Wait]) -> str:
    """The worst wait that is too short or too long by itself."""
    rude = [one for one in waits if rule.retry_after and one.seconds < one.asked - EARLY]
    if rude:
        worst = min(rude, key=lambda one: one.seconds - one.asked)
        return (
            f"{len(rude)} of {len(waits)} waits are too short: wait {worst.number} of {worst.case} was "
            f"{worst.seconds:.2f} s, and Retry-After had asked for {worst.asked:g} s"
        )
    short = [one for one in waits if one.seconds < one.low * 0.99 - EARLY]
    if short:
        worst = min(short, key=lambda one: one.seconds - one.low)
        return (
            f"{len(short)} of {len(waits)} waits are too short: wait {worst.number} of {worst.case} was "
            f"{worst.seconds:.2f} s, expected {_span(worst)}"
        )
    long = [one for one in waits if one.seconds > one.high + rule.slack]
    if long:
        worst = max(long, key=lambda one: one.seconds - one.high)
        return (
            f"{len(long)} of {len(waits)} waits are too long: wait {worst.number} of {worst.case} was "
            f"{worst.seconds:.2f} s, expected {_span(worst)}, and {rule.slack:g} s of slack"
        )
    return ""


def _span(wait: _Wait) -> str:
    return f"{wait.low:g} s" if wait.low == wait.high else f"{wait.low:g} s to {wait.high:g} s"


def _together(rule: BackoffRule, waits: Sequence[_Wait]) -> str:
    """What only all waits together show: that they are too short for full jitter, or that they have none."""
    if rule.jitter in (NONE, 0.0):
        return ""
    if len(waits) >= ALL_WHOLE and all(_unjittered(rule, one) for one in waits):
        return f"no jitter: {len(waits)} waits, and each lasted its whole time"
    if rule.jitter != FULL:
        return ""
    total = sum(min(one.seconds, one.whole) for one in waits)
    expected = sum(one.whole for one in waits) / 2
    if total < expected and _chance(total, waits) <= ALPHA:
        return (
            f"the waits are too short: {len(waits)} of them took {total:.1f} s together, "
            f"full jitter gives {expected:.1f} s on average"
        )
    return ""


def _unjittered(rule: BackoffRule, wait: _Wait) -> bool:
    if isinstance(rule.jitter, float):
        return abs(wait.seconds - wait.whole) <= (1 - WHOLE) * wait.whole
    return wait.seconds >= WHOLE * wait.whole


def _tells(waits: Sequence[_Wait]) -> bool:
    """Whether waits that are next to nothing would have been seen."""
    if not waits:
        return False
    return _chance(SHARE * sum(one.whole for one in waits), waits) <= ALPHA


def _chance(total: float, waits: Sequence[_Wait]) -> float:
    """The chance, at most, that these waits with full jitter take no longer than so many seconds together.

    It is the least of exp(t * total) * product of (1 + exp(-t * whole)) / 2 over all t > 0; the logarithm of that is
    convex, so its slope is searched for where it is zero.
    """
    wholes = [one.whole for one in waits]
    low, high = 0.0, STEEP / min(wholes)
    for _ in range(60):
        middle = (low + high) / 2
        if total < sum(whole / (1 + math.exp(min(STEEP, middle * whole))) for whole in wholes):
            low = middle
        else:
            high = middle
    return math.exp(low * total + sum(math.log((1 + math.exp(-min(STEEP, low * whole))) / 2) for whole in wholes))
