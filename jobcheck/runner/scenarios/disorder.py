"""Jobs that are handed out in another order, or late: while a case is enqueued no worker asks, so its jobs wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...aio import wait_until
from ...errors import JobcheckError
from ...faults.actions import JobHeld
from ...faults.orders import DelayJob, PutBack, ReorderJobs, permuted
from ...tap.sight import OUT
from .book import Message
from .posts import Post
from .troubles import UNREACHABLE, Tell
from .work import Enqueued
from .world import World

SILENT_WITHIN = 10.0
"""Seconds until no worker waits for a job any more."""

BUSY = "every job of the case is held back already"


class Disorder:
    """Stands in for the enqueue call of cases that an action was begun for. What is held back is put back by `heal`."""

    def __init__(self, world: World, well: Callable[[str], bool], tell: Tell) -> None:
        self._world = world
        self._well = well
        self._tell = tell
        self._coming: list[ReorderJobs | DelayJob] = []
        self._turn: ReorderJobs | None = None
        """The order that the jobs of the cases since then will come in."""
        self._left = 0
        """Cases until then."""
        self._jobs: list[str] = []
        self._late: dict[str, DelayJob] = {}
        """Jobs among them that will be held back."""
        self._stopped: list[Post] = []
        self.held: dict[str, tuple[DelayJob, float, int]] = {}
        """Jobs that are held back: why, since when, and how many had been handed out by then."""

    def begin(self, action: ReorderJobs | DelayJob) -> None:
        """It is done with the next case."""
        self._coming.append(action)

    async def make(self, version: str, values: Mapping[str, Any]) -> Enqueued:
        """Enqueues one case. Raises WorkerError when the producer is gone."""
        coming, self._coming = self._coming, []
        if coming and not self._stopped and not await self._halt(coming):
            coming = []
        made = await self._world.producers.make(version, values)
        if self._stopped:
            self._note(made, coming)
            self._left -= 1
            if self._left <= 0:
                await self.end()
        return made

    def _note(self, made: Enqueued, coming: list[ReorderJobs | DelayJob]) -> None:
        jobs = list(made.record.jobs)
        self._jobs += jobs
        for action in coming:
            if isinstance(action, ReorderJobs):
                self._turn, self._left = action, action.cases
            elif free := [job for job in jobs if job not in self._late]:
                self._late[free[int(action.chance * len(free))]] = action
            else:
                self._tell(action, f"failed: {BUSY if jobs else 'the case has no job'}")

    async def _halt(self, coming: list[ReorderJobs | DelayJob]) -> bool:
        """No worker takes a job any more, until `end`; what they have they go on with."""
        world = self._world
        system = world.lane.rig.system
        if not self._well(system.broker):
            for action in coming:
                self._tell(action, f"failed: {system.broker} is out of order")
            return False
        try:
            for post in world.posts.values():
                await post.busy.acquire()
                self._stopped.append(post)
                post.gate.close()
            await wait_until(self._silent, "the workers to ask for no job", deadline=SILENT_WITHIN)
        except (JobcheckError, *UNREACHABLE) as error:
            for action in coming:
                self._tell(action, f"failed: {error}")
            await self.end()
            return False
        return True

    async def _silent(self) -> bool:
        """Whether no request for a job waits at the broker; ends those that do."""
        world = self._world
        system = world.lane.rig.system
        await system.halt(world.lane.addresses[system.broker], world.recovery.call, world.settings)
        return not any(_asks(post) for post in self._stopped)

    async def end(self) -> None:
        """What waits is put into its order, and workers ask again. Nothing happens when they do."""
        if not self._stopped:
            return
        jobs, late, turn = self._jobs, self._late, self._turn
        self._jobs, self._late, self._turn, self._left = [], {}, None, 0
        wanted = permuted(jobs, turn.chance) if turn is not None else jobs
        world = self._world
        system = world.lane.rig.system
        outcome = ""
        try:
            address = world.lane.addresses[system.broker]
            await system.go_on(address, world.recovery.call, world.settings, wanted, list(late))
        except (JobcheckError, *UNREACHABLE) as error:
            outcome = f"failed: {error}"
        finally:
            for post in self._stopped:
                post.gate.open()
                post.busy.release()
            self._stopped = []
        if turn is not None and not outcome:
            for place, job in enumerate(wanted, 1):
                self._say(job, f"enqueued as #{jobs.index(job) + 1} and handed out as #{place} of {len(jobs)}")
        if turn is not None:
            places = ", ".join(f"#{jobs.index(job) + 1}" for job in wanted)
            told = f"they waited and came as {places}" if len(jobs) > 1 else "failed: only one job waited"
            self._tell(turn, outcome or told, not outcome and len(jobs) > 1)
        for job, action in late.items():
            self._hold(job, action, outcome)

    def _hold(self, job: str, action: DelayJob, problem: str) -> None:
        if problem:
            self._tell(action, problem)
            return
        book = self._world.book
        self.held[job] = (action, book.now(), self._handed_out())
        book.happened(JobHeld(job, action))

    async def put_back(self, action: PutBack, when: str = "", met: bool = True) -> None:
        """It comes next. Raises CaseError when it is not on the broker any more."""
        if action.job not in self.held:
            return
        _, since, before = self.held[action.job]
        world = self._world
        system = world.lane.rig.system
        await system.put_back(world.lane.addresses[system.broker], world.recovery.call, world.settings, [action.job])
        del self.held[action.job]
        others, seconds = self._handed_out() - before, world.book.now() - since
        outcome = f"{when}{seconds:.1f} s late, after {others} other job(s)"
        self._say(action.job, f"held back: {outcome.removeprefix('failed: ')}")
        self._tell(action, outcome, met)

    async def heal(self) -> None:
        """Nothing is held back any more."""
        await self.end()
        for job, (action, _, _) in list(self.held.items()):
            back = PutBack(job, action.nth, fault=action.fault)
            try:
                await self.put_back(back, "failed: put back at the end, ", met=False)
            except (JobcheckError, *UNREACHABLE) as error:
                del self.held[job]
                self._tell(back, f"failed: {error}")

    def _say(self, job: str, text: str) -> None:
        now = self._world.book.now()
        self._world.book.say(job, Message(now, self._world.lane.rig.system.broker, "", "in", text, "strike"))

    def _handed_out(self) -> int:
        return sum(len(job.deliveries) for job in self._world.book.jobs.values())


def _asks(post: Post) -> bool:
    """A request for a job is on its way, or waits at the broker."""
    return any(
        sight.role == "poll" and not link.holding(OUT) for link in post.slot.links for sight in link.unanswered.values()
    )
