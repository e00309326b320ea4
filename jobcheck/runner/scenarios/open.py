"""Before the faults: producers and workers are booted, and one case is recorded without any fault."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...aio import Tasks, wait_for
from ...checks.clean import Clean, lines_to_paste, unmatched
from ...errors import CaseError, UsageError, WaitTimeout
from ...faults.model import Deploy, Fail
from ...history.records import CaseRecord, Effect
from ...scenario.model import Scenario
from ...tap.sight import Sight
from .. import clocks
from ..lapse import outlived
from ..rig import Rig
from .book import Book
from .clocks import Load, arithmetic, fastest, loads
from .gate import Arm, PostGate
from .lane import ScenarioLane
from .owners import Owners
from .posts import Post
from .quiet import Calm
from .scribe import Scribe
from .versions import version_rigs
from .work import Enqueued, Producers, Values, Work
from .world import World

LATE = "at-least-once"


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a clean case showed."""

    clean: Clean
    deliveries: int
    """Deliveries of one case."""
    since: int
    """Number in the ledger from which on effects count."""


async def open_world(
    scenario: Scenario,
    rig: Rig,
    lane: ScenarioLane,
    folder: Path,
    boot: str,
    strike: Callable[[str, Arm, Sight], None],
) -> World:
    """Boots the producers and prepares the workers' posts. Raises UsageError, ServiceError or WorkerError."""
    kept = [
        f"{name} on disk: {says}"
        for name in dict.fromkeys(fault.service for fault in scenario.faults if isinstance(fault, Fail))
        if name in lane.services
        if (says := await lane.services[name].keep())
    ]
    rigs = await version_rigs(rig, dict(scenario.versions), lane.stage, folder, scenario.where)
    kept += lane.stage.told
    first = next((fault.origin for fault in scenario.faults if isinstance(fault, Deploy)), "")
    first = first or next(iter(scenario.versions), "")
    promised: list[str] = []
    book = Book(lane.stage.job_clock, lambda: LATE in promised)
    producers = Producers(lane, book, rig.reference(scenario.workload.enqueue), rigs)
    values = Values(scenario.workload, lane.stage.seeds.seed)
    values(0)  # a provider that is not there is told now
    deployed = [fault.version for fault in scenario.faults if isinstance(fault, Deploy)]
    await producers.open([first, *deployed])
    recovery = await lane.agent(await lane.slot("recovery"))
    settings = await rig.system.describe(producers.agent(first).call, safe=False)
    lane.broker_is(str(settings.values.get("broker_url", "")))
    promised.append(settings.guarantee)
    work = Work(scenario.workload, producers, book, values)
    book.owner = Owners(work, producers).of_text
    work.version = work.before = first
    work.speed = scenario.speed
    posts: dict[str, Post] = {}
    for name in (*scenario.worker_names, *rig.crews):
        scribe = Scribe(rig.system.dialect(), book, name)
        slot = await lane.slot(name, scribe)
        scribe.slot = slot
        gate = PostGate(book, name, rig.system.broker, strike)
        posts[name] = post = Post(lane.of_version(rigs[first]), slot, scribe, book, gate, first, boot)
        if name in rig.crews:
            post.role, post.alone = name, False

    def reader(name: str) -> Scribe:
        """What a process such as a relay enqueues is of the case whose ids are in it, else of the one made last."""
        scribe = Scribe(rig.system.dialect(), book, name)
        scribe.relay, scribe.version = True, first
        return scribe

    await lane.accompanied(scenario=True, reader=reader)
    return World(lane, posts, producers, work, book, settings, recovery, rigs, scenario.timeouts.ready, list(kept))


async def start_all(world: World) -> None:
    """Every worker is up. Raises WorkerError."""
    await asyncio.gather(*(post.start(world.ready) for post in world.posts.values()))


