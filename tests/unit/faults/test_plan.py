"""Everything that is drawn comes from the seed: the same seed gives the same plan."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcheck.faults.actions import (
    Action,
    AddToxic,
    ArmKill,
    BeginOutage,
    BeginTrouble,
    DeployProducer,
    DeployWorker,
    EndOutage,
    EndTrouble,
    Heal,
    KillWorker,
    RemoveToxic,
    StartWorkload,
    StopWorker,
)
from jobcheck.faults.describe import describe
from jobcheck.faults.model import (
    Delay,
    Deploy,
    Duplicate,
    Fail,
    Fault,
    Kill,
    NamedPoint,
    Outage,
    Poison,
    Reorder,
    Restart,
)
from jobcheck.faults.outages import Reply
from jobcheck.faults.plan import Plan, make_plan
from jobcheck.faults.toxics import Down, Latency
from jobcheck.faults.triggers import After, Span, Trigger
from jobcheck.seeds import Seeds

WORKERS = ("w1", "w2", "w3", "w4")


def planned(*faults: Fault, seed: int = 7, count: int = 200) -> Plan:
    """200 cases in 10 s."""
    return make_plan(faults, count=count, rate=20.0, workers=WORKERS, seeds=Seeds(seed))


def actions(plan: Plan) -> list[tuple[float, Action]]:
    """The timed actions between the start and the healing."""
    return [(step.at, step.action) for step in plan.steps[1:-1]]


EVERY = Trigger(every=2.0)
MANY: Sequence[Fault] = (
    Kill(trigger=EVERY),
    Kill("child", trigger=Trigger(times=3)),
    Duplicate(0.2),
    Poison(Latency(100), "db", trigger=Trigger(every=3.0, lasts=1.0)),
    Outage("payments", Reply(503), Trigger(times=1, lasts=2.0)),
    Deploy("v2", "v1", 0.5),
    Restart("all", Trigger(after=After(5))),
)


def test_the_same_seed_gives_the_same_plan() -> None:
    """Every moment, every worker and every copy."""
    first, second, other = planned(*MANY), planned(*MANY), planned(*MANY, seed=8)
    assert first == second
    assert first.copies[0].first(500) == second.copies[0].first(500)
    assert first.steps != other.steps
    assert first.copies[0].first(500) != other.copies[0].first(500)


def test_a_plan_is_the_same_on_every_machine() -> None:
    """These numbers are written down: a change here changes the meaning of every seed in a report."""
    plan = planned(Kill(trigger=EVERY), Duplicate(0.1))
    kills = [(1.167, "w1"), (2.618, "w2"), (5.764, "w1"), (6.663, "w1"), (8.631, "w4")]
    assert actions(plan) == [(at, KillWorker(worker, "tree", 0.5)) for at, worker in kills]
    assert plan.copies[0].first(60) == [6, 7, 12, 35, 36, 37, 40, 42, 47, 51]


def test_a_fault_that_is_added_below_moves_nothing_above() -> None:
    """Each fault draws from streams of its own."""
    alone, more = planned(Kill(trigger=EVERY)), planned(Kill(trigger=EVERY), *MANY)
    assert [step for step in more.steps if step.action.fault == 0] == [
        step for step in alone.steps if step.action.fault == 0
    ]


def test_every_plan_begins_with_the_workload_and_ends_by_healing() -> None:
    plan = planned(*MANY)
    assert plan.steps[0].action == StartWorkload(200, 20.0)
    assert plan.steps[-1].action == Heal()
    assert (plan.length, plan.steps[0].at) == (10.0, 0.0)


def test_every_period_has_one_kill_at_a_moment_of_its_own() -> None:
    """Periods of 2 s in a workload of 10 s: five, not evenly spaced."""
    moments = [at for at, _ in actions(planned(Kill(trigger=EVERY)))]
    assert [int(at // 2) for at in moments] == [0, 1, 2, 3, 4]
    assert len({round(later - sooner, 3) for sooner, later in pairwise(moments)}) > 1


def test_the_worker_is_drawn_unless_it_is_named() -> None:
    drawn = {action.worker for _, action in actions(planned(Kill(trigger=Trigger(times=40))))}  # type: ignore[union-attr]
    assert drawn == set(WORKERS)
    named = {action.worker for _, action in actions(planned(Kill(worker="w3", trigger=EVERY)))}  # type: ignore[union-attr]
    assert named == {"w3"}


def test_a_kill_without_a_time_comes_while_jobs_run() -> None:
    """Not in the first and the last moments."""
    for seed in range(50):
        ((at, _),) = actions(planned(Kill(), seed=seed))
        assert 1.0 <= at <= 9.0


def test_a_span_bounds_what_is_repeated() -> None:
    moments = [at for at, _ in actions(planned(Kill(trigger=Trigger(every=1.0, during=Span(5.0, 8.0)))))]
    assert [int(at) for at in moments] == [5, 6, 7]
    moments = [at for at, _ in actions(planned(Kill(trigger=Trigger(times=9, during=Span(3.0, 4.0)))))]
    assert len(moments) == 9
    assert all(3.0 <= at <= 4.0 for at in moments)


def test_any_worker_at_a_point_is_whichever_comes_first() -> None:
    point = NamedPoint("db COMMIT")
    assert actions(planned(Kill(point=point, trigger=Trigger(at=1.0)))) == [(1.0, ArmKill("any", point, "tree", 0.5))]


def test_a_lasting_fault_comes_with_its_end() -> None:
    """Also when it is repeated; one that lasts to the end is healed at the end."""
    plan = planned(Poison(Latency(1), "db", trigger=Trigger(every=3.0, lasts=1.0)), Outage("payments", Reply(503)))
    toxics = [(at, action) for at, action in actions(plan) if not isinstance(action, BeginOutage)]
    for (began, added), (ended, removed) in zip(toxics[::2], toxics[1::2], strict=True):
        assert isinstance(added, AddToxic)
        assert isinstance(removed, RemoveToxic)
        assert (removed.name, round(ended - began, 3)) == (added.name, 1.0)
    assert len({action.name for _, action in toxics}) == 3  # type: ignore[union-attr]
    assert actions(planned(Outage("payments", trigger=Trigger(at=1.0, lasts=2.0)))) == [
        (1.0, BeginOutage("outage-1", "payments")),
        (3.0, EndOutage("outage-1", "payments")),
    ]


def test_a_deploy_goes_from_worker_to_worker() -> None:
    """Half of them and half of the cases, and back again."""
    plan = planned(Deploy("v2", "v1", 0.5, rollback=True, step=1.0, trigger=Trigger(at=2.0, lasts=5.0)))
    there, back = actions(plan)[:3], actions(plan)[3:]
    assert there[0] == (2.0, DeployProducer("v2", 0.5))
    assert [at for at, _ in there[1:]] == [2.0, 3.0]
    assert back[0] == (7.0, DeployProducer("v1", 1.0))
    assert [(at - 5.0, DeployWorker(action.worker, "v2")) for at, action in back[1:]] == there[1:]  # type: ignore[union-attr]
    assert {action.least for _, action in back[1:]} == {5.0}  # type: ignore[union-attr]
    assert all(step.heals for step in plan.steps if step.at >= 7.0)


def test_a_rolling_restart_stops_one_worker_after_another() -> None:
    plan = planned(Restart("all", Trigger(at=1.0)))
    assert actions(plan) == [(1.0 + 0.5 * place, StopWorker(worker)) for place, worker in enumerate(WORKERS)]


def test_a_server_that_fails_is_healed_by_the_plan() -> None:
    """One that goes down comes back at once where nothing is said; one that refuses stays so until the end."""
    assert actions(planned(Fail("db", "restart", trigger=Trigger(at=1.0)))) == [
        (1.0, BeginTrouble("db", "restart")),
        (1.0, EndTrouble("db", "restart")),
    ]
    assert actions(planned(Fail("db", "read_only"))) == [(0.0, BeginTrouble("db", "read_only"))]
    repeated = actions(planned(Fail("broker", "kill", trigger=Trigger(every=5.0, lasts=2.0))))
    assert [type(action) for _, action in repeated] == [BeginTrouble, EndTrouble] * 2
    assert [later - begun for (begun, _), (later, _) in zip(repeated[::2], repeated[1::2], strict=True)] == [2.0, 2.0]


def test_copies_are_about_as_many_as_was_asked() -> None:
    """And more deliveries do not change which of the first ones are chosen."""
    (copies,) = planned(Duplicate(0.1)).copies
    many = copies.first(10_000)
    assert 900 < len(many) < 1100
    assert copies.first(100) == [number for number in many if number <= 100]


@given(
    st.integers(0, 999_999),
    st.floats(0.2, 5.0),
    st.floats(0.0, 0.9),
    st.floats(0.0, 20.0),
    st.floats(0.5, 20.0),
)
def test_whatever_the_numbers_a_repeated_fault_stays_in_its_span_and_never_overlaps(
    seed: int, every: float, share: float, start: float, length: float
) -> None:
    """For all seeds, periods and spans."""
    lasts = every * share
    trigger = Trigger(every=every, lasts=lasts or None, during=Span(start, start + length))
    moments = trigger.moments(10.0, Seeds(seed).stream("x"))
    slack = 0.002  # moments are whole milliseconds
    assert len(moments) == int(length / every + 1e-9)
    assert all(start - slack <= at <= start + length + slack for at in moments)
    assert all(sooner + lasts <= later + slack for sooner, later in pairwise(moments))


def test_a_plan_is_told_line_by_line() -> None:
    """What `--dry` prints."""
    point = NamedPoint("payments POST /charges", "after", 2)
    plan = planned(
        Kill(worker="w2", trigger=Trigger(at=1.5)),
        Kill(point=point, trigger=Trigger(at=2.0)),
        Poison(Latency(200, jitter=50), "db", trigger=Trigger(at=0.0, lasts=3.0)),
        Poison(Down(), "mail", "w1", Trigger(after=After(20))),
        Outage("payments", Reply(503), Trigger(at=5.0, lasts=1.0)),
        Duplicate(0.1),
    )
    assert describe(plan) == [
        "seed 7, workers w1 w2 w3 w4, 10 s",
        "               0.00 s  enqueue 200 cases at 20/s",
        "               0.00 s  latency latency=200 jitter=50 downstream on db of workers",
        "               1.50 s  kill w2 (tree), back after 0.5 s",
        "               2.00 s  kill any (tree) after payments POST /charges (2.)",
        "               3.00 s  latency-3 off db",
        "               5.00 s  payments is out of order (503)",
        "               6.00 s  payments works again",
        "  after 20 deliveries  down on mail of w1",
        f"            all along  duplicate 10% of the deliveries at once: number {first_numbers(plan)} ...",
        "                 then  end all faults, start all workers, settle, drain, judge",
    ]


def test_which_cases_come_in_another_order_is_in_the_plan() -> None:
    """By the seed, or by counting; a fault above does not move it."""
    plan = planned(Reorder(0.3, 2), Delay(each=3, seconds=0.5), Delay(0.5, others=3), count=9)
    drawn = [", ".join(map(str, turns.first(9))) for turns in plan.turns]
    assert [line.strip() for line in describe(plan)[2:5]] == [
        f"all along  hand out the jobs of 30% of the cases in another order, 2 at a time: number {drawn[0]}",
        "all along  hold back a job of one case in 3 by 0.5 s: number 3, 6, 9",
        f"all along  hold back a job of 50% of the cases by 3 deliveries: number {drawn[2]}",
    ]
    again = planned(Duplicate(0.3), Delay(each=3, seconds=0.5), Delay(0.5, others=3), count=9)
    assert again.turns[1].first(9) == plan.turns[2].first(9)


def first_numbers(plan: Plan) -> str:
    return ", ".join(map(str, plan.copies[0].first(200)[:8]))


@pytest.mark.parametrize("share", [0.0001])
def test_a_share_that_meets_nobody_says_so(share: float) -> None:
    assert describe(planned(Duplicate(share), count=2))[2].endswith("at once: none of the first 2")
