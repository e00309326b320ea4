"""Exploring a process of the app instead of its worker: the relay that is killed between its push and its delete.

The same loop. What is struck is a companion of the lane; it is started again at once, as its supervisor would do, and
the workers, whom nothing is done to, finish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..checks.clean import Clean
from ..explore.causes import Cause
from ..explore.producing import role_advice, role_story, said_of
from ..explore.search import Space
from ..faults import strikes as known
from ..faults.strikes import DEFAULT
from ..history.records import TrialRecord
from ..history.report import FindingReport
from ..tap.listener import Slot
from .company import Companion
from .explore import Exploration
from .queue import QueueMode
from .queue_strikes import Struck
from .refusing import refuse
from .seats import Seat

KNOWN = ("kill", "reset")
"""Families of strikes that make sense for a process that the job system knows nothing of."""


class RoleMode(QueueMode):
    """`at` is set to one of the rig's processes."""

    @property
    def companion(self) -> Companion:
        return self.lane.company.members[self.at]

    def aim(self, seat: Seat) -> tuple[Slot, Callable[[], Sequence[int]]]:
        return self.companion.slot, self.companion.pids

    async def carry_out(self, struck: Struck) -> Seat:
        """Whatever is not a kill breaks a connection of a process that lives."""
        assert struck.running.strike is not None
        companion, before = self.companion, struck.seat.slot.deliveries
        fault = struck.running.strike.fault
        match known.kind_of(fault):
            case known.KILL:
                await companion.kill()
                await companion.start()
                struck.note(f"{self.at} is started again, as its supervisor does it")
            case known.LOSE_REQUEST | known.LOSE_REPLY:
                struck.hit.link.lose()
            case known.ERROR_REPLY:
                refuse(self.lane, struck.hit, struck.detail)
            case other:
                raise ValueError(f"{other} is no strike of a process of the app")
        if fault != known.KILL and not await self._lives(companion):
            struck.note(f"{self.at} ended by itself, and was started again")
        await struck.waits(struck.seat)
        struck.running.deliveries_after = struck.seat.slot.deliveries - before
        return struck.seat

    async def _lives(self, companion: Companion) -> bool:
        """Whether it got over what happened to its connection; one that ends by it is started again."""
        await self.lane.company.idle(self.lane.stage.deadline)
        if companion.alive:
            return True
        await companion.kill()
        await companion.start()
        return False


class RoleExploration(Exploration):
    """One process of the app, with one job."""

    __slots__ = ()

    @property
    def role(self) -> str:
        assert isinstance(self.mode, RoleMode)
        return self.mode.at

    @property
    def space(self) -> Space:
        return Space(self.subject, self.points)

    def _check_contracts(self, clean: Clean) -> None:
        options = self.options
        options.faults = tuple(fault for fault in options.faults if fault in KNOWN) or DEFAULT
        super()._check_contracts(clean)

    def _told(self, cause: Cause, verified: dict[str, int], recording: TrialRecord) -> FindingReport:
        told = super()._told(cause, verified, recording)
        story = role_story(told.story, self.role)
        advice = role_advice(cause, self.role) or told.advice
        why = said_of(self.role, told.why)
        return replace(told, title=said_of(self.role, told.title), why=why, advice=advice, story=story)
