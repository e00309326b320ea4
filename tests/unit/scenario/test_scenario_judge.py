"""The verdict of a scenario: what is broken by whom, what nobody can know, and what never happened."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import jobcheck
from jobcheck.checks.backoff import BackoffRule
from jobcheck.checks.clean import Clean
from jobcheck.checks.contracts import at_least_once, exactly_once
from jobcheck.clock import ManualClock
from jobcheck.faults.model import Deploy, Duplicate, Fail, How, Kill, Outage
from jobcheck.faults.outages import Reply
from jobcheck.history.records import CaseRecord, Effect
from jobcheck.runner.scenarios.book import Book, Delivery
from jobcheck.runner.scenarios.judge import Judged, Seen, judge_scenario
from jobcheck.runner.scenarios.probes import HEALING, Probe
from jobcheck.runner.scenarios.work import Enqueued
from jobcheck.runner.scenarios.world import Done
from jobcheck.scenario.model import (
    BackoffIs,
    ContractHolds,
    CountsAre,
    Limit,
    NoneLost,
    RecoveredWithin,
    Scenario,
    Workload,
)
from jobcheck.systems.contract import Settings
from jobcheck.wire.unit import Kind, Unit

CHARGE, MAIL = exactly_once("payments POST /charges"), at_least_once("mail")
LATE = Settings("at-least-once", "late ack")
EARLY = Settings("at-most-once", "early ack", mend="set task_acks_late=True")


def effects(case: CaseRecord, charges: int = 1, mails: int = 1) -> list[Effect]:
    """What happened for a case; its invoice's number is in every body."""
    number = case.ids["invoice"]
    charge = Effect(0, 0.0, CHARGE.effect, f'{{"invoice":{number}}}', case=case.id)
    mail = Effect(0, 0.0, MAIL.effect, f"Your invoice {number}", case=case.id)
    return [charge] * charges + [mail] * mails


def record(number: int) -> CaseRecord:
    return CaseRecord(f"case-{number}", number, {"invoice": str(900_000 + number)})


class Story:
    """Five cases, all well; a test spoils some of it."""

    def __init__(self) -> None:
        self.settings = LATE
        self.cases = [Enqueued(record(number), True) for number in range(1, 6)]
        self.effects = {case.record.id: effects(case.record) for case in self.cases}
        self.book = Book(ManualClock(), lambda: True)
        for case in self.cases:
            self.book.case = case.record.id
            self.book.enqueued(f"job-{case.record.number}", parent="", producer=True, version="")
            self.hand(case.record.number, "w1", "reserve", "ack")
        self.scenario = Scenario(
            "t", "r.py:s", Workload("f", 5, 1.0), expect=(ContractHolds(CHARGE), ContractHolds(MAIL))
        )
        self.done: list[Done] = []
        self.recovered: float | None = 1.0
        self.problem = ""
        self.durable = True
        self.probes: list[Probe] = []

    def hand(
        self, number: int, worker: str, *passed: str, fate: str = "ended", how: str = "succeeded", version: str = ""
    ) -> None:
        """One delivery of a case's job; several are told in order."""
        delivery = Delivery(worker, 1, version, 0.0, reserved="reserve" in passed, acked="ack" in passed)
        self.book.delivered(f"job-{number}", Unit(b"", Kind.REPLY), delivery)
        delivery.fate, delivery.how = fate, how

    def only(self, number: int, *passed: str, **fate: str) -> None:
        """The case's job had this delivery and no other."""
        self.book.jobs[f"job-{number}"].deliveries.clear()
        self.hand(number, "w1", *passed, **fate)

    def judged(self, **changes: Any) -> Judged:
        measure = record(0)
        return judge_scenario(
            Seen(
                scenario=replace(self.scenario, **changes),
                system=jobcheck.celery("shop:app"),
                settings=self.settings,
                clean=Clean(measure, tuple(effects(measure))),
                cases=self.cases,
                effects=[one for found in self.effects.values() for one in found],
                book=self.book,
                done=self.done,
                recovered=self.recovered,
                problem=self.problem,
                durable=self.durable,
                probes=self.probes,
            )
        )


def held(judged: Judged) -> list[bool | None]:
    return [item["held"] for item in judged.report["expectations"]]


def test_all_well_is_ok() -> None:
    judged = Story().judged(expect=(ContractHolds(CHARGE), NoneLost(), RecoveredWithin(2.0)))
    assert (judged.verdict, judged.report["problem"]) == ("ok", "")
    assert judged.report["counts_text"] == "5 attempted, 5 acknowledged: 5 ok"


