"""What the schedule says in simulated time, as dialogues."""

from __future__ import annotations

import pytest
from playbook import at, play, seen

from jobcheck.faults.actions import (
    AddToxic,
    ArmKill,
    ArmStop,
    ArmTrouble,
    CaseComing,
    CaseEnqueued,
    DeployProducer,
    DeployWorker,
    DuplicateDelivery,
    EndTrouble,
    Heal,
    JobDelivered,
    JobEnded,
    JobHeld,
    KillWorker,
    PointReached,
    RemoveToxic,
    RestartWorker,
    StartWorkload,
    StopWorker,
    WentQuiet,
    WorkerGone,
    WorkloadEnded,
)
from jobcheck.faults.model import Delay, Deploy, Duplicate, Fail, Fault, Kill, NamedPoint, Poison, Reorder, Restart
from jobcheck.faults.orders import DelayJob, PutBack, ReorderJobs, permuted
from jobcheck.faults.plan import make_plan
from jobcheck.faults.schedule import Schedule
from jobcheck.faults.toxics import Latency
from jobcheck.faults.triggers import After, Span, Trigger
from jobcheck.seeds import Seeds

WORKERS = ("w1", "w2")
START = StartWorkload(20, 10.0)


def schedule(*faults: Fault, seed: int = 1) -> Schedule:
    """Of a plan for 20 cases in 2 s."""
    return Schedule(make_plan(faults, count=20, rate=10.0, workers=WORKERS, seeds=Seeds(seed)))


def begun(*faults: Fault, seed: int = 1) -> play:
    """The dialogue after the workload has begun."""
    return play(schedule(*faults, seed=seed)) >> at(0.0) << [START]


def test_a_worker_that_was_killed_comes_back_after_its_delay() -> None:
    """The delay counts from its real end."""
    kill = Kill("tree", "w2", 0.5, trigger=Trigger(at=1.0))
    told = begun(kill).then_at(1.0) >> at(0.9) << [] >> at(1.1) << [KillWorker("w2", "tree", 0.5)]
    told.then_at(None)
    told = told >> seen(WorkerGone("w2", 0.5)) << []
    told.then_at(1.6) >> at(1.5) << [] >> at(1.6) << [RestartWorker("w2")]


def test_a_worker_that_never_comes_back_is_not_started_again() -> None:
    kill = Kill("tree", "w1", None, trigger=Trigger(at=1.0))
    told = begun(kill) >> at(1.0) << [KillWorker("w1", "tree", None)] >> seen(WorkerGone("w1")) << []
    told.then_at(None)


def test_it_heals_when_the_workload_is_over_and_every_fault_was_there() -> None:
    """Not before, and once."""
    toxic = Poison(Latency(50), "db", "w1", Trigger(at=1.0, lasts=3.0))
    told = begun(toxic) >> at(1.0) << [AddToxic("latency-1", Latency(50), "db", "w1")]
    told = told >> seen(WorkloadEnded()) << [] >> at(2.0) << []
    told.then_at(4.0) >> at(4.0) << [RemoveToxic("latency-1", "db")] >> at(4.0) << [Heal()] >> at(9.0) << []
    assert told.schedule.idle


def test_a_toxic_without_an_end_stays_until_the_healing() -> None:
    """It is there from the start."""
    toxic = AddToxic("latency-1", Latency(50), "db", "workers")
    told = play(schedule(Poison(Latency(50), "db"))) >> at(0.0) << [START, toxic] >> at(2.0) << []
    told >> seen(WorkloadEnded()) << [] >> at(2.1) << [Heal()]


def test_a_fault_may_wait_for_a_delivery() -> None:
    """The n-th job that is handed out; what is handed out again does not count."""
    stop = Restart("w1", Trigger(after=After(2), at=0.3))
    told = begun(stop) >> seen(JobDelivered("a", "w1")) << [] >> seen(JobDelivered("a", "w2")) << []
    told.then_at(None)
    told = told >> at(0.7) << [] >> seen(JobDelivered("b", "w2")) << []
    told.then_at(1.0) >> at(1.0) << [StopWorker("w1")]


def test_a_fault_may_wait_for_a_case() -> None:
    kill = Kill("child", "w1", trigger=Trigger(after=After(2, "cases")))
    told = begun(kill) >> seen(CaseEnqueued()) << [] >> seen(CaseEnqueued()) << []
    told >> at(0.1) << [KillWorker("w1", "child", 0.5)]


