"""Run events: what the runner says while it works. Faces and reports listen; the runner does not know them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all run events."""


@dataclass(frozen=True, slots=True)
class ServiceStarted(Event):
    """A broker, database or stand-in is up. `origin` says where it came from."""

    upstream: str
    kind: str
    version: str
    origin: str


@dataclass(frozen=True, slots=True)
class PhaseStarted(Event):
    """Preparation that takes a noticeable time: installing wheels, booting workers."""

    text: str


@dataclass(frozen=True, slots=True)
class SubjectStarted(Event):
    """The exploration of one job in one mode begins."""

    name: str
    mode: str


@dataclass(frozen=True, slots=True)
class PointsFound(Event):
    """The recordings agree; this many points and strikes follow."""

    name: str
    mode: str
    points: int
    strikes: int
    plan: str = ""
    """The strikes by fault: `4 kills and 6 lost replies`."""
    takes: str = ""
    """How long they will take: `about 40 s`, and what makes it long."""


@dataclass(frozen=True, slots=True)
class StrikeDone(Event):
    """One strike was judged. `done` of `planned` strikes are behind us."""

    name: str
    mode: str
    verdict: str
    done: int
    planned: int


@dataclass(frozen=True, slots=True)
class SubjectFinished(Event):
    """The exploration of one job in one mode is over."""

    name: str
    mode: str
    verdict: str
    findings: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ScenarioStarted(Event):
    """A scenario's workers are ready; its workload begins."""

    title: str
    file: str
    seed: int
    cases: int
    seconds: float
    """How long the workload takes at its rate."""
    plan: tuple[str, ...] = ()
    """The plan, a line each."""


@dataclass(frozen=True, slots=True)
class ScenarioStep(Event):
    """Something of the plan was done: `at` seconds after the workload began, and what came of it."""

    title: str
    at: float
    text: str
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioProgress(Event):
    """How far a scenario is, about twice a second."""

    title: str
    phase: str
    """`workload`, `heal`, `settle`, `drain`."""
    enqueued: int
    cases: int
    jobs_ended: int
    jobs_seen: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ScenarioFinished(Event):
    """A scenario is over. `counts` is one line."""

    title: str
    verdict: str
    counts: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Warned(Event):
    """Something a person should know; the run goes on."""

    text: str


class Bus:
    """Hands each event to every listener, in the order in which they subscribed."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Event], None]] = []

    def subscribe(self, listener: Callable[[Event], None]) -> None:
        self._listeners.append(listener)

    def emit(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)