def test_a_second_charge_is_the_handlers() -> None:
    """Also when the job was killed in between: it must stand that."""
    story = Story()
    story.effects["case-2"] = effects(record(2), charges=2)
    story.only(2, "reserve", fate="died", how="")
    judged = story.judged()
    assert (judged.verdict, held(judged)) == ("broken", [False, True])
    assert judged.report["losses"] == {"handler": 1, "settings": 0, "transport": 0}
    (bad,) = judged.report["bad"]
    assert (bad["case"], bad["ids"], bad["layer"]) == ("case-2", {"invoice": "900002"}, "handler")
    assert bad["broken"] == ["payments POST /charges: 2 times, expected 1"]


def test_a_job_that_was_never_reserved_is_lost_at_the_transport() -> None:
    """No contract is broken by it; `none_lost` and `counts` are."""
    story = Story()
    story.effects["case-3"] = []
    story.only(3, fate="died", how="")
    assert (story.judged().verdict, held(story.judged())) == ("ok", [True, True])
    judged = story.judged(expect=(NoneLost(), CountsAre((Limit("lost", "<=", 1),)), CountsAre((Limit("ok", "=", 5),))))
    assert (judged.verdict, held(judged)) == ("broken", [False, True, False])
    assert judged.report["losses"] == {"handler": 0, "settings": 0, "transport": 1}


def test_a_job_that_was_settled_before_it_ran_is_lost_by_the_settings() -> None:
    story = Story()
    story.settings = EARLY
    story.effects["case-3"] = []
    story.only(3, "reserve", "ack", fate="died", how="")
    judged = story.judged()
    assert (judged.verdict, judged.report["losses"]["settings"]) == ("broken", 1)


def test_a_job_that_was_acknowledged_for_a_dead_child_is_lost_by_the_settings() -> None:
    """Late acks alone do not save it: the parent acknowledges what nobody has done."""
    story = Story()
    story.effects["case-3"] = []
    story.only(3, "reserve", fate="died", how="")
    delivery = story.book.jobs["job-3"].deliveries[0]
    story.book.settled("job-3", delivery)
    assert delivery.passed == ("delivery", "reserve", "ack", "orphaned")
    assert story.judged().report["losses"] == {"handler": 0, "settings": 1, "transport": 0}
    assert "task_reject_on_worker_lost" in jobcheck.celery("shop:app").blame_loss(delivery.passed, "", LATE).advice


def test_a_job_that_ran_to_its_end_and_left_nothing_is_the_handlers() -> None:
    """Nobody else had it."""
    story = Story()
    story.effects["case-3"] = effects(record(3), mails=0)
    judged = story.judged()
    assert (judged.verdict, judged.report["losses"]["handler"]) == ("broken", 1)


def test_a_job_that_failed_visibly_is_good_enough_after_an_outage_and_not_after_a_kill() -> None:
    story = Story()
    story.effects["case-4"] = effects(record(4), mails=0)
    story.only(4, "reserve", "ack", how="failed: raised TryAgain")
    story.done = [Done(1.0, "x", 0, "", met=True)]
    assert story.judged(faults=(Outage("payments", Reply(503)),)).verdict == "ok"
    judged = story.judged(faults=(Kill(),))
    assert (judged.verdict, judged.report["bad"][0]["verdict"]) == ("broken", "failed visibly")


def test_what_was_not_finished_when_the_run_ended_is_not_lost() -> None:
    """And nobody calls it well."""
    story = Story()
    story.effects["case-5"] = []
    story.recovered = None
    story.problem = "stopped after 3.0 s"
    judged = story.judged(expect=(NoneLost(),))
    assert (judged.verdict, judged.report["problem"]) == ("unknown", "stopped after 3.0 s")
    assert judged.report["counts_text"] == "5 attempted, 5 acknowledged: 4 ok, 1 unfinished"
    assert not story.judged(expect=(RecoveredWithin(5.0),)).report["expectations"][0]["held"]


def test_a_fault_that_met_no_job_is_not_exercised() -> None:
    """One of its turns is enough."""
    story = Story()
    story.done = [Done(1.0, "kill w1", 0, "it was idle"), Done(2.0, "kill w1", 0, "", met=True)]
    assert story.judged(faults=(Kill(),)).verdict == "ok"
    judged = story.judged(faults=(Kill(), Duplicate(0.1)))
    assert judged.verdict == "unknown"
    assert judged.report["problem"] == "not exercised: duplicate 10% at once never met a running job"


def test_a_deploy_is_exercised_when_the_new_workers_read_old_jobs() -> None:
    """And where both versions stay, also the reverse."""
    story = Story()
    whole, half = (Deploy("v2", ""),), (Deploy("v2", "", 0.5),)
    assert story.judged(faults=whole).verdict == "unknown"
    story.hand(1, "w2", "reserve", "ack", version="v2")
    assert (story.judged(faults=whole).verdict, story.judged(faults=half).verdict) == ("ok", "unknown")
    story.book.jobs["job-2"].version = "v2"
    assert story.judged(faults=half).verdict == "ok"


BACKOFF = BackoffIs(BackoffRule("payments", 1.0, jitter="none"))


