"""When a scenario is quiet: nothing on the broker, nothing in flight, every job that was handed out has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from ...aio import Tasks
from ...systems.contract import Broker
from ..quiet import GRACE, SILENCE
from .actor import Actor
from .world import World

TURN = 0.01
"""Seconds between two looks."""
STUCK = 1.0
"""Seconds without any message until deliveries on connections that are gone are taken to wait for their lease."""


class Calm:
    """Waits for quiet over all workers of a scenario."""

    def __init__(self, world: World, actor: Actor, busy: Callable[[], bool]) -> None:
        self._world = world
        self._actor = actor
        self._busy = busy
        """Whether the plan still has something to do."""

    async def reached(self, seconds: float, tasks: Tasks, look: Callable[[], None] = lambda: None) -> str:
        """Empty when it became quiet, else what was still going on after `seconds`. `look` is called at each turn.

        Raises ServiceError when a server died.
        """
        world = self._world
        clock = world.lane.stage.clock
        end = clock.now() + seconds
        going = "nothing was looked at"
        while clock.now() < end:
            look()
            for post in world.posts.values():
                if post.crashed:
                    tasks.start(f"{post.name} crashed", self._actor.crashed(post))
                    await asyncio.sleep(0)
            going = self.moving()
            if not going:
                depth = await self._depth()
                for post in world.posts.values():
                    await post.slot.drain()
                if depth == 0 and not self.moving():
                    return ""
                going = going or f"{depth} job(s) on the broker"
                if world.lane.trace.quiet_for() > STUCK and (number := await self._actor.rewind_stranded()):
                    world.note(
                        f"{number} delivery(s) were left on connections that the network faults broke; the broker "
                        "gives them out again when their lease is over, which was rewound"
                    )
            await asyncio.sleep(TURN)
        return f"not quiet after {seconds:g} s: {going}"

    async def now(self) -> bool:
        """Whether no job is anywhere at this moment, whatever the plan still has in mind."""
        if self._jobs() or not self._actor.troubles.well(self._world.lane.rig.system.broker):
            return False
        return await self._depth() <= len(self._actor.disorder.held) and not self._jobs()

    async def standing(self) -> str:
        """Who stands about while work waits: for a system that does not go on."""
        alive = [post.name for post in self._world.posts.values() if post.alive]
        who = f"{', '.join(alive)} {'lives' if len(alive) == 1 else 'live'}" if alive else "no worker lives"
        return f"{who}, and {await self._depth()} job(s) are on the broker"

    async def _depth(self) -> int:
        """Jobs on the broker."""
        world = self._world
        system = world.lane.rig.system
        service = cast(Broker, world.lane.services[system.broker])
        return await system.depth(service, world.lane.addresses[system.broker], world.settings)

    def moving(self) -> str:
        """What is going on; empty when nothing is."""
        if self._actor.going or self._busy():
            return "the plan is not over"
        return self._jobs()

    def _jobs(self) -> str:
        """Which jobs or workers are going on; empty when none is."""
        world = self._world
        for post in world.posts.values():
            if not post.alive:
                return f"{post.name} is not running" + (f": {post.problem}" if post.problem else "")
            if flying := post.slot.in_flight():
                return f"{flying[0].upstream} {flying[0].unit.shape} of {post.name} waits for its answer"
        if queued := world.lane.queued or world.lane.company.busy():
            return queued
        silence = world.lane.trace.quiet_for()
        running = world.book.running()
        if running and (world.book.tells or silence < SILENCE) and not self._only_stranded(running):
            return f"job {running[0]} runs"
        return "" if silence >= GRACE else "messages of a moment ago"

    def _only_stranded(self, running: list[str]) -> bool:
        """What runs was taken on connections that are gone, and nothing has moved for long."""
        if self._world.lane.trace.quiet_for() <= STUCK:
            return False
        jobs = self._world.book.jobs
        return all((last := jobs[number].last) is not None and last.stranded for number in running)
