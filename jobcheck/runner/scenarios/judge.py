"""From what a scenario showed to its verdict: counts, layers of losses, expectations, faults that met nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ...checks.backoff import judge_backoff
from ...checks.clean import Clean, uncontracted
from ...checks.contracts import Contract, at_least_once
from ...checks.counts import CaseOutcome, CaseResult, Counts, Tally, tally
from ...explore.causes import HANDLER, SETTINGS, TRANSPORT
from ...faults.model import Deploy, Duplicate, Fail, Fault, Outage, Poison
from ...history.ids import short_id
from ...history.records import Effect, Verdict
from ...scenario.model import BackoffIs, ContractHolds, CountsAre, NoneLost, RecoveredWithin, Scenario
from ...systems.contract import THROWN, Blame, Settings, System
from .book import DIED, ENDED, RETRYING, Book, Job
from .probes import HEALING, Probe
from .providers import attempts_of
from .work import Enqueued
from .world import Done

SHOWN = 20
"""Bad cases that are told in full."""
RUNS = "a job enqueued after the recovery runs"
FIRST_RUN = (
    "a worker that does not know a job keeps nothing of it: deploy the code that runs a new job to every worker before "
    "any code that enqueues it"
)
VISIBLE = "visible"
"""In place of a layer: filed as failed after a fault of the network, which is what is asked of it."""


@dataclass(slots=True)
class Seen:
    """What is judged."""

    scenario: Scenario
    system: System
    settings: Settings
    clean: Clean
    cases: Sequence[Enqueued]
    effects: Sequence[Effect]
    book: Book
    done: Sequence[Done]
    recovered: float | None
    """Seconds from the healing until it was quiet; None: it was not."""
    problem: str = ""
    """Why the run says less than it should."""
    aborted: bool = False
    """It was stopped: that faults are missing is no news then."""
    advice: dict[str, None] = field(default_factory=dict)
    """What is found while judging that people should know."""
    kept: str = ""
    """Why the clock was not sped up, where that was asked for: what takes long in real time is no fault then."""
    durable: bool = True
    """What the broker has answered, a restart or a SIGKILL does not take from it."""
    probes: Sequence[Probe] = ()
    """Cases that were enqueued after a recovery, the last one when all was over."""


@dataclass(slots=True)
class Judged:
    """The verdict and everything that it stands on, as plain values."""

    verdict: str
    """`ok`, `broken` or `unknown`."""
    counts: Counts
    report: dict[str, Any] = field(default_factory=dict)


def judge_scenario(seen: Seen) -> Judged:
    """`broken` beats `unknown` beats `ok`. Losses at the transport break `none_lost` and `counts`, and no contract."""
    outcomes = [CaseOutcome(case.record, case.acknowledged, seen.book.filed(case.record.id)) for case in seen.cases]
    found, unfinished = _told_apart(tally(outcomes, seen.effects, _measures(seen), seen.clean), seen)
    layers = {result.case.id: _layer(result, seen) for result in found.bad}
    faults = [_fault(number, fault, seen) for number, fault in enumerate(seen.scenario.faults)]
    expectations = [_expectation(item, found, layers, seen) for item in seen.scenario.expect]
    expectations += [_runs_again(probe) for probe in seen.probes if probe.after == HEALING]
    problems = [seen.problem] if seen.problem else []
    if not seen.aborted:
        problems += [f"not exercised: {item['text']} never met a running job" for item in faults if not item["met"]]
    problems += [f"cannot be told: {item['text']}: {item['detail']}" for item in expectations if item["held"] is None]
    if not seen.cases:
        problems.append("no case was enqueued")
    unsure = [case for case in seen.cases if not case.acknowledged]
    broken = any(item["held"] is False for item in expectations)
    if found.orphans and unsure:
        problems.append(f"{len(found.orphans)} effect(s) may belong to cases whose enqueue call failed")
    elif found.orphans:
        broken = True
    verdict = "broken" if broken else "unknown" if problems else "ok"
    losses = {layer: sum(value == layer for value in layers.values()) for layer in (HANDLER, SETTINGS, TRANSPORT)}
    report = {
        "counts": asdict(found.counts),
        "counts_text": found.counts.text + (f", {unfinished} unfinished" if unfinished else ""),
        "unfinished": unfinished,
        "expectations": expectations,
        "faults": faults,
        "losses": losses,
        "bad": [_bad(result, layers[result.case.id], seen) for result in found.bad[:SHOWN]],
        "bad_left_out": max(0, len(found.bad) - SHOWN),
        "orphans": list(found.orphans[:SHOWN]),
        "enqueue_errors": [case.error.splitlines()[0] for case in unsure[:3]],
        "uncontracted": uncontracted(seen.clean, seen.scenario.contracts),
        "verdict": verdict,
        "problem": "; ".join(problems),
    }
    return Judged(verdict, found.counts, report)


def _measures(seen: Seen) -> list[Contract]:
    """The contracts; where losses are counted, a case is also lost when it lacks an effect without a contract."""
    contracts = list(seen.scenario.contracts)
    if any(isinstance(item, NoneLost | CountsAre) for item in seen.scenario.expect):
        contracts += [at_least_once(name) for name in uncontracted(seen.clean, contracts)]
    return contracts


def _told_apart(found: Tally, seen: Seen) -> tuple[Tally, int]:
    """Without those that lack something because the run ended before they did: nobody knows what becomes of them."""
    if seen.recovered is not None:
        return found, 0
    still = [one for one in found.bad if one.verdict is Verdict.LOST]
    counts = replace(found.counts, lost=found.counts.lost - len(still))
    return Tally(counts, tuple(one for one in found.bad if one not in still), found.orphans), len(still)


# Layers


def _layer(result: CaseResult, seen: Seen) -> str:
    """Where a bad case is laid. What happened too often is the handler's; what is missing is asked of the wire."""
    jobs = seen.book.of_case(result.case.id)
    died = any(one.fate == DIED for job in jobs for one in job.deliveries)
    if result.verdict is Verdict.FAILED_VISIBLY and not died and _soft(seen.scenario):
        return HANDLER if result.case.id in _last(seen) else VISIBLE
    if any(item.verdict is not Verdict.LOST for item in result.broken):
        return HANDLER
    if thrown := [one.how for job in jobs for one in job.deliveries if one.how.startswith(THROWN)]:
        seen.advice[f"{thrown[-1]}; {FIRST_RUN}"] = None
        return HANDLER
    if stored := _lost_in_storage(jobs, seen):
        seen.advice[stored.advice] = None
        return stored.layer
    for job in jobs:
        if _unfinished(job) and (last := job.last) is not None:
            return seen.system.blame_loss(last.passed, "", seen.settings).layer
    return HANDLER


