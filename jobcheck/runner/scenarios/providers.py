"""What the providers of a scenario saw: how many calls counted, which were refused, and the attempts of each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...checks.backoff import Attempts, BackoffRule
from ...checks.clean import Clean
from ...effects.provider import HttpProvider
from ...faults.routes import EVERYTHING, fits
from ...history.records import Effect
from .book import DIED, Book

REPLAYED = "replayed"
"""What the ledger says of a call that was made again under the same key."""


def told(providers: Mapping[str, HttpProvider], effects: Sequence[Effect]) -> list[dict[str, Any]]:
    """A row for each provider that was called."""
    rows = []
    for name, provider in providers.items():
        mine = [effect for effect in effects if effect.name.partition(" ")[0] == name]
        refused = Counter(effect.note for effect in mine if not effect.applied and effect.note != REPLAYED)
        counters = provider.counters
        if not mine:
            continue
        rows.append(
            {
                "name": name,
                "counted": sum(effect.applied for effect in mine),
                "replayed": sum(effect.note == REPLAYED for effect in mine),
                "refused": dict(refused.most_common()),
                "waited": sum(counter.waited for counter in counters),
                "longest_wait": round(max((counter.longest for counter in counters), default=0.0), 3),
            }
        )
    return rows


def attempts_of(rule: BackoffRule, effects: Sequence[Effect], book: Book, clean: Clean) -> tuple[list[Attempts], int]:
    """The attempts of each case to do one thing at the provider, and how many cases were left out.

    A job that was killed or doubled comes again when the broker says so, and not when its backoff does: its case says
    nothing of it. Where a clean case does the same thing more than once, they are told apart by their keys.
    """
    several = {name for name, number in clean.counts().items() if number > 1}
    groups: dict[tuple[str, str, str], list[Effect]] = {}
    for effect in effects:
        if not effect.case or effect.name.partition(" ")[0] != rule.provider or not _routed(rule, effect):
            continue
        what = (effect.key or effect.body) if effect.name in several else ""
        groups.setdefault((effect.case, effect.name, what), []).append(effect)
    found, out = [], set()
    for (case, _, _), calls in groups.items():
        if _disturbed(case, book):
            out.add(case)
            continue
        failed = bool(book.filed(case)) and not calls[-1].applied and calls[-1].note != REPLAYED
        asked = tuple(float(call.fields.get("retry_after", 0.0)) for call in calls)
        found.append(Attempts(case, tuple(call.at for call in calls), failed, asked if any(asked) else ()))
    return found, len(out)


def _routed(rule: BackoffRule, effect: Effect) -> bool:
    return fits(rule.route or EVERYTHING, str(effect.fields.get("method", "")), str(effect.fields.get("path", "")))


def _disturbed(case: str, book: Book) -> bool:
    jobs = book.of_case(case)
    return any(job.copies or any(one.fate == DIED for one in job.deliveries) for job in jobs)
