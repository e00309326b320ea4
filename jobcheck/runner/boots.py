"""Three ways to boot a worker behind one interface.

*cold* is the reference: the command as in production. A *standby* is a cold boot that was made meanwhile. A *zygote*
has imported the app and is forked; an app that opens connections or starts threads at import cannot be forked, and
falls back to cold boots.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from ..aio import wait_for
from ..errors import CaseError, WaitTimeout
from ..events import Warned
from ..systems.contract import Launch
from ..tap.listener import Slot
from ..workers.spec import ProcessSpec
from ..workers.supervisor import Worker
from .agents import Agent
from .lane import Lane

CLOSED_WITHIN = 1.0
"""Seconds."""
COLD, STANDBY, ZYGOTE = "cold", "standby", "zygote"
MODES = (ZYGOTE, STANDBY, COLD)


class Boot(Protocol):
    """Starts workers on one slot."""

    async def start(self, spec: ProcessSpec, launch: Launch) -> Worker: ...

    async def close(self) -> None: ...


class Cold:
    """A process of its own."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    async def start(self, spec: ProcessSpec, launch: Launch) -> Worker:
        return await self._lane.stage.supervisor.start(spec)

    async def close(self) -> None:
        """Nothing is kept."""


class Zygote:
    """Forks of a process that has imported the app with the addresses of this slot."""

    def __init__(self, lane: Lane, agent: Agent, folder: Path) -> None:
        self._lane = lane
        self._agent = agent
        self._folder = folder
        self._count = 0

    async def start(self, spec: ProcessSpec, launch: Launch) -> Worker:
        self._count += 1
        fifo = self._folder / f"out{self._count}"
        os.mkfifo(fifo)
        read = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        try:
            answer = await self._agent.request(
                "spawn", module=launch.module, args=list(launch.arguments), output=str(fifo)
            )
        except BaseException:
            os.close(read)
            raise
        return self._lane.stage.supervisor.adopt(spec, int(answer["pid"]), read)

    async def close(self) -> None:
        await self._agent.close()


async def unshared(slot: Slot) -> None:
    """Gives connections that an agent has closed before it forks the moment that their end takes to be seen."""
    if slot.links:
        try:
            await wait_for(lambda: not slot.links, "the app's connections to end", deadline=CLOSED_WITHIN)
        except WaitTimeout:
            pass  # nobody closes them: what this means is the caller's to say


async def boot_for(lane: Lane, slot: Slot, launch: Launch, wanted: str) -> Boot:
    """The way that the app allows: a zygote where it is wanted and nothing would be shared by its forks."""
    if wanted != ZYGOTE or not launch.module:
        return Cold(lane)
    folder = lane.folder / f"{slot.name}-zygote"
    folder.mkdir()
    agent = await lane.agent(slot, name="zygote")
    shared = await _warm(agent, slot, launch)
    if not shared and launch.jobs is not None:
        # Most of a worker's boot is the import of its jobs. Where that opens something, each fork does it for itself.
        file, function, app = launch.jobs
        try:
            await agent.call(file, function, app=app)
            alone = not await _warm(agent, slot, launch)
        except CaseError:  # a worker fails by it too, and says so in its own words
            alone = False
        if not alone:
            await agent.close()
            await slot.cut()
            agent = await lane.agent(slot, name="zygote-2")
            shared = await _warm(agent, slot, launch)
    if shared:
        await agent.close()
        lane.stage.bus.emit(Warned(f"importing the app starts {' and '.join(shared)}: workers are booted, not forked"))
        return Cold(lane)
    return Zygote(lane, agent, folder)


async def _warm(agent: Agent, slot: Slot, launch: Launch) -> list[str]:
    """Imports the app in the zygote; answers with what its forks would share."""
    told = await agent.request("warm", modules=list(launch.preload), must=list(launch.preload[:1]))
    await unshared(slot)
    shared = [f"threads {', '.join(told['threads'])}"] if told["threads"] else []
    return shared + [f"a connection to {link.listener.upstream}" for link in slot.links]
