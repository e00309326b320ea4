"""What a real lease costs, said before anything is struck; and one that takes too long is a usage error."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobcheck.errors import UsageError
from jobcheck.history.records import Point, Strike
from jobcheck.history.report import FindingReport
from jobcheck.runner.facade import Job
from jobcheck.runner.lapse import NONE, Lapse, check, in_a_file, says, takes, waiting
from jobcheck.runner.leases import not_over, said, shorter_than_the_job, timed
from jobcheck.runner.remembering import failure_of
from jobcheck.tap.sight import OUT

ROLES = ("delivery", "reserve", "", "", "ack")
POINTS = [
    Point(f"p{at}", "broker" if role else "db", "x", 1, role=role, broker=bool(role)) for at, role in enumerate(ROLES)
]
KILLS = [Strike(f"k{at}", f"p{at}") for at in range(5)] + [Strike("k5", "p4", when="after")]
ZOMBIES = [Strike(f"z{at}", f"p{at}", "zombie") for at in range(2, 5)]
TERMS = [Strike(f"t{at}", f"p{at}", "term") for at in range(5)]
RESETS = [Strike("r1", "p2", "lose-reply", "after"), Strike("r2", "p4", "lose-reply", "after")]
SHORT = Lapse(lease=3.0, sweep=1.0, waits=True)
USUAL = Lapse(lease=3600.0, sweep=100.0, waits=True)
FAST = Lapse(lease=3600.0, sweep=100.0, speed=100.0, waits=True)
RABBIT = Lapse(heartbeat=60.0, waits=True)
TIMED = ("db SELECT claims compares something with now()",)


def test_who_holds_a_job_waits_and_nobody_else() -> None:
    """Before the reservation the message is in nobody's hands, and after the ack there is none."""
    assert waiting(KILLS, POINTS, SHORT) == 3
    assert waiting(ZOMBIES, POINTS, SHORT) == 3
    assert waiting([*TERMS, *RESETS], POINTS, SHORT) == 0
    assert waiting([*KILLS, *ZOMBIES], POINTS, RABBIT) == 3, "a dead worker's connection is gone at once"


def test_a_job_of_another_name_is_in_other_hands() -> None:
    other = Point("q", "db", "x", 1, job="shop.mail")
    assert waiting([Strike("k", "q")], [*POINTS, other], SHORT) == 0


def test_the_patience_is_real_time_and_nobody_waits_for_what_is_rewound() -> None:
    assert (SHORT.real, replace(FAST, deadline=40.0).real, replace(RABBIT, deadline=200.0).real) == (4.0, 37.0, 180.0)
    assert USUAL.real == RABBIT.real == 0.0, "what lasts longer than the deadline is not waited for"
    assert Lapse(lease=3600.0, sweep=100.0).real == NONE.real == 0.0
    assert (SHORT.of_living, replace(RABBIT, deadline=200.0).of_living) == (4.0, 0.0), "one that lives sends heartbeats"
    assert takes(KILLS, POINTS, SHORT) == 3 * 3.5
    assert takes(KILLS, POINTS, Lapse(lease=3.0)) == 0.0


def test_the_plan_says_what_a_lease_costs() -> None:
    assert says(KILLS, POINTS, FAST, "about 2 min") == (
        "each of 3 strikes waits for a real lease of 3600 s, 36 s at speed 100 (and up to 1 s until a worker looks for "
        "it): about 2 min"
    )
    assert says(KILLS[2:3], POINTS, Lapse(lease=3.0, waits=True), "about 3 s") == (
        "1 strike waits for a real lease of 3 s: about 3 s"
    )
    assert says(ZOMBIES, POINTS, Lapse(heartbeat=2.0, waits=True), "about 18 s") == (
        "each of 3 strikes waits until the broker gives up a silent worker (heartbeat of 2 s), up to 6 s: about 18 s"
    )
    fast = Lapse(heartbeat=60.0, speed=100.0, waits=True)
    assert "(heartbeat of 60 s), up to 1.8 s at speed 100: " in says(ZOMBIES, POINTS, fast, "about 5 s")
    assert says(KILLS, POINTS, Lapse(lease=3.0), "about 3 s") == says(TERMS, POINTS, SHORT, "about 3 s") == ""


