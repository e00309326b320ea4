"""What a scenario acts on, and what it writes down of each action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...systems.contract import Settings
from ..agents import Agent
from ..rig import Rig
from .book import Book
from .lane import ScenarioLane
from .posts import Post
from .work import Producers, Work


@dataclass(slots=True)
class Done:
    """One action that was carried out."""

    at: float
    """Seconds after the workload began."""
    text: str
    fault: int = -1
    outcome: str = ""
    met: bool = False
    """It met a running job."""


@dataclass(slots=True)
class World:
    """Workers, producers, workload and broker of one scenario."""

    lane: ScenarioLane
    posts: dict[str, Post]
    producers: Producers
    work: Work
    book: Book
    settings: Settings
    recovery: Agent
    """Runs the system's own recovery, beside the producers."""
    rigs: Mapping[str, Rig]
    ready: float
    """Seconds for a worker to boot."""
    notes: list[str] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)

    def note(self, text: str) -> None:
        if text and text not in self.notes:
            self.notes.append(text)
