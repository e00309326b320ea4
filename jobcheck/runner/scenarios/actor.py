"""Carries out the actions of a plan on real workers, brokers and networks, and writes down what came of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from ...aio import Tasks, wait_for
from ...clock import left_of
from ...errors import JobcheckError, WaitTimeout
from ...faults.actions import (
    Action,
    ArmKill,
    ArmStop,
    ArmTrouble,
    BeginTrouble,
    DeployProducer,
    DeployWorker,
    DuplicateDelivery,
    EndTrouble,
    KillWorker,
    PointReached,
    RestartWorker,
    StopWorker,
    WorkerGone,
)
from ...faults.model import ANY, Scope
from ...faults.orders import DelayJob, PutBack, ReorderJobs
from ...services.clients import redis_client
from ...tap.sight import Sight
from ..stage import STOP_GRACE
from .disorder import Disorder
from .gate import Arm
from .network import Weather
from .posts import Fallen, Post
from .probes import Probes
from .troubles import UNREACHABLE, Troubles
from .world import Done, World

COPY_WITHIN = 1.0
"""Seconds in which another worker must take the copy of a job that is held."""
PATIENCE = 1.0
"""Seconds that a kill or a restart waits for an idle worker to be given a job."""
WITHIN_JOB = 0.04
"""A kill that waited for a job comes at a random moment within this many seconds of it."""
CRASHES = 5
"""A worker that ends by itself more often than this is not started again."""


class Actor:
    """Begins actions; `idle` says when all have ended. Those on one worker happen one after another."""

    def __init__(self, world: World, said: Callable[[Done], None]) -> None:
        self.world = world
        self.weather = Weather(world.lane, world.posts, world.book, world.work, world.producers)
        self.troubles = Troubles(world.lane, world.book, world.work)
        self.probes = Probes(world.work, world.book)
        self.disorder = Disorder(world, self.troubles.well, self._tell)
        world.work.make = self.disorder.make
        self._said = said
        self._tasks = Tasks()
        self._going = 0
        self._resting = asyncio.Event()
        self._resting.set()
        self._arms: list[tuple[Arm, ArmKill | ArmStop | ArmTrouble]] = []
        self._owed: list[Fallen] = []
        """What is to be recovered when the broker is well again."""
        self._within = world.lane.stage.seeds.stream("kill", "moment within a job")
        self._crashes: dict[str, int] = {}

    @property
    def going(self) -> int:
        """Actions that have begun and not ended."""
        return self._going

    def begin(self, action: Action) -> None:
        """Starts an action; what it does is in `world.done` when it is over."""
        if isinstance(action, KillWorker):
            self._task(action, self._kill(action.worker, action.scope, action.restart, action))
        elif isinstance(action, ArmKill | ArmStop | ArmTrouble):
            self._arm(action)
        elif isinstance(action, BeginTrouble):
            self._task(action, self.troubles.begin(action, self._tell))
        elif isinstance(action, EndTrouble):
            self._task(action, self._end(action))
        elif isinstance(action, RestartWorker):
            self._task(action, self._start(action.worker))
        elif isinstance(action, StopWorker):
            self._task(action, self._stop(action.worker, None, action))
        elif isinstance(action, DeployWorker):
            self._task(action, self._stop(action.worker, action.version, action, action.least))
        elif isinstance(action, DeployProducer):
            self._produce(action)
        elif isinstance(action, DuplicateDelivery):
            self._copy(action)
        elif isinstance(action, ReorderJobs | DelayJob):
            self.disorder.begin(action)
        elif isinstance(action, PutBack):
            self._task(action, self.disorder.put_back(action))
        else:
            self._task(action, self.weather.change(action, self._tell))

    async def rest(self) -> None:
        """Waits until every action that has begun is over."""
        await self._resting.wait()

    async def heal(self) -> None:
        """Ends every fault and starts every worker that is gone. Raises WorkerError for one that does not start."""
        for arm, action in self._arms:
            arm.fired = True
            self._tell(action, "the point was never reached")
        self._arms.clear()
        for post in self.world.posts.values():
            post.gate.arms.clear()
            post.gate.let_go()
        await self.troubles.heal(self._tell)
        await self.weather.heal(self._tell)
        await self._recover_owed()
        await self.disorder.heal()
        await asyncio.gather(*(self._up(post) for post in self.world.posts.values()))

    async def crashed(self, post: Post) -> None:
        """A worker ended by itself: what it held is recovered, and another one is started, as a supervisor does."""
        self._crashes[post.name] = self._crashes.get(post.name, 0) + 1
        tail = " | ".join(post.tail()[-3:])
        self.world.note(f"worker {post.name} ended by itself; its last lines: {tail}")
        async with post.busy:
            await self._recover(await post.clear())
            if self._crashes[post.name] <= CRASHES:
                await post.start(self.world.ready)

    async def rewind_stranded(self) -> int:
        """Expires the lease of what was taken on connections that are gone; how many there were."""
        real = self.world.lane.stage.real_clocks
        tags = self.world.book.stranded(self._not_due) if not real else []
        if tags:
            await self._recover(Fallen((), tuple(tags)))
        return len(tags)

    def _not_due(self, job: str) -> bool:
        """A worker that lives holds it until its time."""
        wall = self.world.lane.stage.job_clock.wall()
        dues = [post.due.get(job, "") for post in self.world.posts.values() if post.alive]
        return any(left_of(due, wall) > 0 for due in dues if due)

    async def close(self) -> None:
        await self.probes.close()
        await self._tasks.close()

    # One action each

    def _task(self, action: Action, work: Coroutine[Any, Any, None]) -> None:
        self._going += 1
        self._resting.clear()
        self._tasks.start(action.text, self._guarded(action, work))

    async def _guarded(self, action: Action, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (JobcheckError, *UNREACHABLE) as error:
            self._tell(action, f"failed: {error}")
        finally:
            self._going -= 1
            if not self._going:
                self._resting.set()

    def _tell(self, action: Action, outcome: str, met: bool = False) -> Done:
        done = Done(round(self.world.book.now(), 3), action.text, action.fault, outcome, met)
        self.world.done.append(done)
        self._said(done)
        return done

    async def _kill(
        self, worker: str, scope: Scope, restart: float | None, action: Action, hit: Sight | None = None
    ) -> None:
        post = self.world.posts[worker]
        async with post.busy:
            if not post.alive:
                self._tell(action, f"{worker} was down")
                return
            if hit is None and await self._given_a_job(post):
                await asyncio.sleep(WITHIN_JOB * self._within.random())
            fallen = await post.fell(scope, hit)
            if scope != "child":
                self.world.book.happened(WorkerGone(worker, restart))
            self._tell(action, _running(fallen), bool(fallen.jobs))
            await self._recover(fallen)

    async def _given_a_job(self, post: Post) -> bool:
        """Waits a while for an idle worker to get a job; whether it had to wait, and got one."""
        book = self.world.book
        if book.running(post.name):
            return False
        try:
            await wait_for(lambda: book.running(post.name) or not post.alive, "a job", deadline=PATIENCE)
        except WaitTimeout:
            return False
        return post.alive

    def _arm(self, action: ArmKill | ArmStop | ArmTrouble) -> None:
        word = "killed" if isinstance(action, ArmKill) else "SIGTERM" if isinstance(action, ArmStop) else ""
        arm = Arm(action.point, word or f"{action.upstream} fails")  # type: ignore[union-attr]
        self._arms.append((arm, action))
        wanted = ANY if isinstance(action, ArmTrouble) else action.worker
        for name, post in self.world.posts.items():
            if wanted in (ANY, name):
                post.gate.arms.append(arm)

    def strike(self, worker: str, arm: Arm, hit: Sight) -> None:
        """A worker stands at a point that was armed."""
        for post in self.world.posts.values():
            if arm in post.gate.arms:
                post.gate.arms.remove(arm)
        found = next((pair for pair in self._arms if pair[0] is arm), None)
        if found is None:
            return
        self._arms.remove(found)
        action, happened = found[1], self.world.book.happened
        if isinstance(action, ArmKill):
            self._task(action, self._kill(worker, action.scope, action.restart, action, hit))
            happened(PointReached())
        elif isinstance(action, ArmTrouble):
            begin = BeginTrouble(action.upstream, action.how, fault=action.fault)
            self._task(begin, self.troubles.begin(begin, self._tell, hit))
            happened(PointReached(tuple(action.then())))
        else:
            self._task(action, self._stop(worker, action.version, action, hit=hit))
            happened(PointReached(tuple(action.then(worker))))

    async def _end(self, action: EndTrouble) -> None:
        """A server is well again: what had to wait for it is done, and a job is enqueued to see whether it runs."""
        if await self.troubles.end(action, self._tell):
            await self._recover_owed()
            self.probes.start(action.text)

    async def _start(self, worker: str) -> None:
        post = self.world.posts[worker]
        async with post.busy:
            if not post.alive:
                await post.start(self.world.ready)

    async def _up(self, post: Post) -> None:
        await self._start(post.name)

    async def _stop(
        self, worker: str, version: str | None, action: Action, least: float = 0.0, hit: Sight | None = None
    ) -> None:
        """A polite stop, and the next worker; of another version where one is named."""
        post = self.world.posts[worker]
        async with post.busy:
            if (young := post.since + least - self.world.book.now()) > 0 and least:
                await asyncio.sleep(young / self.world.work.speed)
            if hit is None:
                await self._given_a_job(post)
            running = self.world.book.running(worker)
            if post.alive:
                await self._recover(await post.stop(STOP_GRACE, hit))
            if version is not None:
                post.serve(self.world.lane.of_version(self.world.rigs[version]), version)
            await post.start(self.world.ready)
        self._tell(action, f"{len(running)} job(s) were running" if running else "it was idle", bool(running))

    def _produce(self, action: DeployProducer) -> None:
        work = self.world.work
        work.before, work.version, work.share = work.version, action.version, action.share
        work.draw = self.world.lane.stage.seeds.stream("fault", action.fault, "producers").random
        self._tell(action, "")

    def _copy(self, action: DuplicateDelivery) -> None:
        job = self.world.book.jobs[action.job]
        holder = self.world.posts.get(job.last.worker) if job.last is not None else None
        others = [post for post in self.world.posts.values() if post is not holder]
        # One is held at a time, and only while somebody else is there to take the copy.
        free = any(post.alive for post in others) and not any(post.gate.detained for post in self.world.posts.values())
        held = holder if action.mode == "while running" and free else None
        if held is not None:
            held.gate.detained = action.job
        self._task(action, self._copied(action, held))

    async def _copied(self, action: DuplicateDelivery, holder: Post | None) -> None:
        world = self.world
        job = world.book.jobs[action.job]
        assert job.unit is not None
        before = len(job.deliveries)
        address = world.lane.addresses[world.lane.rig.system.broker]
        outcome = "put on the broker again"
        try:
            await world.lane.rig.system.duplicate(
                address, job.unit, world.recovery.call, next_up=action.mode != "later"
            )
            job.copies += 1
            if holder is not None:
                await wait_for(lambda: len(job.deliveries) > before, "a worker to take the copy", deadline=COPY_WITHIN)
                outcome = f"ran beside the first one, on {job.deliveries[-1].worker}"
        except WaitTimeout:
            outcome = f"no other worker took the copy within {COPY_WITHIN:g} s while the first one was held"
        finally:
            if holder is not None and holder.gate.detained == action.job:
                holder.gate.let_go()
        self._tell(action, outcome, len(job.deliveries) > before)

    # Recovery

    async def _recover(self, fallen: Fallen) -> None:
        """Expires what the broker believes to be held by a worker that is gone, and keys that the lease outlives."""
        world = self.world
        system = world.lane.rig.system
        tags = [tag for tag in fallen.tags if tag]
        if not tags:
            return
        if world.lane.stage.real_clocks:
            if world.settings.lease:
                world.note("leases of workers that were gone ran out by themselves: nothing was rewound")
            return
        if not self.troubles.well(system.broker):
            self._owed.append(fallen)
            return
        lease = world.settings.lease
        broker = world.lane.addresses[system.broker]
        if await system.rewind(broker, tags, world.settings, world.recovery.call) and lease:
            world.note(
                f"leases of workers that were gone were rewound; the user's own of {lease:g} s was left as it is"
            )
        if gone := await self._expire(fallen.jobs):
            world.note("expired with the lease: " + ", ".join(gone))

    async def _recover_owed(self) -> None:
        owed, self._owed = self._owed, []
        for fallen in owed:
            await self._recover(fallen)

    async def _expire(self, jobs: Iterable[str]) -> list[str]:
        """Keys that these jobs set and that would not have outlived the lease either."""
        gone = []
        for number in jobs:
            for upstream, key, seconds in self.world.book.jobs[number].lives:
                if seconds < self.world.settings.lease and self.troubles.well(upstream):
                    async with redis_client(self.world.lane.addresses[upstream]) as client:
                        if await client.delete(key):
                            gone.append(key.decode(errors="replace"))
        return gone


def _running(fallen: Fallen) -> str:
    return f"{len(fallen.jobs)} job(s) were running" if fallen.jobs else "it was idle"
