"""The model of `report.json`: what a run says when it is over. Reports render it, and nothing else.

The format is public and versioned (docs/report-format.md); readers ignore unknown keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FORMAT = 1


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One line of a finding's story."""

    lane: str
    """Who did it: `w1`, `w2`, `jobcheck`, an upstream."""
    text: str
    """What happened, ids included: `POST /charges {"invoice": 1000017}`."""
    upstream: str = ""
    kind: str = "message"
    """`message`, `strike`, `recovery`, `delivery`, `effect`, `note`."""
    way: str = ""
    """`out` or `in` for messages."""
    at: float = 0.0
    code: str = ""


@dataclass(frozen=True, slots=True)
class PointReport:
    id: str
    upstream: str
    shape: str
    nth: int
    code: str = ""
    summary: str = ""
    broker: bool = False
    side: str = "request"
    ordered: bool = True
    job: str = ""
    """The name of its job, where a job and those that it causes are explored together."""


@dataclass(frozen=True, slots=True)
class StrikeReport:
    id: str
    point: str
    fault: str
    when: str
    fired: bool
    verdict: str
    seconds: float = 0.0
    trial: str = ""
    """Id of the trial in the journal."""
    effects: tuple[str, ...] = ()
    """What was wrong, one phrase each: `payments POST /charges: 2 times, expected 1`."""
    layer: str = ""
    """`handler`, `settings` or `transport` when the verdict is bad."""
    redelivered: bool = False
    """The job was handed out again after the strike."""


@dataclass(frozen=True, slots=True)
class FindingReport:
    id: str
    layer: str
    effect: str
    verdict: str
    strikes: tuple[str, ...]
    title: str = ""
    """One sentence: `payments POST /charges happens twice when the worker dies after it`."""
    code: str = ""
    where: str = ""
    """Between which two messages: `after payments POST /charges, before db COMMIT`."""
    verified: dict[str, int] = field(default_factory=dict)
    """`{"reproduced": 3, "of": 3}`; empty: it could not be run again."""
    why: str = ""
    """Why it matters, a sentence."""
    advice: str = ""
    """What would mend it, one or two sentences."""
    replay: str = ""
    """The exact command that runs it again."""
    node: str = ""
    """The pytest node id, where it came from a test."""
    accepted: str = ""
    """Why it is a known finding, if it is accepted."""
    clean: tuple[StoryLine, ...] = ()
    """The messages of the clean run."""
    story: tuple[StoryLine, ...] = ()
    """The messages of the struck run, recovery and second attempt included."""

    @property
    def confirmed(self) -> bool:
        """It came again when it was run again. What came once only is shown, and is *unknown*."""
        return self.verified.get("reproduced", 0) > 1 or self.verified.get("of", 0) == 1


@dataclass(frozen=True, slots=True)
class Coverage:
    points: int
    strikes: int
    fired: int
    exhausted: bool = True
    """Every strike of the space was tried. False: `capped`."""
    capped: str = ""
    """`capped at 10 of 21` when a bound cut the space."""


@dataclass(frozen=True, slots=True)
class SubjectReport:
    """One job explored in one mode."""

    name: str
    system: str
    """`celery-redis`, `handler` ..."""
    mode: str
    """`handler` or `queue`."""
    guarantee: str = ""
    contracts: tuple[str, ...] = ()
    points: tuple[PointReport, ...] = ()
    looks: tuple[PointReport, ...] = ()
    """Messages that change nothing and were struck: reads whose reply was lost, and those that a race held."""
    strikes: tuple[StrikeReport, ...] = ()
    findings: tuple[FindingReport, ...] = ()
    coverage: Coverage = Coverage(0, 0, 0)
    effects: dict[str, int] = field(default_factory=dict)
    """Effects of the clean run by name."""
    uncontracted: tuple[str, ...] = ()
    """Effects seen without a contract."""
    notes: tuple[str, ...] = ()
    verdict: str = "ok"
    """`ok`, `broken` or `unknown`."""
    problem: str = ""
    """Why it is unknown."""
    seconds: float = 0.0
    expected: str = ""
    """The demo's planted numbers, and whether they came out: `planted 3, found 3`."""

    @property
    def struck(self) -> dict[str, PointReport]:
        """By id, everything that a strike may name."""
        return {point.id: point for point in (*self.points, *self.looks)}


@dataclass(frozen=True, slots=True)
class Report:
    command: str
    seed: int
    verdict: str
    environment: dict[str, Any] = field(default_factory=dict)
    subjects: tuple[SubjectReport, ...] = ()
    scenarios: tuple[dict[str, Any], ...] = ()
    loads: tuple[dict[str, Any], ...] = ()
    format: int = FORMAT
    started: str = ""
    seconds: float = 0.0
    redacted: int = 0
    """How many secrets were taken out of the journal."""
    run: str = ""
    """Folder name of the run."""
    ruleset: int = 1
    """Which rules said what is a point and how it is judged (`config.RULESETS`)."""
