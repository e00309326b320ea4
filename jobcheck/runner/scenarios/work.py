"""The workload of a scenario: cases at a constant rate, whatever becomes of them (an open model)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...aio import within
from ...errors import CaseError, UsageError, WaitTimeout, WorkerError
from ...faults.actions import CaseComing, CaseEnqueued, WorkloadEnded
from ...history.records import CaseRecord
from ...scenario.model import Workload
from ..agents import Agent
from ..lane import Lane
from ..rig import Rig
from .book import Book
from .lane import PRODUCER, ScenarioLane
from .scribe import Scribe

ENQUEUE_WITHIN = 30.0
"""Seconds for one enqueue call."""


@dataclass(slots=True)
class Enqueued:
    """One enqueue call."""

    record: CaseRecord
    acknowledged: bool
    error: str = ""
    version: str = ""


@dataclass(slots=True)
class Pace:
    """Asked and achieved."""

    asked: float
    """Cases per second."""
    count: int = 0
    seconds: float = 0.0
    late: float = 0.0
    """The most that a case was behind its time, in seconds."""

    @property
    def achieved(self) -> float:
        """Cases per second, as they were put in."""
        return self.count / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class _Maker:
    agent: Agent
    scribe: Scribe


class Producers:
    """The children that enqueue, one for each version of the app."""

    def __init__(self, lane: ScenarioLane, book: Book, function: str, rigs: Mapping[str, Rig]) -> None:
        self._lane = lane
        self._book = book
        self._function = function
        self._rigs = rigs
        self._makers: dict[str, _Maker] = {}
        self._numbers = 0
        self._turn = asyncio.Lock()
        self.in_hand: CaseRecord | None = None
        """The case that is being made."""

    async def open(self, versions: list[str]) -> None:
        """Boots one for each version."""
        for version in dict.fromkeys(versions):
            rig = self._rigs[version]
            lane: Lane = self._lane.of_version(rig)
            scribe = Scribe(rig.system.dialect(), self._book, PRODUCER)
            scribe.producer = True
            scribe.version = version
            slot = await self._lane.slot(PRODUCER + (f"-{version}" if version else ""), scribe)
            scribe.slot = slot
            self._makers[version] = _Maker(await lane.agent(slot), scribe)

    def agent(self, version: str) -> Agent:
        return self._makers[version].agent

    async def make(self, version: str, values: Mapping[str, Any]) -> Enqueued:
        """Runs the enqueue function once. One at a time: what is enqueued meanwhile belongs to this case."""
        async with self._turn:
            return await self._make(version, values)

    async def _make(self, version: str, values: Mapping[str, Any]) -> Enqueued:
        self._numbers += 1
        number = (self._lane.number + 1) * 100_000 + self._numbers
        record = CaseRecord(f"case-{number}", number)
        data = {"id": record.id, "number": number, "seed": self._lane.stage.seeds.seed, "values": dict(values)}
        self._book.case = record.id
        self.in_hand = record
        try:
            answer = await self.agent(version).request(
                "case", seconds=ENQUEUE_WITHIN, function=self._function, case=data
            )
            found = Enqueued(replace(record, ids=answer["ids"]), True, version=version)
        except (CaseError, WaitTimeout) as error:
            owned = replace(record, ids=dict(error.ids)) if isinstance(error, CaseError) else record
            found = Enqueued(owned, False, self._lane.stage.redactor.text(str(error)), version)
        self.in_hand = None
        found.record = replace(found.record, jobs=tuple(job.id for job in self._book.of_case(record.id)))
        return found


class Work:
    """Enqueues at the asked rate."""

    def __init__(
        self, workload: Workload, producers: Producers, book: Book, values: Callable[[int], Mapping[str, Any]]
    ) -> None:
        self._workload = workload
        self.make = producers.make
        """Runs the enqueue function for one case of the workload."""
        self._producers = producers
        self._book = book
        self.values = values
        self.cases: list[Enqueued] = []
        self.begun = 0
        """Enqueue calls that were begun."""
        self.extras = 0
        """Cases that were enqueued beside the workload."""
        self.pace = Pace(workload.rate)
        self.over = False
        self.share = 1.0
        self.version = ""
        self.before = ""
        """Who enqueues the cases that are not of the share."""
        self.draw: Callable[[], float] = lambda: 0.0
        self.speed = 1.0
        """How much faster than real time the rate is kept."""
        self.trouble = ""
        """Why it could not go on."""
        self._stopped = False
        self._given_up = False
        self._end = asyncio.Event()
        self._end.set()

    async def stop(self, seconds: float) -> None:
        """No further case. The one that is being made gets so many seconds, then nobody knows what becomes of it."""
        self._stopped = True
        try:
            await within(self._end.wait(), seconds, "the enqueue call that is going on")
        except WaitTimeout as error:
            if (record := self._producers.in_hand) is not None:
                self.cases.append(Enqueued(record, False, str(error), self.version))
            self._given_up = True

    async def extra(self) -> Enqueued:
        """One more case, beside the workload and its rate. Raises WorkerError when the producer is gone."""
        self.extras += 1
        made = await self._producers.make(self.version, self.values(self._workload.count + self.extras))
        self.cases.append(made)
        return made

    async def run(self) -> None:
        """Puts in all cases: the n-th at n / rate, or as soon after it as the one before is done."""
        book, rate = self._book, self._workload.rate
        begin = book.now()
        self._end.clear()
        try:
            for number in range(self._workload.count):
                wait = begin + number / rate - book.now()
                if wait > 0:
                    await asyncio.sleep(wait / self.speed)
                else:
                    self.pace.late = max(self.pace.late, -wait)
                if self._stopped:
                    break
                version = self.version if self.draw() < self.share else self.before
                self.begun += 1
                book.happened(CaseComing())
                made = await self.make(version, self.values(number))
                if not self._given_up:
                    self.cases.append(made)
                self.pace.count = number + 1
                self.pace.seconds = max(book.now() - begin, self.pace.count / rate)
                book.happened(CaseEnqueued())
        except WorkerError as error:
            self.trouble = str(error)
        finally:
            self.over = True
            self._end.set()
            book.case = ""
            book.happened(WorkloadEnded())


@dataclass(slots=True)
class Values:
    """Values of cases by Faker, from the seed and the number of the case alone."""

    workload: Workload
    seed: int
    _faker: Any = field(default=None)

    def __call__(self, number: int) -> dict[str, Any]:
        """The values of the case with this number. Raises UsageError for a provider that Faker has not."""
        if not self.workload.values:
            return {}
        faker = self._make()
        faker.seed_instance(f"{self.seed}/{number}")
        made = {}
        for name, provided in self.workload.values.items():
            maker = getattr(faker, provided.provider, None)
            lead = self.workload.where.lead("values")
            if maker is None:
                raise UsageError(f"{lead}{name}: Faker has no provider {provided.provider!r}")
            try:
                value = maker(**provided.arguments)
            except TypeError as error:
                raise UsageError(f"{lead}{name}: {error}") from None
            made[name] = value if isinstance(value, str | int | float | bool | list | dict) else str(value)
        return made

    def _make(self) -> Any:
        if self._faker is None:
            try:
                from faker import Faker
            except ImportError:
                raise UsageError(
                    f"{self.workload.where.lead('values')}values are made by Faker, which is not installed",
                    hint="pip install 'jobcheck[faker]'",
                ) from None
            self._faker = Faker()
        return self._faker
