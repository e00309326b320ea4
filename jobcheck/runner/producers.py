"""Producer mode: the function that stores a row and enqueues a job, in a fresh fork, with no worker at all.

It is killed at each of its points and not run again: who called it was told nothing, and may never come back. Then the
rig's `settle` hooks run, such as a relay, and what is left is counted: what was committed, by the database's own word
on the wire, and the jobs, by taking them out of the broker. `checks.producers` judges it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from ..checks.producers import COMMITTED, JOB
from ..history.records import CaseRecord, Effect, Point, Strike, TrialRecord
from ..systems.contract import Settings, Waiting
from ..tap.sight import IN
from ..wire.unit import Change
from .crew import Crew
from .handler import Fork, HandlerMode, where_of
from .lane import Case, Lane
from .trial import Running, record

WORKER = "caller"
"""The slot of the function that is struck."""
SETTLERS = (WORKER, "producer")
"""Slots whose commits count: the function's own, and that of the hooks."""


class ProducerMode(HandlerMode):
    """Runs one function that is called with a case, as an enqueue function is."""

    name = "producer"
    worker = WORKER
    runs_again = False

    def __init__(self, lane: Lane, subject: str, function: str) -> None:
        super().__init__(lane, subject, function, function)
        self.key = f"{subject}/{lane.rig.system.name} producer"
        self.broker = lane.rig.system.broker
        self.settings: Settings

    async def open(self) -> None:
        lane = self.lane
        for name in [name for name, kept in lane.kept.items() if isinstance(kept, Crew)]:
            await lane.kept.pop(name).dismiss()  # workers of an earlier subject would take the jobs
        if WORKER not in lane.kept:
            slot = await lane.slot(WORKER, lane.rig.system.dialect())
            agent, producer = await asyncio.gather(lane.agent(slot), lane.producer())
            settings = await lane.rig.system.describe(producer.agent.call, safe=False)
            lane.kept[WORKER] = (slot, agent, settings)
        self.slot, self._handler, self.settings = lane.kept[WORKER]
        # What the function imports is imported once, so that its forks do not.
        app = lane.rig.system.launch(WORKER, safe=False).preload[:1]
        await self._handler.request("warm", modules=list(app), must=[])
        await self._handler.request("import", function=self.job)
        await self._take_jobs()

    async def prepared(self) -> Case:
        """Whoever dies has told no ids; nothing else runs on the lane, so all that happens is the case's."""
        data = self.lane.case_data()
        return Case(CaseRecord(id=str(data["id"]), number=int(str(data["number"]))), data)

    async def run(self, purpose: str, strike: Strike | None = None, point: Point | None = None) -> TrialRecord:
        lane = self.lane
        running = await self.played(purpose, strike, point)
        rows = self._rows()
        last = len(lane.trace.sights)
        jobs = await self._take_jobs()
        trial = await record(lane, self.key, running)
        told = tuple(op for op in trial.operations if op.seq <= last)  # taking the jobs out is no part of the story
        return replace(trial, operations=told, effects=(*trial.effects, *rows, *self._jobs(jobs, len(rows))))

    async def start(self, running: Running) -> Fork:
        """One call, in a fork of its own."""
        running.deliveries += 1
        pid = await self._handler.fork_case(self.job, running.case.value)
        return Fork(pid, self._handler.exit_of(pid))

    async def finish(self, running: Running, fork: Fork) -> None:
        """Waits for the end of a call that is not struck."""
        exit_ = await self.end_of(running, fork)
        if exit_ is None:
            return
        if exit_.status != 0 and running.purpose in ("warm-up", "recording"):
            where = where_of(exit_, self.lane.rig.folder)
            running.problems.append(f"the producer failed in a clean run: {exit_.text}{where}")
        await self.lane.settle_links([self.slot])

    # What is left

    def _rows(self) -> tuple[Effect, ...]:
        """What was committed, whoever heard of it: by the answers of the databases."""
        effects: list[Effect] = []
        for sight in self.lane.trace.sights:
            if sight.worker not in SETTLERS or sight.way != IN or sight.unit.change is not Change.YES:
                continue
            for label in sight.unit.info.get("wrote", ()):
                name = f"{sight.upstream} {label}"
                at = round(sight.at, 6)
                effects.append(Effect(len(effects) + 1, at, name, label, {COMMITTED: label}))
        return tuple(effects)

    async def _take_jobs(self) -> list[Waiting]:
        producer = await self.lane.producer()
        return await self.lane.rig.system.take_all(producer.agent.call, self.settings)

    def _jobs(self, jobs: Sequence[Waiting], seq: int) -> tuple[Effect, ...]:
        """The jobs that the broker held, at the time when they were sent."""
        sent = {sight.job: sight.at for sight in self.lane.trace.sights if sight.role == "enqueue" and sight.job}
        now, clean = self.lane.trace.now(), self.lane.stage.redactor.text
        effects = []
        for number, job in enumerate(jobs, seq + 1):
            arguments = clean(job.arguments)
            fields = {"json": {"task": job.name, "arguments": arguments}}
            body = f"{job.name} {arguments}"
            effects.append(Effect(number, round(sent.get(job.id, now), 6), f"{JOB}{job.name}", body, fields))
        return tuple(effects)
