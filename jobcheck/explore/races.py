"""Races: in which order two deliveries of one job, A and B, take their turns. Pure.

A *step* is one message of A or B about state that both can see. Between two steps nothing that the other one does can
make a difference, so a run is told by whose turn each step was. A *schedule* names only the *preemptions*: who is held
before which message, although it could go on. Everything else follows: A begins; who runs goes on until it is held,
has ended or waits for a lock of the other one; then the other one goes on.

A and B run the same code, so what begins with B is the mirror image of what begins with A, and is not run.

Few preemptions find nearly everything (Musuvathi and Qadeer, "Iterative context bounding", PLDI 2007): all schedules
with none are tried, then all with one, then all with two. What the next ones are is known when a schedule was run, for
a schedule may lead the job another way.
"""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..history.ids import short_id
from ..history.records import Strike

A, B = "A", "B"
BOUND = 2
"""Preemptions at most."""
SPIN = 3
"""So many times the same message without any change, and who sends it is taken to wait for the other one."""
RACE = "race"


@dataclass(frozen=True, slots=True)
class Message:
    """The address of a message within one delivery, as of a point: upstream, shape, n-th occurrence."""

    upstream: str
    shape: str
    nth: int = 1

    @property
    def id(self) -> str:
        """The id of the point, where the message is one."""
        return short_id(self.upstream, self.shape, self.nth, "request")

    @property
    def name(self) -> str:
        """How a person reads it: `db SELECT job_effects`, `db COMMIT #2`."""
        return f"{self.upstream} {self.shape.split(' ', 1)[-1]}" + (f" #{self.nth}" if self.nth > 1 else "")


@dataclass(frozen=True, slots=True)
class Switch:
    """A preemption: `who` is held before this message, and the other one goes on."""

    who: str
    before: Message


@dataclass(frozen=True, slots=True)
class Schedule:
    """The preemptions of a run in their order; none: A to its end, then B."""

    switches: tuple[Switch, ...] = ()

    @property
    def preemptions(self) -> int:
        return len(self.switches)

    @property
    def text(self) -> str:
        """JSON that `parse` reads: `[["A","payments","http POST /charges",1]]`; empty without a preemption."""
        parts = [[one.who, one.before.upstream, one.before.shape, one.before.nth] for one in self.switches]
        return json.dumps(parts, separators=(",", ":")) if parts else ""

    @property
    def words(self) -> str:
        """For a person: `A held before payments POST /charges`."""
        if not self.switches:
            return "A to its end, then B"
        return ", then ".join(f"{one.who} held before {one.before.name}" for one in self.switches)


def parse(text: str) -> Schedule:
    """The schedule of a `text`. Raises ValueError when it is none."""
    if not text:
        return Schedule()
    try:
        parts = [Switch(who, Message(upstream, shape, int(nth))) for who, upstream, shape, nth in json.loads(text)]
    except (TypeError, ValueError) as error:
        raise ValueError(f"expected a schedule, got {text[:80]!r}: {error}") from None
    return Schedule(tuple(parts))


def strike_of(subject: str, schedule: Schedule, first: str = "") -> Strike:
    """The schedule as a strike; `first` is the id of the point that stands for one without preemptions."""
    point = schedule.switches[0].before.id if schedule.switches else first
    return Strike(id=short_id(subject, RACE, schedule.text), point=point, fault=RACE, when=schedule.text)


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of a run."""

    who: str
    message: Message
    free: bool
    """The other one could have gone on in its place."""
    changes: bool
    """It changes state, or locks it; false: it only looks."""


class Director:
    """Whose turn it is, message by message, by one schedule. Asked only while nobody moves."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.steps: list[Step] = []
        self.held: list[int] = []
        """Before which step each switch took place."""
        self._running = A
        self._idle: dict[str, tuple[str, int]] = {}

    @property
    def missed(self) -> tuple[Switch, ...]:
        """The preemptions that never came about."""
        return self.schedule.switches[len(self.held) :]

    def next(self, ready: Mapping[str, tuple[Message, bool]]) -> str:
        """Who goes on: one of those that wait for their turn with a message and whether that changes something."""
        able = {who: waiting for who, waiting in ready.items() if not self._spins(who)} or dict(ready)
        who = self._running if self._running in able else next(iter(able))
        if self._running != who:
            self._running = who
        elif len(self.held) < self.schedule.preemptions and len(able) > 1:
            switch = self.schedule.switches[len(self.held)]
            if switch.who == who and switch.before == able[who][0]:
                self.held.append(len(self.steps))
                who = next(other for other in able if other != who)
                self._running = who
        message, changes = able[who]
        self.steps.append(Step(who, message, len(able) > 1, changes))
        return who

    def answered(self, changed: bool) -> None:
        """What the last step did, by the server's own word. The other one may have waited for just this."""
        step = self.steps[-1]
        mine = f"{step.message.upstream} {step.message.shape}"
        shape, times = self._idle.get(step.who, ("", 0))
        self._idle = {step.who: (mine, 0 if changed else times + 1 if shape == mine else 1)}

    def _spins(self, who: str) -> bool:
        return self._idle.get(who, ("", 0))[1] >= SPIN


def further(schedule: Schedule, steps: Sequence[Step], since: int) -> list[Schedule]:
    """The schedules with one more preemption, after the last one of this run, which was before step `since`."""
    found = []
    for place in range(max(since, 0) + 1, len(steps)):
        step, before = steps[place], steps[place - 1]
        if step.free and step.who == before.who:
            found.append((_eager(before, step), place, Switch(step.who, step.message)))
    found.sort(key=lambda item: item[:2])
    return [Schedule((*schedule.switches, switch)) for _, _, switch in found]


def _eager(before: Step, step: Step) -> bool:
    """Sorts first what was looked at and is now acted upon: there the other one hurts most."""
    return not (step.changes and not before.changes)


@dataclass(slots=True)
class Search:
    """Proposes schedules, fewest preemptions first, and learns from each run which come next."""

    bound: int = BOUND
    tried: int = 0
    _waiting: list[tuple[int, int, Schedule]] = field(default_factory=list)
    _known: set[Schedule] = field(default_factory=set)
    _order: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self._add(Schedule())

    def _add(self, schedule: Schedule) -> None:
        if schedule not in self._known and schedule.preemptions <= self.bound:
            self._known.add(schedule)
            heapq.heappush(self._waiting, (schedule.preemptions, next(self._order), schedule))

    def propose(self) -> Schedule | None:
        """The next schedule to run; None when the space is exhausted."""
        if not self._waiting:
            return None
        self.tried += 1
        return heapq.heappop(self._waiting)[-1]

    def ran(self, schedule: Schedule, steps: Sequence[Step], held: Sequence[int]) -> None:
        """A run under this schedule took these steps; `held` as of the director."""
        for child in further(schedule, steps, held[-1] if held else 0):
            self._add(child)

    @property
    def left(self) -> int:
        """Schedules that are known and were not run. What these lead to is not known."""
        return len(self._waiting)


def smaller(schedule: Schedule) -> list[Schedule]:
    """The schedule without one of its preemptions, each once: what a failure is shrunk to."""
    return [
        Schedule((*schedule.switches[:place], *schedule.switches[place + 1 :])) for place in range(schedule.preemptions)
    ]