def _last(seen: Seen) -> list[str]:
    """Cases that were enqueued when all was healed: nothing excuses their failure."""
    return [probe.case for probe in seen.probes if probe.after == HEALING]


def _lost_in_storage(jobs: Sequence[Job], seen: Seen) -> Blame | None:
    """A job, or its retry, was put on the broker and never handed out, and the broker failed: who could have kept it.
    What it never said that it had taken is nobody's but the one's who took it for enqueued."""
    if seen.book.filed(jobs[0].case) if jobs else True:
        return None
    if all((job.deliveries and not _comes_again(job)) or job.untaken for job in jobs):
        return None
    broker = seen.system.broker
    hows = {fault.how for fault in seen.scenario.faults if isinstance(fault, Fail) and fault.service == broker}
    worst = next((how for how in ("wipe", "kill", "restart") if how in hows), "")
    return seen.system.blame_storage(worst, seen.durable, seen.settings) if worst else None


def _comes_again(job: Job) -> bool:
    """The last that was heard of it is that it will be tried again."""
    return (last := job.last) is not None and last.how == RETRYING


def _unfinished(job: Job) -> bool:
    """Its last delivery ended with its worker or its connection, and it was not handed out again."""
    last = job.last
    if last is None or any(one.fate == ENDED and one.how == "succeeded" for one in job.deliveries):
        return False
    return last.fate == DIED or (last.stranded and not last.reserved) or (last.fate != ENDED and last.stranded)


def _soft(scenario: Scenario) -> bool:
    return any(isinstance(fault, Poison | Outage | Fail) for fault in scenario.faults)


# Expectations


def _expectation(item: Any, found: Tally, layers: dict[str, str], seen: Seen) -> dict[str, Any]:
    held, detail = _held(item, found, layers, seen)
    return {"text": item.text, "line": item.where.line, "held": held, "detail": detail}