def refused(strikes: list[Strike], lapse: Lapse, deadline: float = 30.0) -> str:
    with pytest.raises(UsageError) as raised:
        check(strikes, POINTS, replace(lapse, deadline=deadline))
    return f"{raised.value.message}\n{raised.value.hint}"


def test_a_lease_that_is_too_long_is_refused_with_what_to_type_instead() -> None:
    assert refused(KILLS, USUAL) == (
        "--real-clocks: 3 strikes would wait for a lease of 3600 s to run out and up to 100 s until a worker looks for "
        "it, which is longer than the deadline of 30 s\n--speed 100 --deadline 45s, or --deadline 74m"
    )
    assert refused(KILLS[2:3], FAST) == (
        "--real-clocks: a strike would wait for a lease of 3600 s to run out and up to 100 s until a worker looks for "
        "it (37 s at speed 100), which is longer than the deadline of 30 s\n--deadline 45s"
    )
    assert refused(KILLS, Lapse(lease=600.0, waits=True)).endswith("\n--speed 100, or --deadline 12m")
    assert refused(KILLS, Lapse(lease=600.0, fixed=True, waits=True)).endswith("\n--deadline 12m"), "no faster clock"
    assert "a strike would wait for a lease" in refused(RESETS, USUAL), "a lost reply of the broker leaves its job, too"


def test_a_silent_worker_on_rabbitmq_is_refused_likewise() -> None:
    assert refused(ZOMBIES, RABBIT) == (
        "--real-clocks: 3 strikes would wait until RabbitMQ gives up a worker (heartbeat of 60 s), which is longer "
        "than the deadline of 30 s\n--speed 100, or --deadline 4m"
    )
    assert "for ever: without heartbeats" in refused(ZOMBIES, Lapse(waits=True))


@pytest.mark.parametrize(
    ("strikes", "lapse", "deadline"),
    [
        (KILLS, SHORT, 30.0),
        (KILLS, FAST, 40.0),
        (KILLS, Lapse(lease=3600.0), 30.0),
        (TERMS, USUAL, 30.0),
        (KILLS, RABBIT, 30.0),
        (ZOMBIES, RABBIT, 200.0),
    ],
)
def test_what_is_short_or_not_waited_for_is_fine(strikes: list[Strike], lapse: Lapse, deadline: float) -> None:
    check(strikes, POINTS, replace(lapse, deadline=deadline))


def test_a_lease_that_was_not_waited_for_is_unknown_and_not_hung() -> None:
    def said(role: str, lapse: Lapse) -> str:
        sights = [SimpleNamespace(role="reserve", job="j"), SimpleNamespace(role=role, job="j")]
        stage = SimpleNamespace(deadline=30.0, real_clocks=lapse.waits, speed=lapse.speed, kept="")
        lane = SimpleNamespace(trace=SimpleNamespace(sights=sights), stage=stage)
        return not_over(cast(Any, SimpleNamespace(lane=lane, settings=lapse)))

    assert said("", USUAL) == (
        "its lease of 3600 s was not over after the deadline of 30 s, and nothing was rewound: --speed 100 --deadline "
        "45s, or --deadline 74m"
    )
    assert said("ack", USUAL) == said("restore", USUAL) == "", "nobody holds it"
    assert said("", SHORT) == said("", Lapse(lease=3600.0)) == ""


def test_a_scenario_that_is_over_before_a_lease_is_says_what_to_write() -> None:
    assert in_a_file(replace(USUAL, deadline=60.0)) == "clock: {real: true, speed: 100}, or timeouts: {drain: 74m}"
    assert in_a_file(USUAL) == ("clock: {real: true, speed: 100} and timeouts: {drain: 45s}, or timeouts: {drain: 74m}")
    assert in_a_file(FAST) == "timeouts: {drain: 45s}"