def test_it_waits_with_the_healing_for_an_event_that_may_still_come() -> None:
    """Jobs go on when the last case is put in."""
    told = begun(Restart("w1", Trigger(after=After(2)))) >> seen(WorkloadEnded()) << [] >> at(2.0) << []
    told.then_at(None)
    assert told.schedule.waits
    told = told >> seen(JobDelivered("a", "w1")) << [] >> seen(JobDelivered("b", "w1")) << []
    told >> at(3.0) << [StopWorker("w1")] >> at(3.0) << [Heal()]


def test_what_waits_for_an_event_in_vain_is_given_up_when_all_is_quiet() -> None:
    """It is told as unreached, so that the run can say so, and does not happen after the healing."""
    told = begun(Restart("w1", Trigger(after=After(2)))) >> seen(WorkloadEnded()) << [] >> at(2.0) << []
    told = told >> seen(WentQuiet()) << [] >> at(2.1) << [Heal()]
    told = told >> seen(JobDelivered("a", "w1")) << [] >> seen(JobDelivered("b", "w1")) << []
    told.then_at(None) >> at(9.0) << []
    assert [step.action for step in told.schedule.unreached] == [StopWorker("w1")]


def test_a_kill_at_a_named_point_is_armed_at_its_time() -> None:
    point = NamedPoint("payments POST /charges", "after", 3)
    kill = Kill("tree", "any", 1.0, point, Trigger(at=0.5))
    told = begun(kill) >> at(0.5) << [ArmKill("any", point, "tree", 1.0)]
    # The healing waits for it, too.
    told = told >> seen(WorkloadEnded()) << [] >> at(2.0) << []
    told >> seen(PointReached()) << [] >> at(2.1) << [Heal()]


@pytest.mark.parametrize("mode", ["at once", "while running"])
def test_chosen_deliveries_are_doubled_the_moment_they_are_seen(mode: str) -> None:
    """Which ones is in the plan; how often a job is handed out again changes nothing."""
    rule = Duplicate(0.5, mode)  # type: ignore[arg-type]
    told = begun(rule)
    chosen = told.schedule.plan.copies[0].first(8)
    assert 0 < len(chosen) < 8
    for number in range(1, 9):
        expected = [DuplicateDelivery(number, f"job{number}", mode)] if number in chosen else []  # type: ignore[arg-type]
        told = told >> seen(JobDelivered(f"job{number}", "w1")) << expected
        told = told >> seen(JobDelivered(f"job{number}", "w2")) << []


def test_a_later_copy_comes_after_the_end_of_its_job() -> None:
    """Also when the run has healed meanwhile: a copy breaks nothing."""
    told = begun(Duplicate(1.0, "later", 2.0)) >> seen(JobDelivered("a", "w1")) << []
    told = told >> seen(WorkloadEnded()) << [] >> at(1.0) << [Heal()]
    assert not told.schedule.idle
    told = told >> at(3.0) << [] >> seen(JobEnded("a")) << []
    told.then_at(5.0) >> at(5.0) << [DuplicateDelivery(1, "a", "later")] >> seen(JobEnded("a")) << []
    assert told.schedule.idle


def test_copies_keep_to_their_span_and_their_number() -> None:
    rule = Duplicate(1.0, trigger=Trigger(during=Span(1.0, 3.0), times=2))
    told = begun(rule) >> seen(JobDelivered("a", "w1")) << [] >> at(1.0) << []
    told = told >> seen(JobDelivered("b", "w1")) << [DuplicateDelivery(2, "b")]
    told = told >> seen(JobDelivered("c", "w1")) << [DuplicateDelivery(3, "c")]
    told >> seen(JobDelivered("d", "w1")) << []
    rule = Duplicate(1.0, trigger=Trigger(at=1.0, lasts=1.0))
    told = begun(rule) >> seen(JobDelivered("a", "w1")) << [] >> at(1.5) << []
    told = told >> seen(JobDelivered("b", "w1")) << [DuplicateDelivery(2, "b")] >> at(2.0) << []
    told >> seen(JobDelivered("c", "w1")) << []


def test_a_run_that_was_stopped_does_nothing_more() -> None:
    """No kill, no copy, no second healing."""
    told = begun(Kill(trigger=Trigger(at=1.0)), Duplicate(1.0))
    told.schedule.abandon()
    told = told >> seen(JobDelivered("a", "w1")) << [] >> seen(WorkloadEnded()) << [] >> at(5.0) << []
    assert told.schedule.idle