def test_backoff_is_asked_of_the_attempts_of_each_case_and_without_any_it_is_unknown() -> None:
    """A case whose job was killed or doubled is left out: the broker said when it came again."""
    story = Story()
    judged = story.judged(expect=(BACKOFF,))
    assert (judged.verdict, held(judged)) == ("unknown", [None])
    assert judged.report["problem"] == (
        "cannot be told: backoff at payments: base 1 s, factor 2, jitter none: no case called a second time"
    )

    def tried(number: int, *times: float) -> None:
        refused, mail = effects(record(number))
        refused = replace(refused, applied=False, note="503", fields={"method": "POST", "path": "/charges"})
        calls = [replace(refused, at=at) for at in times[:-1]]
        story.effects[f"case-{number}"] = [*calls, replace(refused, at=times[-1], applied=True, note=""), mail]

    tried(1, 0.0, 1.0, 3.1)
    tried(2, 0.0, 0.01)
    assert held(story.judged(expect=(BACKOFF,))) == [False]
    story.only(2, "reserve", fate="died")
    story.hand(2, "w1", "reserve", "ack")
    (item,) = story.judged(expect=(BACKOFF,)).report["expectations"]
    assert (item["held"], item["detail"]) == (
        True,
        "2 waits of 1 cases, from 1.0 s to 2.1 s; 1 case(s) left out, killed or doubled",
    )
    refunds = BackoffIs(replace(BACKOFF.rule, route="POST /refunds"))
    assert held(story.judged(expect=(refunds,))) == [None]


def test_an_effect_that_belongs_to_nobody_is_broken_unless_an_enqueue_call_failed() -> None:
    """The one whose call failed may own it."""
    story = Story()
    story.effects["?"] = [replace(effects(record(9))[0], case="")]
    assert story.judged().verdict == "broken"
    story.cases.append(Enqueued(CaseRecord("case-9", 9), False, "connection refused"))
    judged = story.judged()
    assert judged.verdict == "unknown"
    assert judged.report["enqueue_errors"] == ["connection refused"]
    assert judged.report["counts"]["vanished"] == 1


def test_a_recovery_after_which_no_job_runs_is_none() -> None:
    """Also when everything that was enqueued before is well."""
    story = Story()
    story.probes = [Probe("broker comes back", 2.0, ran=0.1), Probe(HEALING, 9.0, problem="was not handed out")]
    judged = story.judged()
    assert (judged.verdict, held(judged)) == ("broken", [True, True, False])
    assert judged.report["expectations"][2]["text"] == "a job enqueued after the recovery runs"
    story.probes[1] = Probe(HEALING, 9.0, ran=0.2)
    assert story.judged().verdict == "ok"


def test_a_job_that_fails_when_all_is_healed_is_the_handlers_though_one_that_met_the_fault_is_excused() -> None:
    story = Story()
    story.done = [Done(1.0, "db comes back", 0, met=True)]
    for number in (1, 2):
        story.effects[f"case-{number}"] = []
        story.only(number, "reserve", "ack", how="failed: raised X")
    story.probes = [Probe(HEALING, 9.0, case="case-2", ran=0.1, problem="failed: raised X")]
    judged = story.judged(faults=(Fail("db", "kill"),))
    assert [(bad["case"], bad["layer"]) for bad in judged.report["bad"]] == [("case-1", ""), ("case-2", "handler")]
    assert held(judged) == [False, False, False]


def test_a_job_that_the_broker_never_took_was_not_forgotten_by_it() -> None:
    """Whoever took it for enqueued all the same is to blame."""
    story = Story()
    story.effects["case-1"] = []
    story.book.jobs["job-1"].deliveries.clear()
    story.book.jobs["job-1"].untaken = True
    story.done = [Done(1.0, "broker is back", 0, met=True)]
    assert story.judged(faults=(Fail("broker", "kill"),)).report["losses"]["handler"] == 1


@pytest.mark.parametrize("retried", [False, True])
@pytest.mark.parametrize(
    ("how", "durable", "layer"),
    [
        ("wipe", True, "transport"),
        ("kill", False, "settings"),
        ("restart", False, "settings"),
        ("kill", True, "transport"),  # the answer that gave it out never arrived
    ],
)
def test_a_job_that_the_broker_forgot_is_laid_where_it_could_have_been_kept(
    how: How, durable: bool, layer: str, retried: bool
) -> None:
    story = Story()
    story.effects["case-1"] = []
    story.durable = durable
    if retried:
        story.only(1, "reserve", "ack", how="retrying")
    else:
        story.book.jobs["job-1"].deliveries.clear()
    story.done = [Done(1.0, "broker is back", 0, met=True)]
    judged = story.judged(faults=(Fail("broker", how),))
    assert judged.report["losses"][layer] == 1
    assert judged.verdict == ("ok" if layer == "transport" else "broken")
    assert Story().judged(faults=(Fail("broker", how),)).report["losses"][layer] == 0