def test_a_healthy_job_that_outlives_its_lease_is_no_clean_run() -> None:
    def said(worker: str, job: str = "j", speed: float = 1.0) -> str:
        sights = [SimpleNamespace(role="restore", job=job, worker=worker)]
        lane = SimpleNamespace(trace=SimpleNamespace(sights=sights), stage=SimpleNamespace(speed=speed))
        return shorter_than_the_job(cast(Any, SimpleNamespace(lane=lane, settings=SHORT)), ["j"])

    assert said("w1") == (
        "the job was put back into its queue while a healthy worker ran it: its lease of 3 s was over; make the "
        "visibility timeout longer than the longest job"
    )
    assert said("w1", speed=100.0).endswith("longest job, or take a smaller speed")
    assert said("producer") == said("w1", "another") == "", "the harness itself rewinds by a child of the producer"


def test_what_sql_compares_with_the_clock_is_not_proven_where_something_was_rewound() -> None:
    def told(faults: str, *, lease: float = 3600.0, timed: tuple[str, ...] = TIMED, **stage: Any) -> list[str]:
        place = {"deadline": 30.0, "real_clocks": False, "speed": 1.0, "kept": "", **stage}
        mode = SimpleNamespace(
            lane=SimpleNamespace(stage=SimpleNamespace(**place)),
            settings=SimpleNamespace(lease=lease, sweep=100.0),
            crew=SimpleNamespace(seats=[]),
            timed=timed,
        )
        outcomes = [SimpleNamespace(strike=Strike("s", "p", fault)) for fault in faults.split()]
        return [note for note in said(cast(Any, mode), cast(Any, outcomes)) if note.startswith("clock: ")]

    assert told("term kill") == [
        "clock: not proven: db SELECT claims compares something with now(), whose clock does not move when a lease is "
        "rewound; --real-clocks proves it, with --speed 100 it takes less long"
    ]
    (cut,) = told("zombie", lease=0.0, kept="no libfaketime")
    assert cut.endswith("does not move when the connection of a paused worker is cut; --real-clocks proves it")
    assert told("kill", lease=0.0) == [], "a dead worker's connection is gone in production, too"
    assert told("term lose-reply") == told("kill", timed=()) == told("kill", real_clocks=True) == []


def test_what_a_worker_compares_with_the_clock_is_named_once() -> None:
    def sight(worker: str, shape: str, *clocks: str, way: str = OUT) -> Any:
        unit = SimpleNamespace(shape=shape, info={"clock": clocks} if clocks else {})
        return SimpleNamespace(worker=worker, upstream="db", way=way, role="", unit=unit)

    sights = [
        sight("w1", "postgres SELECT claims", "now()"),
        sight("w1", "postgres SELECT claims", "now()"),
        sight("w1", "postgres COMMIT"),
        sight("w1", "postgres SELECT claims", "now()", way="in"),
        sight("producer", "postgres SELECT invoices", "now()"),
    ]
    assert timed(cast(Any, SimpleNamespace(trace=SimpleNamespace(sights=sights)))) == TIMED


def test_a_finding_remembers_that_nothing_was_rewound() -> None:
    def options(**values: Any) -> tuple[str, ...]:
        request = SimpleNamespace(**{"node": "", "rig_reference": "", "seed": 1, "speed": 1.0, **values})
        job = Job("work", "queue", "enqueue")
        found = FindingReport("f", "handler", "mail", "duplicated", ())
        exploration = SimpleNamespace(trials={}, points=(), looks=())
        mode = SimpleNamespace(key="work/celery-redis", name="queue")
        return failure_of(cast(Any, request), job, cast(Any, mode), cast(Any, exploration), found).options

    assert options(real_clocks=True) == ("real_clocks=yes",)
    assert options(real_clocks=False) == ()