def test_a_server_that_went_down_at_a_point_comes_back_so_long_after_it() -> None:
    point = NamedPoint("broker ack")
    told = begun(Fail("broker", "kill", point, Trigger(at=0.5, lasts=2.0)))
    armed = ArmTrouble("broker", "kill", point, 2.0)
    told = told >> at(0.5) << [armed] >> seen(WorkloadEnded()) << [] >> at(3.0) << []
    told = told >> seen(PointReached(tuple(armed.then()))) << []
    told.then_at(5.0) >> at(5.0) << [EndTrouble("broker", "kill", 2.0)] >> at(5.0) << [Heal()]


def test_a_deploy_at_a_point_goes_on_from_the_worker_that_came_to_it() -> None:
    """The others follow, as many as the share says, and cases are enqueued by the new version at once."""
    point = NamedPoint("payments POST /charges")
    told = begun(Deploy("v2", "v1", 1.0, step=1.0, trigger=Trigger(at=0.5), point=point))
    told = told >> at(0.5)
    assert told.answer is not None
    (armed,) = told.answer
    assert isinstance(armed, ArmStop)
    assert sorted(armed.others) == list(WORKERS)
    assert armed.more == 1
    told = told << [armed]
    struck = armed.others[0]
    told = told >> seen(PointReached(tuple(armed.then(struck)))) << [] >> at(0.5) << [DeployProducer("v2", 1.0)]
    following = [DeployWorker(name, "v2") for name in armed.others if name != struck][: armed.more]
    for number, expected in enumerate(following, 1):
        told = told >> at(0.5 + number) << [expected]
    told.then_at(None)


def test_a_job_that_is_held_back_comes_after_so_many_others() -> None:
    """Only first deliveries count; the end of the workload waits for it, and nothing going on any more ends that."""
    told, chance = begun(Delay(each=1, others=2)), ways(0)[0]
    delay = DelayJob(1, None, 2, chance, fault=0)
    told = told >> seen(CaseComing()) << [delay] >> seen(CaseEnqueued()) << [] >> seen(JobHeld("a", delay)) << []
    told = told >> seen(JobDelivered("b", "w1")) << [] >> seen(JobDelivered("b", "w2")) << []
    told = told >> seen(JobDelivered("c", "w1")) << [PutBack("a", 1, fault=0)] >> seen(JobDelivered("d", "w1")) << []
    told = told >> seen(JobHeld("e", delay)) << [] >> seen(WorkloadEnded()) << [] >> at(3.0) << []
    told >> seen(WentQuiet()) << [] >> at(3.0) << [Heal()] >> seen(JobDelivered("f", "w1")) << []


def test_a_job_that_is_held_back_for_some_time_comes_before_the_healing() -> None:
    told = begun(Delay(each=2, seconds=1.5))
    delay = DelayJob(2, 1.5, 0, ways(0)[0], fault=0)
    told = told >> seen(CaseComing()) << [] >> seen(CaseEnqueued()) << [] >> seen(CaseComing()) << [delay]
    told = told >> seen(JobHeld("a", delay)) << [] >> seen(WorkloadEnded()) << []
    told.then_at(1.5) >> at(1.5) << [PutBack("a", 2, fault=0)] >> at(1.6) << [Heal()]


def test_cases_that_are_gathered_are_not_gathered_twice() -> None:
    """Three in a row, and the last ones are as many as there are."""
    told, drawn = begun(Reorder(1.0, 3)), ways(0)
    for number in range(1, 21):
        cases = min(3, 21 - number)
        expected = [ReorderJobs(number, cases, drawn[number // 3], fault=0)] if number % 3 == 1 else []
        told = told >> seen(CaseComing()) << expected >> seen(CaseEnqueued()) << []


def ways(fault: int) -> list[float]:
    """What is drawn for the orders of a fault, with seed 1."""
    draw = Seeds(1).stream("fault", fault, "orders")
    return [draw.random() for _ in range(10)]


def test_every_other_order_is_chosen_by_some_number() -> None:
    items = ["a", "b", "c"]
    found = {tuple(permuted(items, number / 50)) for number in range(50)}
    assert len(found) == 5
    assert tuple(items) not in found
    assert permuted(["a"], 0.9) == ["a"]
    assert sorted(permuted([str(number) for number in range(200)], 0.999)) == sorted(map(str, range(200)))
