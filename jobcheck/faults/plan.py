"""From faults to a plan: every moment, every worker and every share is drawn here, from named streams of the seed.

Each fault draws from streams of its own, so that a fault added below does not move those above it. Every lasting
fault comes with the action that ends it, and the last step of every plan heals all of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..seeds import Seeds
from .actions import (
    Action,
    AddToxic,
    ArmKill,
    ArmStop,
    ArmTrouble,
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
from .model import (
    ALL,
    ANY,
    GOES_DOWN,
    STEP,
    Delay,
    Deploy,
    Duplicate,
    Fail,
    Fault,
    Kill,
    Outage,
    Poison,
    Reorder,
    Restart,
)
from .triggers import After, Draw


@dataclass(frozen=True, slots=True)
class Step:
    """One action at its time."""

    at: float
    """Seconds since the workload began, or since the event of `after`."""
    action: Action
    after: After | None = None
    heals: bool = False
    """It ends what an earlier step began."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Which deliveries come twice: drawn one by one, in the order of the deliveries."""

    fault: int
    duplicate: Duplicate
    draws: Callable[[], Draw] = field(compare=False)
    """A fresh stream: the same draws each time."""

    def chosen(self) -> Iterator[bool]:
        """Whether the 1st, 2nd, 3rd ... delivery is chosen; without end."""
        return _drawn(self.draws(), self.duplicate.share)

    def first(self, deliveries: int) -> list[int]:
        """Numbers of those chosen among so many deliveries."""
        return _numbers(self.chosen(), deliveries)


@dataclass(frozen=True, slots=True)
class Turns:
    """Of which cases jobs come in another order, or late: drawn one by one, in the order of the cases."""

    fault: int
    rule: Reorder | Delay
    draws: Callable[[], Draw] = field(compare=False)
    """A fresh stream: the same draws each time."""
    ways: Callable[[], Draw] = field(compare=False)
    """The same for which job it is, and for the order."""

    def chosen(self) -> Iterator[bool]:
        """Whether the 1st, 2nd, 3rd ... case is chosen; without end."""
        if isinstance(self.rule, Delay) and self.rule.each:
            each = self.rule.each
            return (number % each == 0 for number in itertools.count(1))
        return _drawn(self.draws(), self.rule.share)

    def first(self, cases: int) -> list[int]:
        """Numbers of those chosen among so many cases."""
        return _numbers(self.chosen(), cases)


def _drawn(draw: Draw, share: float) -> Iterator[bool]:
    while True:
        yield draw.random() < share


