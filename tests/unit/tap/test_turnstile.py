"""One job at a time in a worker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from jobcheck.tap.sight import IN, OUT
from jobcheck.tap.turnstile import Turnstile


class Link:
    """A connection that notes what is passed on."""

    def __init__(self, *, polls: bool) -> None:
        self.passed: list[str] = []
        trace = SimpleNamespace(later=lambda sight: None)
        self.listener = SimpleNamespace(links={self}, slot=SimpleNamespace(polls=polls, trace=trace))

    def release(self, way: str) -> None:
        self.passed.append(way)


def delivery(link: Link, job: str, *, asked: bool = False) -> Any:
    return SimpleNamespace(role="delivery", way=IN, job=job, request=object() if asked else None, link=link)


def poll(link: Link) -> Any:
    return SimpleNamespace(role="poll", way=OUT, job="", request=None, link=link)


def test_where_the_broker_pushes_the_next_delivery_waits() -> None:
    link, stile = Link(polls=False), Turnstile(lambda job: False, late=True)
    assert not stile.holds(delivery(link, "a"))
    assert stile.holds(delivery(link, "b"))
    assert stile.job == "a"
    stile.ended("a", None)
    assert (stile.job, link.passed) == ("b", [IN])


def test_where_workers_ask_the_next_request_waits() -> None:
    link, stile = Link(polls=True), Turnstile(lambda job: False, late=True)
    assert not stile.holds(poll(link))
    assert not stile.holds(delivery(link, "a", asked=True))
    assert stile.holds(poll(link))
    stile.ended("a", None)
    assert link.passed == [OUT]
    assert stile.job == "a", "what comes between two jobs belongs to the one that ran last"


def test_the_gate_is_asked_when_what_waited_may_come() -> None:
    link, stile = Link(polls=False), Turnstile(lambda job: False, late=True)
    stile.holds(delivery(link, "a"))
    stile.holds(delivery(link, "b"))
    gate = SimpleNamespace(holds=lambda sight: sight.job == "b")
    stile.ended("a", gate)
    assert link.passed == [], "it stays with the gate"


def test_a_job_that_is_not_due_lets_others_pass() -> None:
    link, early = Link(polls=False), {"a"}
    stile = Turnstile(lambda job: job in early, late=True)
    assert not stile.holds(delivery(link, "a"))
    assert not stile.holds(delivery(link, "b"))
    assert stile.job == "b"
    early.clear()
    assert stile.job == "b", "it runs still"
    stile.ended("b", None)
    assert stile.job == "a"


def test_a_job_that_comes_again_while_it_runs_is_not_waited_for() -> None:
    """Its child died and the main process gave it back: nobody will tell its end."""
    link, stile = Link(polls=False), Turnstile(lambda job: False, late=True)
    assert not stile.holds(delivery(link, "a"))
    assert not stile.holds(delivery(link, "a"))


def test_a_connection_that_is_gone_is_not_waited_for() -> None:
    link, stile = Link(polls=False), Turnstile(lambda job: False, late=True)
    stile.holds(delivery(link, "a"))
    stile.holds(delivery(link, "b"))
    link.listener.links.clear()
    stile.ended("a", None)
    assert link.passed == []
    assert not stile.busy


def test_a_message_that_is_seen_after_its_job_said_that_it_ended_is_still_its_own() -> None:
    """The line of output and the message come by two ways."""
    link, stile = Link(polls=False), Turnstile(lambda job: False, late=True)
    for job in ("a", "b"):
        stile.holds(delivery(link, job))
        stile.ended(job, None)
    assert stile.job == "b"