async def record_clean(
    world: World,
    scenario: Scenario,
    rig: Rig,
    calm: Calm,
    tasks: Tasks,
    settle: Callable[[], Awaitable[Sequence[str]]],
) -> Baseline:
    """Two cases without faults, settled: the first warms up, the second is the measure of all others. What both have in
    common is what every case has.

    Raises CaseError when one does not do what it should, UsageError when a contract speaks of what it never showed.
    """
    lane, what = world.lane, scenario.workload.enqueue
    shown: list[tuple[CaseRecord, tuple[Effect, ...]]] = []
    asked: list[list[Load]] = []
    for _ in range(2):
        since = await lane.prime()
        made = await world.producers.make(world.work.version, world.work.values(0))
        if not made.record.jobs and lane.company.names:
            await _relayed(made, world)
        _check(made, world, scenario)
        began = lane.stage.clock.now()
        left = await calm.reached(scenario.timeouts.drain, tasks)
        if not left and await settle():
            left = await calm.reached(scenario.timeouts.drain, tasks)
        if left:
            raise CaseError(f"a clean case of {what} did not end: {left}")
        asked.append(loads(world.book.of_case(made.record.id), scenario, rig, lane.stage.clock.now() - began))
        effects, problems = await lane.all_effects(since, [made.record])
        if failed := world.book.filed(made.record.id):
            raise CaseError(f"a clean case of {what} failed: {failed}")
        if problems:
            raise CaseError("; ".join(problems))
        if world.book.put_back.intersection(made.record.jobs):
            raise CaseError(f"a clean case of {what}: {outlived(world.settings.lease, scenario.speed)}")
        mine = tuple(one for one in effects if one.applied and one.case == made.record.id)
        shown.append((made.record, mine))
    if lane.stage.speed != 1:
        await _clocked(world, scenario, rig, made.record.id, fastest(*asked))
    clean = Clean(*shown[1], others=(shown[0],))
    if missing := unmatched(scenario.contracts, clean):
        paste = "\n    ".join(lines_to_paste(clean, {name: spec.kind for name, spec in rig.upstreams.items()}))
        raise UsageError(
            f"{scenario.where.lead('expect')}" + "; ".join(missing), hint=f"the clean run showed:\n    {paste}"
        )
    deliveries = sum(len(job.deliveries) for job in world.book.of_case(made.record.id))
    return Baseline(clean, deliveries, await lane.prime())


async def _clocked(world: World, scenario: Scenario, rig: Rig, case: str, found: Sequence[Load]) -> None:
    """Whether the load can be met at this speed, and what the work of a clean case is beside known time-outs.

    Raises CaseError where it cannot be met."""
    jobs = world.book.of_case(case)
    names = (post.tasks.get(job.id, "") for post in world.posts.values() for job in jobs)
    call = world.producers.agent(world.work.version).call
    settings = await rig.system.describe(call, safe=False, task=next(filter(None, names), ""))
    work = max((load.work for load in found), default=0.0)
    for sentence in (*arithmetic(scenario, found), *clocks.own_time(world.lane.stage, settings, work)):
        world.note(sentence)


async def _relayed(made: Enqueued, world: World) -> None:
    """Waits until a process of the app has enqueued the job that the case left a wish for."""
    book, number = world.book, made.record.id
    try:
        await wait_for(lambda: book.of_case(number), "a process of the app to enqueue the job", deadline=world.ready)
    except WaitTimeout:
        return  # what is said then says more
    made.record = replace(made.record, jobs=tuple(job.id for job in book.of_case(number)))


def _check(made: Enqueued, world: World, scenario: Scenario) -> None:
    """Raises CaseError or UsageError when the case cannot be followed."""
    what = scenario.workload.enqueue
    if not made.acknowledged:
        raise CaseError(made.error, hint=world.lane.stage.hurried)
    if not made.record.jobs:
        eager = "; the app runs jobs eagerly (task_always_eager)" if world.settings.eager else ""
        raise CaseError(
            f"{what} ran, and no job arrived on the broker{eager}",
            hint="jobcheck explore says more about one case: is the broker's variable in the rig's env?",
        )
    if not made.record.ids:
        raise UsageError(
            f"{scenario.workload.where.lead('enqueue')}{what} owns no ids, so the effects of many cases "
            "cannot be told apart",
            hint="call case.owns(invoice=invoice.id) in it",
        )
