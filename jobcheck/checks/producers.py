"""The code that enqueues: a row is committed if and only if its job exists (rule 3).

What a producer committed and which jobs the broker holds afterwards are effects like others: `db INSERT invoices`,
`job shop.jobs.render_invoice_pdf`. A producer that died before its commit has done nothing, and that is right: nobody
was told that it had worked. So its contracts hold *given the row*: with it they are judged as everywhere, and without
it nothing of what they speak may have happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ..history.records import NEVER_PASS, Effect, TrialRecord, Verdict
from .clean import Clean, happened, times
from .contracts import Contract, at_least_once
from .judge import Broken, Judgement, judge

JOB = "job "
"""How the names of jobs begin."""
COMMITTED = "committed"
"""The field that tells a row of the producer's transactions from other effects."""


def is_row(effect: Effect) -> bool:
    """Whether it is something that the producer committed."""
    return COMMITTED in effect.fields


def rows_of(clean: Clean) -> list[str]:
    """What the clean run committed, by name."""
    return list(dict.fromkeys(effect.name for effect in clean.effects if is_row(effect)))


def jobs_of(clean: Clean) -> list[str]:
    """What the clean run enqueued, by name."""
    return list(dict.fromkeys(effect.name for effect in clean.effects if effect.name.startswith(JOB)))


def given_the_row(clean: Clean) -> tuple[Contract, ...]:
    """The contracts of a producer of which nothing more was said: with one of its new rows, all of them and each job.

    A job may come twice: no producer can exclude that, and a right job bears it. Updates are left out, as they may be
    the relay's own book-keeping.
    """
    names = [name for name in rows_of(clean) if " INSERT " in name] + jobs_of(clean)
    return tuple(at_least_once(name) for name in names)


def judge_producer(trial: TrialRecord, clean: Clean, contracts: Sequence[Contract]) -> Judgement:
    """Compares what a struck producer left behind with the clean run, given the row."""
    effects = happened(trial)
    known = set(rows_of(clean))
    judgement = judge(trial, clean, contracts)
    if judgement.verdict in NEVER_PASS or any(is_row(effect) and effect.name in known for effect in effects):
        return judgement
    if not trial.settled:
        return judgement
    counts = Counter(effect.name for effect in effects if not is_row(effect))
    without = " and ".join(name for name in rows_of(clean) if " INSERT " in name) or " and ".join(known)
    broken = tuple(
        Broken(contract.text, name, Verdict.UNEXPECTED, count, 0, f"{name}: {times(count)}, without {without}")
        for name, count in counts.items()
        for contract in contracts
        if contract.matches(name)
    )
    return Judgement(Verdict.UNEXPECTED if broken else Verdict.OK, broken)


def judge_of(mode: str) -> Callable[[TrialRecord, Clean, Sequence[Contract]], Judgement]:
    """How trials of this mode are judged."""
    return judge_producer if mode == "producer" else judge
