"""The pure schedule: told the time and what happened, it says what is to be done now. It does nothing itself.

    schedule.due(now)              actions whose time has come
    schedule.observe(event, now)   actions that follow from what happened
    schedule.next_due(now)         when to ask again; None: only something that happens can bring the next action

Times are seconds since the workload began.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from .actions import (
    Action,
    ArmKill,
    ArmStop,
    ArmTrouble,
    CaseEnqueued,
    DuplicateDelivery,
    Happening,
    Heal,
    JobDelivered,
    JobEnded,
    PointReached,
    RestartWorker,
    WentQuiet,
    WorkerGone,
    WorkloadEnded,
)
from .plan import Copies, Plan, Step
from .triggers import CASES, Span


@dataclass(slots=True)
class _Copying:
    """One duplicate fault while it runs."""

    rule: Copies
    chosen: Iterator[bool]
    span: Span | None
    seen: int = 0
    """Deliveries so far."""
    made: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    """Jobs whose copy comes when they have ended, with the number of their delivery."""

    def copy(self, nth: int, job: str) -> DuplicateDelivery:
        return DuplicateDelivery(nth, job, self.rule.duplicate.mode, fault=self.rule.fault)


class Schedule:
    """One plan while it runs. Not to be used again.

    Duplicates need no healing and go on until the last job has ended; everything else is over when it heals.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.healed = False
        self._order = itertools.count()
        self._due: list[tuple[float, int, Action]] = []
        self._waiting = [step for step in plan.steps if step.after is not None]
        self._jobs: set[str] = set()
        self._cases = 0
        self._ended = False
        self._armed = 0
        self._quiet = False
        self._copying = [_Copying(rule, rule.chosen(), rule.duplicate.trigger.during) for rule in plan.copies]
        for step in plan.steps[:-1]:
            if step.after is None:
                self._at(step.at, step.action)

    def next_due(self, now: float) -> float | None:
        """The moment of the next action, `now` when one is overdue."""
        if not self._due:
            return now if self._may_heal() else None
        return max(now, self._due[0][0])

    def due(self, now: float) -> list[Action]:
        """What is to be done by now, in order. Each action is given once."""
        out = []
        while self._due and self._due[0][0] <= now:
            out.append(heapq.heappop(self._due)[2])
        self._armed += sum(isinstance(action, ArmKill | ArmStop | ArmTrouble) for action in out)
        if not out and not self._due and self._may_heal():
            self.healed = True
            out.append(Heal())
        return out

    def observe(self, event: Happening, now: float) -> list[Action]:
        """What is to be done because of this; the rest comes by `due`."""
        out: list[Action] = []
        if isinstance(event, CaseEnqueued):
            self._cases += 1
            self._release(now)
        elif isinstance(event, WorkloadEnded):
            self._ended = True
        elif isinstance(event, WentQuiet):
            self._quiet = True
        elif isinstance(event, PointReached):
            self._armed -= 1
            for later, action in event.then:
                self._at(now + later, action)
        elif isinstance(event, WorkerGone):
            if event.restart is not None:
                self._at(now + event.restart, RestartWorker(event.worker))
        elif isinstance(event, JobDelivered):
            out = self._delivered(event.job, now)
        elif isinstance(event, JobEnded):
            self._over(event.job, now)
        return out

    def abandon(self) -> None:
        """Nothing more is to be done: the run was stopped."""
        self.healed = True
        self._due.clear()
        self._waiting.clear()
        self._copying.clear()

    @property
    def unreached(self) -> list[Step]:
        """Steps whose event has not happened."""
        return list(self._waiting)

    @property
    def waits(self) -> bool:
        """All that is left is to come with events."""
        return self._ended and not self.healed and not self._due and not self._may_heal()

    @property
    def idle(self) -> bool:
        """Nothing more will come by `due`, unless something happens."""
        return self.healed and not self._due and not any(copying.waiting for copying in self._copying)

    # Inside

    def _at(self, moment: float, action: Action) -> None:
        heapq.heappush(self._due, (moment, next(self._order), action))

    def _may_heal(self) -> bool:
        """The workload is over, and nothing waits for an event that may still come."""
        waits = bool(self._waiting or self._armed) and not self._quiet
        return self._ended and not self.healed and not waits

    def _release(self, now: float) -> None:
        """Steps whose event is there get their time; after the healing nothing breaks any more."""
        if self.healed:
            return
        for step in list(self._waiting):
            assert step.after is not None
            seen = self._cases if step.after.unit == CASES else len(self._jobs)
            if seen >= step.after.number:
                self._waiting.remove(step)
                self._at(now + step.at, step.action)

    def _delivered(self, job: str, now: float) -> list[Action]:
        if job in self._jobs:
            return []
        self._jobs.add(job)
        self._release(now)
        out: list[Action] = []
        for copying in self._copying:
            copying.seen += 1
            if next(copying.chosen) and self._wanted(copying, now):
                copying.made += 1
                if copying.rule.duplicate.mode == "later":
                    copying.waiting[job] = copying.seen
                else:
                    out.append(copying.copy(copying.seen, job))
        return out

    def _wanted(self, copying: _Copying, now: float) -> bool:
        trigger = copying.rule.duplicate.trigger
        if trigger.times is not None and copying.made >= trigger.times:
            return False
        if trigger.at is not None and now < trigger.at:
            return False
        if trigger.lasts is not None and now >= (trigger.at or 0.0) + trigger.lasts:
            return False
        return copying.span is None or copying.span.start <= now < copying.span.end

    def _over(self, job: str, now: float) -> None:
        for copying in self._copying:
            if job in copying.waiting:
                number = copying.waiting.pop(job)
                self._at(now + copying.rule.duplicate.delay, copying.copy(number, job))