def _numbers(chosen: Iterator[bool], many: int) -> list[int]:
    return [number for number, hit in zip(range(1, many + 1), chosen, strict=False) if hit]


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done, as far as the seed decides it. What depends on the run is in `copies`, `turns`, `ArmKill`."""

    seed: int
    count: int
    """Cases."""
    rate: float
    """Cases per second."""
    workers: tuple[str, ...]
    steps: tuple[Step, ...]
    """In the order of their time; the first starts the workload, the last heals."""
    copies: tuple[Copies, ...] = ()
    turns: tuple[Turns, ...] = ()

    @property
    def length(self) -> float:
        """Seconds that the workload takes at its rate."""
        return self.count / self.rate

    @property
    def ends(self) -> float:
        """Seconds until the last timed step, the healing left out."""
        return max([self.length, *(step.at for step in self.steps[:-1] if step.after is None)])


def make_plan(faults: Sequence[Fault], *, count: int, rate: float, workers: Sequence[str], seeds: Seeds) -> Plan:
    """The same faults and the same seed give the same plan, on every machine."""
    planner = _Planner(count / rate, tuple(workers), seeds)
    steps: list[Step] = []
    copies: list[Copies] = []
    turns: list[Turns] = []
    for number, fault in enumerate(faults):
        if isinstance(fault, Duplicate):
            copies.append(Copies(number, fault, planner.again(number, "copies")))
        elif isinstance(fault, Reorder | Delay):
            turns.append(Turns(number, fault, planner.again(number, "cases"), planner.again(number, "orders")))
        else:
            steps += planner.steps(number, fault)
    steps.sort(key=lambda step: (step.after is not None, step.at, step.action.fault))
    first, last = Step(0.0, StartWorkload(count, rate)), Step(math.inf, Heal(), heals=True)
    return Plan(seeds.seed, count, rate, tuple(workers), (first, *steps, last), tuple(copies), tuple(turns))


class _Planner:
    """Steps of one fault after another."""

    def __init__(self, length: float, workers: tuple[str, ...], seeds: Seeds) -> None:
        self._length = length
        self._workers = workers
        self._seeds = seeds

    def again(self, number: int, purpose: str) -> Callable[[], Draw]:
        """Makes the named stream of a fault anew."""
        return lambda: self._seeds.stream("fault", number, purpose)

    def steps(self, number: int, fault: Fault) -> Iterator[Step]:
        draw = self.again(number, "moments")()
        moments = self._moments(fault, draw)
        choose = self.again(number, "workers")()
        for turn, at in enumerate(moments):
            for later, action, heals in self._actions(fault, number, turn, choose):
                yield Step(round(at + later, 3), replace(action, fault=number), fault.trigger.after, heals)

    def _moments(self, fault: Fault, draw: Draw) -> Sequence[float]:
        trigger = fault.trigger
        timed = trigger.at is not None or trigger.every is not None or trigger.times is not None
        if not timed and trigger.during is None:
            # Lasting faults without a time are there from the start; with an event to wait for, all begin with it.
            stays = isinstance(fault, Poison | Outage) or (isinstance(fault, Fail) and fault.how not in GOES_DOWN)
            if trigger.after is not None or stays:
                return (0.0,)
            if isinstance(fault, Deploy):
                return (round(self._length * 0.4, 3),)
        return trigger.moments(self._length, draw)

    def _actions(self, fault: Fault, number: int, turn: int, choose: Draw) -> Iterator[tuple[float, Action, bool]]:
        """The actions of one turn: seconds after its moment, action, whether it heals."""
        lasts = fault.trigger.lasts
        if isinstance(fault, Kill):
            yield 0.0, self._kill(fault, choose), False
        elif isinstance(fault, Fail):
            yield from self._fail(fault)
        elif isinstance(fault, Restart) and fault.point is not None:
            yield 0.0, ArmStop(fault.worker, fault.point), False
        elif isinstance(fault, Restart):
            names = self._workers if fault.worker == ALL else [self._one(fault.worker, choose)]
            for place, worker in enumerate(names):
                yield place * STEP, StopWorker(worker), False
        elif isinstance(fault, Poison):
            name = f"{fault.toxic.kind}-{number + 1}" + (f"-{turn + 1}" if turn else "")
            role = self._one(ANY, choose) if fault.role == ANY else fault.role
            yield 0.0, AddToxic(name, fault.toxic, fault.upstream, role, fault.messages), False
            if lasts is not None:
                yield lasts, RemoveToxic(name, fault.upstream), True
        elif isinstance(fault, Outage):
            name = f"outage-{number + 1}" + (f"-{turn + 1}" if turn else "")
            yield 0.0, BeginOutage(name, fault.upstream, fault.reply), False
            if lasts is not None:
                yield lasts, EndOutage(name, fault.upstream), True
        elif isinstance(fault, Deploy):
            yield from self._deploy(fault, choose)

    def _kill(self, fault: Kill, choose: Draw) -> Action:
        if fault.point is not None:
            return ArmKill(fault.worker, fault.point, fault.scope, fault.restart)
        return KillWorker(self._one(fault.worker, choose), fault.scope, fault.restart)

    def _fail(self, fault: Fail) -> Iterator[tuple[float, Action, bool]]:
        if fault.point is not None:
            yield 0.0, ArmTrouble(fault.service, fault.how, fault.point, fault.lasts), False
            return
        yield 0.0, BeginTrouble(fault.service, fault.how), False
        if fault.lasts is not None:
            yield fault.lasts, EndTrouble(fault.service, fault.how, fault.lasts), True

    def _deploy(self, fault: Deploy, choose: Draw) -> Iterator[tuple[float, Action, bool]]:
        left = list(self._workers)
        count = math.ceil(fault.mix * len(left))
        if fault.point is not None:
            order = tuple(left.pop(choose.randrange(0, len(left))) for _ in range(len(left)))
            yield (
                0.0,
                ArmStop(ANY, fault.point, fault.version, fault.mix, order, count - 1, fault.step),
                False,
            )
            return
        chosen = [left.pop(choose.randrange(0, len(left))) for _ in range(count)]
        yield 0.0, DeployProducer(fault.version, fault.mix), False
        for place, worker in enumerate(chosen):
            yield place * fault.step, DeployWorker(worker, fault.version), False
        if fault.rollback and fault.trigger.lasts is not None:
            yield fault.trigger.lasts, DeployProducer(fault.origin), True
            for place, worker in enumerate(chosen):
                yield (
                    fault.trigger.lasts + place * fault.step,
                    DeployWorker(worker, fault.origin, fault.trigger.lasts),
                    True,
                )

    def _one(self, worker: str, choose: Draw) -> str:
        return self._workers[choose.randrange(0, len(self._workers))] if worker == ANY else worker
