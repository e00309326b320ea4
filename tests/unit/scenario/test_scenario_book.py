"""The book of a scenario follows each job through its deliveries, by what the wire and the workers say."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from jobcheck.clock import ManualClock
from jobcheck.faults.actions import Happening, JobDelivered, JobEnded
from jobcheck.faults.model import NamedPoint
from jobcheck.runner.scenarios.ailments import name_of
from jobcheck.runner.scenarios.book import Book, Delivery
from jobcheck.runner.scenarios.gate import Arm, PostGate
from jobcheck.runner.scenarios.scribe import Scribe
from jobcheck.systems.contract import Meaning
from jobcheck.tap.sight import IN, OUT, Sight
from jobcheck.wire.unit import Change, Kind, Unit


class Dialect:
    """A broker with reservations: `deliver JOB`, `reserve TAG`, `ack TAG`, `enqueue JOB PARENT ARGUMENTS`."""

    def __init__(self) -> None:
        self.tags: list[str] = []

    def held(self) -> Sequence[str]:
        return list(self.tags)

    def reset(self) -> None:
        self.tags.clear()

    def read(self, unit: Unit, request: Unit | None, role: str) -> Meaning:
        word, *rest = unit.shape.split()
        if word == "reserve" and unit.kind is Kind.REPLY:
            self.tags.append(rest[0])
        elif word == "ack" and unit.kind is Kind.REPLY:
            self.tags.remove(rest[0])
        if word == "enqueue":
            parent, text = rest[1] if len(rest) > 1 else "", " ".join(rest[2:])
            return Meaning("enqueue", rest[0], parent if parent != "-" else "", text=text)
        return Meaning("delivery", rest[0]) if word == "deliver" else Meaning(word)


class Desk:
    """A book, and scribes that hear sentences."""

    def __init__(self, late: bool = True) -> None:
        self.book = Book(ManualClock(), lambda: late)
        self.heard: list[Happening] = []
        self.book.happened = self.heard.append
        self.scribes: dict[str, Scribe] = {}

    def says(self, who: str, *sentences: str) -> None:
        """Each sentence as request and reply, but for deliveries; an enqueue may have no answer: `unheard`."""
        if who not in self.scribes:
            self.scribes[who] = Scribe(Dialect(), self.book, who)
            self.scribes[who].producer, self.scribes[who].relay = who == "producer", who == "relay"
        for sentence in sentences:
            sentence, _, heard = sentence.partition(", ")
            request = None
            if not sentence.startswith("deliver"):
                request = Unit(b"", Kind.REQUEST, sentence)
                self.scribes[who].read(request, None, "")
            if not heard:
                self.scribes[who].read(Unit(b"", Kind.REPLY, sentence), request, "")

    def last(self, job: str) -> Delivery:
        found = self.book.jobs[job].last
        assert found is not None
        return found


def test_a_job_is_followed_from_its_case_to_its_ack() -> None:
    """Followers belong to the case of the job that enqueued them, as their own message says."""
    desk = Desk()
    desk.book.case = "case-1"
    desk.says("producer", "enqueue a")
    desk.book.case = "case-2"
    desk.says("producer", "enqueue b")
    desk.says("w1", "deliver a", "reserve t1", "deliver b", "reserve t2", "enqueue c a", "ack t1")
    assert [job.id for job in desk.book.of_case("case-1")] == ["a", "c"]
    assert [job.id for job in desk.book.of_case("case-2")] == ["b"]
    assert desk.last("a").passed == ("delivery", "reserve", "ack")
    assert desk.last("b").passed == ("delivery", "reserve")
    assert desk.book.running() == ["b"]
    assert desk.heard == [JobDelivered("a", "w1"), JobDelivered("b", "w1"), JobEnded("a")]


def test_with_early_acks_only_the_worker_says_when_a_job_has_ended() -> None:
    desk = Desk(late=False)
    desk.says("w1", "deliver a", "reserve t1", "ack t1")
    assert desk.book.running("w1") == ["a"]
    desk.book.finished("a", "w1", "succeeded")
    assert desk.book.running() == []
    assert desk.book.ended == 1


def test_what_a_relay_enqueues_is_of_the_case_whose_ids_it_names() -> None:
    """It may come to it when the next case is made already, or the last one is over."""
    desk = Desk()
    desk.book.owner = lambda text: "case-1" if "17" in text else ""
    desk.book.case = "case-2"
    desk.says("relay", "enqueue a - (17,)", "enqueue b - (18,)")
    desk.book.case = ""
    desk.says("relay", "enqueue c - (17,)")
    assert {name: job.case for name, job in desk.book.jobs.items()} == {"a": "case-1", "b": "case-2", "c": "case-1"}
    desk.says("producer", "enqueue d - (17,)")
    assert desk.book.jobs["d"].case == "", "who makes cases makes one at a time"


def test_a_delivery_without_a_reservation_is_seen_when_its_worker_dies() -> None:
    """That is the gap in which Redis loses a job."""
    desk = Desk()
    desk.says("w1", "deliver a", "reserve t1", "deliver b")
    assert desk.book.died("w1") == ["a", "b"]
    assert (desk.last("a").fate, desk.last("a").passed) == ("died", ("delivery", "reserve"))
    assert (desk.last("b").fate, desk.last("b").passed) == ("died", ("delivery",))
    desk.says("w2", "deliver a", "reserve t1", "ack t1")
    assert [one.fate for one in desk.book.jobs["a"].deliveries] == ["died", "ended"]


def test_a_reservation_is_none_of_a_delivery_whose_connection_is_gone() -> None:
    """The broker was killed between the two: what it reserves on the next connection is another one."""
    desk = Desk()
    desk.says("w1", "deliver a")
    desk.last("a").link = gone = Link()  # type: ignore[assignment]
    gone.dead = True
    desk.says("w1", "deliver b", "reserve t1", "ack t1")
    assert (desk.last("a").passed, desk.last("a").stranded) == (("delivery",), True)
    assert desk.last("b").passed == ("delivery", "reserve", "ack")


def test_a_retry_that_is_handed_out_before_the_run_before_it_has_said_its_last_word_goes_on() -> None:
    """Its delay is short, and a line of output takes its time."""
    desk = Desk()
    desk.says("w1", "deliver a", "reserve t1", "enqueue a a", "deliver a", "reserve t2")
    desk.book.finished("a", "w1", "retrying")
    assert [one.fate for one in desk.book.jobs["a"].deliveries] == ["ended", "running"]
    desk.says("w1", "ack t1")
    desk.book.finished("a", "w1", "failed: raised X")
    assert [one.how for one in desk.book.jobs["a"].deliveries] == ["retrying", "failed: raised X"]


def test_what_the_broker_never_said_that_it_took_is_untaken() -> None:
    desk = Desk()
    desk.says("producer", "enqueue a, unheard")
    desk.says("w1", "enqueue b x, unheard", "enqueue b x", "enqueue c x", "enqueue c x, unheard")
    assert {name: job.untaken for name, job in desk.book.jobs.items()} == {"a": True, "b": False, "c": False}


def test_a_retry_keeps_its_case_and_a_failure_is_the_last_word() -> None:
    desk = Desk()
    desk.book.case = "case-1"
    desk.says("producer", "enqueue a")
    desk.says("w1", "deliver a", "reserve t1", "enqueue a a")
    desk.book.finished("a", "w1", "retrying")
    assert (desk.book.filed("case-1"), desk.book.ended) == ("", 0)
    desk.says("w2", "deliver a", "reserve t2")
    desk.book.finished("a", "w2", "failed: raised X")
    assert (desk.book.filed("case-1"), desk.book.ended) == ("failed: raised X", 1)
    desk.says("w2", "deliver a", "reserve t3")
    desk.book.finished("a", "w2", "succeeded")
    assert desk.book.filed("case-1") == ""


class Link:
    """As much of a connection as a gate looks at."""

    def __init__(self) -> None:
        self.dead = False
        self.released: list[str] = []

    def answers(self, unit: Unit) -> bool:
        return unit.kind is Kind.REQUEST

    def release(self, way: str) -> None:
        self.released.append(way)


def sight(
    upstream: str, shape: str, *, way: str = OUT, kind: Kind = Kind.REQUEST, role: str = "", job: str = "a"
) -> Sight:
    unit = Unit(b"", kind, shape, change=Change.YES if way == OUT else Change.NO)
    return Sight(1, 0.0, "w1", upstream, Link(), way, unit, role, job)  # type: ignore[arg-type]


def test_a_point_is_named_as_a_person_reads_it() -> None:
    assert name_of(sight("payments", "http POST /charges")) == "payments POST /charges"
    assert name_of(sight("broker", "redis BRPOP", way=IN, role="delivery")) == "broker delivery"


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_armed_kill_strikes_the_nth_message_of_its_name_once(when: str) -> None:
    """Before: the request is held. After: its answer is. Polls, and what belongs to no job, do not count."""
    arm = Arm(NamedPoint("db INSERT", when, 2))  # type: ignore[arg-type]
    struck: list[str] = []
    gate = PostGate(Book(ManualClock(), lambda: True), "w1", "broker", lambda worker, arm, hit: struck.append(worker))
    gate.arms.append(arm)
    assert not gate.holds(sight("db", "postgres INSERT orders"))
    assert not gate.holds(sight("db", "postgres INSERT orders", job=""))
    assert not gate.holds(sight("db", "postgres INSERT orders", role="poll"))
    assert not gate.holds(sight("db", "postgres UPDATE orders"))
    second = sight("db", "postgres INSERT charges")
    reply = sight("db", "postgres INSERT charges", way=IN, kind=Kind.REPLY)
    reply.request = second
    assert (gate.holds(second), gate.holds(reply)) == ((True, False) if when == "before" else (False, True))
    assert struck == ["w1"]
    assert not gate.holds(sight("db", "postgres INSERT orders"))


def test_an_arm_that_waits_for_an_answer_starts_anew_when_the_worker_dies_of_something_else() -> None:
    arm = Arm(NamedPoint("db COMMIT", "after"))
    assert not arm.hits(sight("db", "postgres COMMIT"))
    arm.missed()
    commit = sight("db", "postgres COMMIT")
    assert not arm.hits(commit)
    reply = sight("db", "postgres COMMIT", way=IN, kind=Kind.REPLY)
    reply.request = commit
    assert arm.hits(reply)


def test_a_doubled_job_waits_with_its_first_change_until_it_is_let_go() -> None:
    """Reads, the broker and other jobs go on."""
    gate = PostGate(Book(ManualClock(), lambda: True), "w1", "broker", lambda worker, arm, hit: None)
    gate.detained = "a"
    assert not gate.holds(sight("broker", "redis LPUSH celery"))
    assert not gate.holds(sight("db", "postgres INSERT x", job="b"))
    assert not gate.holds(sight("db", "postgres SELECT x", way=IN, kind=Kind.REPLY))
    held = sight("db", "postgres INSERT x")
    assert gate.holds(held)
    gate.let_go()
    assert held.link.released == [OUT]  # type: ignore[attr-defined]
    assert not gate.holds(sight("db", "postgres INSERT x"))
