"""What was set by hand while a scenario ran, written down as the plan's own actions are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...network.api import Changed
from .world import Done, World


@dataclass(frozen=True, slots=True)
class _Spell:
    text: str
    met: int
    """What could have met it had been counted up to here when it began."""


class Hand:
    """Hears of each change by hand, as the API makes it."""

    def __init__(self, world: World, said: Callable[[Done], None]) -> None:
        self._world = world
        self._said = said
        self._spells: dict[tuple[str, str], _Spell] = {}
        self.begun = 0
        """Faults that were set."""

    def changed(self, change: Changed) -> None:
        """A toxic or a disabled proxy begins, changes or ends."""
        key = (change.proxy, change.name)
        spell = self._spells.pop(key, None)
        if change.acts:
            self.begun += spell is None
            text = change.what if not change.name else f"{change.name}: {change.what}"
            self._spells[key] = _Spell(text, spell.met if spell else self._count(change))
            self._tell(f"by hand: {change.proxy} {text}", "")
        elif spell is not None:
            met = self._count(change) - spell.met
            words = "job(s) ran meanwhile" if not change.name else "message(s) of jobs met it"
            self._tell(f"by hand: end of {change.proxy} {spell.text}", f"{met} {words}", met > 0)

    @property
    def note(self) -> str:
        """For the report; empty when nothing was set."""
        if not self.begun:
            return ""
        return f"{self.begun} fault(s) were set by hand, through Toxiproxy's API: the seed does not repeat them"

    def _tell(self, text: str, outcome: str, met: bool = False) -> None:
        done = Done(round(self._world.book.now(), 3), text, -1, outcome, met)
        self._world.done.append(done)
        self._said(done)

    def _count(self, change: Changed) -> int:
        """Messages of jobs at this proxy so far; where nothing gets through, deliveries."""
        if not change.name:
            return sum(len(job.deliveries) for job in self._world.book.jobs.values())
        slot, _, upstream = change.proxy.rpartition(":")
        posts = self._world.posts.values()
        return sum(post.gate.traffic[upstream] for post in posts if slot in ("", post.name))
