"""What a planted handler is: its steps, its contracts, and the places at which it must be found broken."""

from __future__ import annotations

from dataclasses import dataclass

from ..checks.contracts import AT_MOST, Contract, at_least_once, exactly_once
from ..explore.causes import HANDLER
from ..faults.strikes import KILL

HANDLER_MODE, QUEUE_MODE, PRODUCER_MODE, SCENARIO_MODE = "handler", "queue", "producer", "scenario"
EXPLORED = (HANDLER_MODE, QUEUE_MODE)
"""In these a job is struck at its points; then there is what enqueues it, and what runs while something around it
fails."""
MODES = (*EXPLORED, PRODUCER_MODE, SCENARIO_MODE)
WRONG, RIGHT = "wrong", "right"

END = "the end"
"""In place of a message: the job has done its last step and is not settled yet."""

CHARGE = "payments POST /charges"
MAIL = "mail DATA"
COMMIT = "db COMMIT"
ENQUEUE = "broker LPUSH celery"

DELIVERY = "broker delivery"
RESERVE = "broker EXEC(ZADD unacked_index, HSET unacked)"
ACK = "broker EXEC(ZREM unacked_index, HDEL unacked)"
"""The points of Celery on Redis itself: a job is lost, whatever its code, until the reservation is written."""

CHARGED = exactly_once(CHARGE)
MAILED = at_least_once("mail")
ENTRIES, PAYOUTS, POINTS, STATEMENTS, DUES = "entries", "payouts", "points", "statements", "dues"
"""Rows and files, as the rig names them."""

BOOKED = exactly_once(ENTRIES)
FOLLOWED_UP = exactly_once("mail")
"""The follow-up job sets its own marker; it is not struck, so one mail is what it sends."""


@dataclass(frozen=True, slots=True)
class Bad:
    """One place at which a job must be found broken, and in no other way."""

    before: str
    """The message that the worker did not live to send, as reports name points; or `END`. Empty in a scenario."""
    verdict: str
    effect: str
    layer: str = HANDLER
    """Empty in a scenario: filed as failed, where a person can see it."""
    modes: tuple[str, ...] = EXPLORED
    fault: str = KILL
    """What is done to this very message; a kill falls before it."""


@dataclass(frozen=True, slots=True)
class Planted:
    """One handler of the sample app and all that may be said about it."""

    name: str
    kind: str
    """`wrong` or `right`, the module in which it stands."""
    why: str
    """The reasoning behind `bad`, or why there is nothing to find."""
    steps: tuple[str, ...]
    """Its own state changes in order, as reports name points. The broker's come on top in queue mode."""
    contracts: tuple[Contract, ...]
    bad: tuple[Bad, ...] = ()
    modes: tuple[str, ...] = EXPLORED
    acks_early: bool = False
    """The job is settled while its first steps run, so the ack and these have no order."""
    after_ack: tuple[str, ...] = ()
    """Steps that come when the job is settled."""
    faults: tuple[str, ...] = (KILL,)
    """Families of strikes that it is put under."""
    strikes: int = 0
    """At most so many of them, at its own steps first: those that take long. 0: all."""
    scenario: str = ""
    """The scenario that it runs in: the name of a file in the app's folder `faults`."""
    trouble: str = ""
    """What fails there, in two or three words."""
    breaks: tuple[str, ...] = ()
    """The expectations of the scenario that must not hold, as they begin in a report."""
    rig: str = "club"
    """Which of the app's rigs runs it."""
    deploy: str = ""
    """The folder of the app's next version, where that is deployed."""
    speed: float = 1.0
    """How many times as fast the app lives."""
    only: tuple[str, str] | None = None
    """Fault and message of the one strike that it is put under; None: all of its families."""

    @property
    def must_happen(self) -> tuple[str, ...]:
        """The effects that are missed when the job never runs."""
        return tuple(contract.effect for contract in self.contracts if contract.kind != AT_MOST)


def second(message: str, number: int = 2) -> str:
    """The name of a later message of the same shape: `db COMMIT #2`."""
    return f"{message} #{number}"
