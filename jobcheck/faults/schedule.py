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
    CaseComing,
    CaseEnqueued,
    DuplicateDelivery,
    Happening,
    Heal,
    JobDelivered,
    JobEnded,
    JobHeld,
    PointReached,
    RestartWorker,
    WentQuiet,
    WorkerGone,
    WorkloadEnded,
)
from .model import Reorder
from .orders import DelayJob, PutBack, ReorderJobs
from .plan import Copies, Plan, Step, Turns
from .triggers import CASES, Draw, Trigger


@dataclass(slots=True)
class _Copying:
    """One duplicate fault while it runs."""

    rule: Copies
    chosen: Iterator[bool]
    seen: int = 0
    """Deliveries so far."""
    made: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    """Jobs whose copy comes when they have ended, with the number of their delivery."""

    def copy(self, nth: int, job: str) -> DuplicateDelivery:
        return DuplicateDelivery(nth, job, self.rule.duplicate.mode, fault=self.rule.fault)


@dataclass(slots=True)
class _Turning:
    """One fault that changes the order of jobs, while it runs."""

    rule: Turns
    chosen: Iterator[bool]
    ways: Draw
    made: int = 0


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
        self._copying = [_Copying(rule, rule.chosen()) for rule in plan.copies]
        self._turning = [_Turning(rule, rule.chosen(), rule.ways()) for rule in plan.turns]
        self._gathered = 0
        """The jobs of the cases before this one wait until they are handed out in another order."""
        self._held: dict[str, tuple[DelayJob, int]] = {}
        """Jobs that are held back until so many were handed out."""
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
            self._held.clear()
            out.append(Heal())
        return out

    def observe(self, event: Happening, now: float) -> list[Action]:
        """What is to be done because of this; the rest comes by `due`."""
        out: list[Action] = []
        if isinstance(event, CaseComing):
            out = self._coming(now)
        elif isinstance(event, JobHeld):
            self._keep(event.job, event.action, now)
        elif isinstance(event, CaseEnqueued):
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
        self._held.clear()

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
        waits = bool(self._waiting or self._armed or self._held) and not self._quiet
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
        out: list[Action] = self._passed_by()
        for copying in self._copying:
            copying.seen += 1
            if next(copying.chosen) and _wanted(copying.rule.duplicate.trigger, copying.made, now):
                copying.made += 1
                if copying.rule.duplicate.mode == "later":
                    copying.waiting[job] = copying.seen
                else:
                    out.append(copying.copy(copying.seen, job))
        return out

    def _coming(self, now: float) -> list[Action]:
        """What is done to the jobs of the case that is put in next."""
        nth, out = self._cases + 1, list[Action]()
        for turning in self._turning:
            rule, fault = turning.rule.rule, turning.rule.fault
            if not next(turning.chosen) or not _wanted(rule.trigger, turning.made, now):
                continue
            if isinstance(rule, Reorder):
                if nth <= self._gathered:
                    continue  # they come in another order as it is
                cases = min(rule.cases, self.plan.count - self._cases)
                self._gathered = self._cases + cases
                out.append(ReorderJobs(nth, cases, turning.ways.random(), fault=fault))
            else:
                out.append(DelayJob(nth, rule.seconds, rule.others, turning.ways.random(), fault=fault))
            turning.made += 1
        return out

    def _keep(self, job: str, action: DelayJob, now: float) -> None:
        if action.seconds is not None:
            self._at(now + action.seconds, PutBack(job, action.nth, fault=action.fault))
        else:
            self._held[job] = (action, len(self._jobs) + action.others)

    def _passed_by(self) -> list[Action]:
        """Jobs that were held back until now."""
        due = [(job, action) for job, (action, number) in self._held.items() if len(self._jobs) >= number]
        for job, _ in due:
            del self._held[job]
        return [PutBack(job, action.nth, fault=action.fault) for job, action in due]

    def _over(self, job: str, now: float) -> None:
        for copying in self._copying:
            if job in copying.waiting:
                number = copying.waiting.pop(job)
                self._at(now + copying.rule.duplicate.delay, copying.copy(number, job))


def _wanted(trigger: Trigger, made: int, now: float) -> bool:
    """Whether a fault that chooses one by one acts at this time, after it has acted so often."""
    if trigger.times is not None and made >= trigger.times:
        return False
    if trigger.at is not None and now < trigger.at:
        return False
    if trigger.lasts is not None and now >= (trigger.at or 0.0) + trigger.lasts:
        return False
    return trigger.during is None or trigger.during.start <= now < trigger.during.end
