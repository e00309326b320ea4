"""Dialogues with a schedule in simulated time.

    play(schedule) >> at(1.5) << [KillWorker("w1")] >> seen(WorkerGone("w1", 0.5)) << [] >> at(2.0) << [...]

`>>` tells the schedule the time or an event, `<<` says which actions must come, all of them and in this order. A
dialogue that ends with an answer that nobody looked at fails.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobcheck.faults.actions import Action, Happening
from jobcheck.faults.schedule import Schedule


@dataclass(frozen=True)
class at:  # noqa: N801  # reads as a word in the dialogue
    """The time is now this."""

    now: float


@dataclass(frozen=True)
class seen:  # noqa: N801
    """This happened, now."""

    event: Happening


class play:  # noqa: N801
    """One dialogue."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.now = 0.0
        self.told: list[str] = []
        self.answer: list[Action] | None = None

    def __rshift__(self, said: at | seen) -> play:
        assert not self.answer, f"nobody looked at {self.answer}\n" + self._so_far()
        if isinstance(said, at):
            assert said.now >= self.now, "time goes on"
            self.now = said.now
            self.answer = self.schedule.due(self.now)
        else:
            self.answer = self.schedule.observe(said.event, self.now)
        self.told.append(f">> {said}")
        return self

    def __lshift__(self, expected: list[Action]) -> play:
        assert self.answer == expected, f"at {self.now}: {self.answer}, expected {expected}\n" + self._so_far()
        self.told.append(f"<< {expected}")
        self.answer = None
        return self

    def then_at(self, moment: float | None) -> play:
        """When it wants to be asked again."""
        assert self.schedule.next_due(self.now) == moment, self._so_far()
        return self

    def _so_far(self) -> str:
        return "\n".join(self.told)