def _runs_again(probe: Probe) -> dict[str, Any]:
    """Nobody has to write this one down: without it a recovery is none."""
    detail = f"a job enqueued after the healing {probe.problem}" if probe.problem else ""
    return {"text": RUNS, "line": 0, "held": not probe.problem, "detail": detail}


def _held(item: Any, found: Tally, layers: dict[str, str], seen: Seen) -> tuple[bool | None, str]:
    counts = found.counts
    if isinstance(item, ContractHolds):
        return _contract(item.contract.text, found, layers)
    if isinstance(item, NoneLost):
        return counts.lost == 0, f"{counts.lost} lost" if counts.lost else ""
    if isinstance(item, CountsAre):
        values = asdict(counts)
        wrong = [limit for limit in item.limits if not limit.holds(values[limit.name])]
        return not wrong, ", ".join(f"{limit.name} is {values[limit.name]}" for limit in wrong)
    if isinstance(item, RecoveredWithin):
        if seen.recovered is None:
            return (None if seen.kept else False), "it did not become quiet"
        return seen.recovered <= item.seconds, f"quiet {seen.recovered:.1f} s after the healing"
    assert isinstance(item, BackoffIs)
    attempts, left_out = attempts_of(item.rule, seen.effects, seen.book, seen.clean)
    held, detail = judge_backoff(item.rule, attempts)
    return held, detail + (f"; {left_out} case(s) left out, killed or doubled" if left_out else "")


def _contract(text: str, found: Tally, layers: dict[str, str]) -> tuple[bool, str]:
    """A contract is broken by the handler and by the settings; what the transport did is told beside it."""
    broken = [(one, result) for result in found.bad for one in result.broken if one.contract == text]
    mine = [one for one, result in broken if layers[result.case.id] in (HANDLER, SETTINGS)]
    others = len(broken) - len(mine)
    parts = [f"{len(mine)} case(s), such as {mine[0].phrase}"] if mine else []
    if others:
        parts.append(f"{others} lost at the transport or filed as failed, told apart")
    return not mine, "; ".join(parts)


# Faults


def _fault(number: int, fault: Fault, seen: Seen) -> dict[str, Any]:
    mine = [done for done in seen.done if done.fault == number]
    met = any(done.met for done in mine)
    if isinstance(fault, Deploy):
        # At a point it met the job that stood there; by the clock, a job must have met the other version.
        met = _deployed(fault, seen.book) or (fault.point is not None and met)
    elif isinstance(fault, Duplicate):
        met = met or any(job.copies and len(job.deliveries) > 1 for job in seen.book.jobs.values())
    return {
        "text": fault.text,
        "line": fault.where.line,
        "done": len(mine),
        "met": met,
    }


def _deployed(fault: Deploy, book: Book) -> bool:
    """A worker of the new version ran a job of another one; where both stay, the reverse happened, too."""
    pairs = {(job.version, one.version) for job in book.jobs.values() for one in job.deliveries}
    forth = any(made != fault.version == ran for made, ran in pairs)
    back = any(made == fault.version != ran for made, ran in pairs)
    return forth and (back or fault.mix == 1)


# Bad cases


def _bad(result: CaseResult, layer: str, seen: Seen) -> dict[str, Any]:
    jobs = seen.book.of_case(result.case.id)
    story = sorted((message for job in jobs for message in job.messages), key=lambda message: message.at)
    clean = seen.effects
    return {
        "id": short_id(seen.scenario.title, layer, *(one.phrase for one in result.broken)),
        "case": result.case.id,
        "ids": dict(result.case.ids),
        "verdict": str(result.verdict),
        "layer": "" if layer == VISIBLE else layer,
        "filed": seen.book.filed(result.case.id),
        "broken": [one.phrase for one in result.broken],
        "effects": [
            {"at": round(one.at - seen.book.began, 3), "name": one.name, "applied": one.applied, "note": one.note}
            for one in clean
            if one.case == result.case.id
        ],
        "jobs": [
            {
                "id": job.id,
                "deliveries": [
                    {"worker": one.worker, "at": round(one.at, 3), "fate": one.fate, "passed": list(one.passed)}
                    for one in job.deliveries
                ],
                "copies": job.copies,
            }
            for job in jobs
        ],
        "story": [
            {
                "at": round(message.at, 3),
                "lane": message.worker,
                "upstream": message.upstream,
                "way": message.way,
                "text": message.text,
                "kind": message.kind,
            }
            for message in story
        ],
    }
