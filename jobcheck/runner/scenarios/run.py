"""One scenario from the first worker to the verdict."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...aio import Tasks, bounded, within
from ...errors import Aborted, CaseError, JobcheckError, WaitTimeout
from ...events import Bus, PhaseStarted, ScenarioProgress, ScenarioStarted, ScenarioStep
from ...faults.actions import Happening, Heal, StartWorkload, WentQuiet
from ...faults.describe import describe
from ...faults.model import Fail, Poison
from ...faults.plan import Plan
from ...faults.schedule import Schedule
from ...history.records import CaseRecord
from ...scenario.model import Scenario
from ...scenario.planning import plan as plan_of
from ...tap.sight import Sight
from .. import leases
from ..boots import ZYGOTE
from ..byhand import Hands
from ..clocks import out_of_reach
from ..rig import Rig
from .about import Ending, about
from .actor import Actor
from .clocks import check_length
from .gate import Arm
from .hand import Hand
from .judge import Judged, Seen, judge_scenario
from .lane import ScenarioLane
from .open import Baseline, open_world, record_clean, start_all
from .probes import HEALING
from .providers import told
from .quiet import Calm
from .world import Done, World

TICK = 0.25
"""Seconds between two looks at servers and workers."""
TELL_EVERY = 0.5
"""Seconds between two events of progress."""
HEAL_WITHIN = 60.0
"""Seconds for the healing: workers boot in it."""
STOP_WITHIN = 5.0
"""Seconds for the enqueue call that goes on when the run is stopped."""
AFTER_ABORT = 10.0
"""Seconds to drain after Ctrl-C."""


class ScenarioRun:
    """Use once: `open`, `run`, `close`; `report` is there when `run` is over."""

    def __init__(
        self,
        scenario: Scenario,
        rig: Rig,
        lane: ScenarioLane,
        bus: Bus,
        folder: Path,
        keep: Callable[..., None],
        boot: str = ZYGOTE,
        hands: Hands | None = None,
        beside: bool = False,
    ) -> None:
        self.scenario = scenario
        self.rig = rig
        self.lane = lane
        self.bus = bus
        self.folder = folder
        self.plan: Plan = plan_of(scenario, lane.stage.seeds.seed)
        self.schedule = Schedule(self.plan)
        self._keep = keep
        self._boot = boot
        self._hands = hands
        self._beside = beside
        """Others run beside it: when all are stopped, nothing is reported, so nothing is healed for a report either."""
        self._tasks = Tasks()
        self._wake = asyncio.Event()
        self._phase = "workload"
        self._told = 0.0
        self._over_at = 0.0
        self._world: World
        self._actor: Actor
        self._hand: Hand
        self._calm: Calm
        self._baseline: Baseline

    async def run(self) -> dict[str, Any]:
        """The scenario's part of the report. What can be known to be wrong before the faults raises."""
        check_length(self.scenario, self.plan, self.lane.stage)
        self._world = await open_world(self.scenario, self.rig, self.lane, self.folder, self._boot, self._strike)
        self._actor = Actor(self._world, self._did)
        self._hand = Hand(self._world, self._did)
        self._calm = Calm(self._world, self._actor, lambda: False)
        if self.scenario.faults and self.scenario.real_clocks:
            leases.check_drain(self._world.settings, self.lane.stage, self.scenario)
        try:
            await start_all(self._world)
            self._baseline = await record_clean(
                self._world, self.scenario, self.rig, self._calm, self._tasks, self._settle
            )
            ending = await self._live()
            return await self._judge(ending)
        finally:
            await self._actor.close()
            await self._tasks.close()

    # The faults

    async def _live(self) -> Ending:
        """Runs the plan, heals, settles and drains, whatever happens; says how far it came."""
        world, scenario = self._world, self.scenario
        world.book.begin(world.lane.stage.job_clock.now())
        # What taps say of connections while workers are killed and networks are bad is no news.
        for note in world.lane.trace.notes:
            world.note(note)
        world.book.happened = self._happened
        self._calm = Calm(world, self._actor, lambda: not self.schedule.idle)
        expected = self.plan.count * self._baseline.deliveries
        lines = describe(self.plan, deliveries=expected)
        self.bus.emit(
            ScenarioStarted(
                scenario.title, scenario.file, self.plan.seed, self.plan.count, self.plan.length, tuple(lines)
            )
        )
        self._keep("scenario_plan", title=scenario.title, lines=lines)
        self._hand_over()
        ending = Ending()
        try:
            await within(self._spoil(), scenario.timeouts.trial, f"the plan of {scenario.title!r} to be carried out")
            await self._recover(ending, scenario.timeouts.drain)
        except asyncio.CancelledError:
            if self._beside:
                raise
            ending.aborted = True
            ending.problem = f"stopped after {world.book.now():.1f} s"
            _forgive()
            await self._after(ending, AFTER_ABORT)
        except JobcheckError as error:
            ending.problem = str(error)
            await self._after(ending, AFTER_ABORT)
        return ending

    def _hand_over(self) -> None:
        """From now on, faults can be set by hand as well."""
        if (by_hand := self.lane.network.by_hand) is not None:
            by_hand.api.changed = self._hand.changed
            by_hand.open()
            if self._hands is not None:
                self._hands.ready(by_hand.url)
            self.bus.emit(PhaseStarted(f"{by_hand.url} answers as Toxiproxy: {', '.join(self.rig.upstreams)}"))

    async def _spoil(self) -> None:
        """The plan, and whoever sets faults beside it."""
        await self._drive()
        while self._hands is not None and not self._hands.done():
            self._look()
            await asyncio.sleep(TICK)

    async def _drive(self) -> None:
        """Does what the schedule says until it says to heal."""
        book = self._world.book
        while True:
            for action in self.schedule.due(book.now()):
                if isinstance(action, Heal):
                    return
                self._begin(action)
            self._look()
            if self.schedule.waits:
                await self._wait_no_longer()
            if self._world.work.trouble:
                raise CaseError(f"the workload could not go on: {self._world.work.trouble}")
            due = self.schedule.next_due(book.now())
            pause = TICK if due is None else min(TICK, max(0.0, due - book.now()) / self.scenario.speed)
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                await bounded(self._wake.wait(), pause)

    async def _wait_no_longer(self) -> None:
        """What waits for an event is given up when nothing goes on any more, or after the time to drain."""
        self._over_at = self._over_at or self._world.book.now()
        late = self._world.book.now() - self._over_at > self.scenario.timeouts.drain * self.scenario.speed
        if late or await self._calm.now():
            self._happened(WentQuiet())

    def _look(self) -> None:
        """Servers live, crashed workers are started again, and the world is told how far it is. Raises ServiceError."""
        self.lane.check_alive()
        for post in self._world.posts.values():
            if post.crashed:
                post.wanted_up = False
                self._tasks.start(f"{post.name} crashed", self._actor.crashed(post))
        now = self._world.book.now()
        if now - self._told >= TELL_EVERY * self.scenario.speed:
            self._told = now
            book, work = self._world.book, self._world.work
            self.bus.emit(
                ScenarioProgress(
                    self.scenario.title, self._phase, len(work.cases), self.plan.count, book.ended, len(book.jobs), now
                )
            )
        for action in self.schedule.due(now) if self.schedule.healed else ():
            self._begin(action)

    def _begin(self, action: Any) -> None:
        if isinstance(action, StartWorkload):
            self._tasks.start("workload", self._world.work.run())
            self._did(Done(0.0, action.text))
        else:
            self._actor.begin(action)

    def _happened(self, event: Happening) -> None:
        for action in self.schedule.observe(event, self._world.book.now()):
            self._begin(action)
        self._wake.set()

    def _strike(self, worker: str, arm: Arm, hit: Sight) -> None:
        self._actor.strike(worker, arm, hit)

    def _did(self, done: Done) -> None:
        self.bus.emit(ScenarioStep(self.scenario.title, done.at, done.text, done.outcome))
        self._keep("scenario_step", title=self.scenario.title, step=done)

    # After the faults

    async def _recover(self, ending: Ending, seconds: float) -> None:
        """Heals, settles, drains. What is still going on at the end is a problem."""
        book = self._world.book
        self._phase = "heal"
        await within(self._actor.disorder.end(), HEAL_WITHIN, "workers to ask for jobs again")
        await within(self._actor.rest(), HEAL_WITHIN, "the last actions of the plan to end")
        await within(self._actor.heal(), HEAL_WITHIN, "the healing")
        ending.healed_at = book.now()
        self._did(Done(round(book.now(), 3), "all faults ended, all workers started"))
        self._phase = "drain"
        left = await self._drained(seconds)
        quiet_at = book.now()
        if self._failed and not ending.aborted:
            left = await self._runs_again(seconds, left)
        if left:
            dues = [due for post in self._world.posts.values() for due in post.due.values()]
            ending.problem = ending.problem or out_of_reach(self.lane.stage, left, dues) or left
        else:
            ending.recovered = quiet_at - ending.healed_at

    @property
    def _failed(self) -> bool:
        """A broker or database failed on purpose, or a message to the broker did."""
        return any(
            isinstance(fault, Fail)
            or (isinstance(fault, Poison) and fault.messages is not None and fault.upstream == self.rig.system.broker)
            for fault in self.scenario.faults
        )

    async def _runs_again(self, seconds: float, left: str) -> str:
        """Enqueues one more case when all is over, and waits until it is done; what is still going on."""
        self._phase = "probe"
        probe = await self._actor.probes.ask(HEALING)
        if probe.ran is None:
            silent = self._world.lane.trace.quiet_for()
            probe.problem += f"; {await self._calm.standing()}; no message of a job for {silent:.0f} s"
            return left or f"a job that was enqueued after the healing {probe.problem}"
        return await self._drained(seconds)

    async def _drained(self, seconds: float) -> str:
        """Waits until it is quiet, settles, and waits again; what is still going on."""
        left = await self._calm.reached(seconds, self._tasks, self._look)
        if not left and self.scenario.settle:
            self._phase = "settle"
            for name in await self._settle():
                self._did(Done(round(self._world.book.now(), 3), f"settle: {name}"))
            left = await self._calm.reached(seconds, self._tasks, self._look)
        return left

    async def _settle(self) -> Sequence[str]:
        """Runs the functions that settle, one after another; which ones."""
        for name in self.scenario.settle:
            where, _, function = self.rig.reference(name).rpartition(":")
            agent = self._world.producers.agent(self._world.work.version)
            await agent.call(where, function)
        return self.scenario.settle

    async def _after(self, ending: Ending, seconds: float) -> None:
        """The same after something went wrong: all of it is tried, nothing of it raises."""
        self.schedule.abandon()
        self._actor.troubles.hurry()
        self._calm = Calm(self._world, self._actor, lambda: False)
        problem = ending.problem
        try:
            await self._world.work.stop(STOP_WITHIN)
            await self._recover(ending, seconds)
        except JobcheckError as error:
            ending.notes.append(f"after that: {error}")
        except asyncio.CancelledError:
            raise Aborted("stopped twice; nothing is reported") from None
        ending.problem = problem

    # The verdict

    async def _judge(self, ending: Ending) -> dict[str, Any]:
        world, scenario, work = self._world, self.scenario, self._world.work
        problem = ending.problem
        cases: list[CaseRecord] = [self._baseline.clean.case, *(case.record for case in work.cases if case.record.ids)]
        try:
            effects, owners = await self.lane.all_effects(self._baseline.since, cases)
        except (JobcheckError, OSError) as error:
            effects, owners, problem = [], [], problem or f"the effects could not be read: {error}"
        clean_id = self._baseline.clean.case.id
        seen = Seen(
            scenario=scenario,
            system=self.rig.system,
            settings=world.settings,
            clean=self._baseline.clean,
            cases=work.cases,
            effects=[effect for effect in effects if effect.case != clean_id],
            book=world.book,
            done=world.done,
            recovered=ending.recovered,
            problem=problem,
            aborted=ending.aborted,
            kept=self.lane.stage.kept,
            durable=self.lane.services[self.rig.system.broker].durable,
            probes=self._actor.probes.asked,
        )
        judged: Judged = judge_scenario(seen)
        for advice in (*seen.advice, self._hand.note):
            world.note(advice)
        report = {
            **about(world, scenario, self.plan, ending, self._actor.probes.asked),
            **judged.report,
            "providers": told(self.lane.providers, seen.effects),
            "owner_problems": owners[:5],
        }
        self._keep("scenario", **report)
        return report


def _forgive() -> None:
    """The cancellation was heard: what follows may wait again."""
    task = asyncio.current_task()
    if task is not None:
        while task.cancelling():
            task.uncancel()


__all__ = ["ScenarioRun", "WaitTimeout"]
