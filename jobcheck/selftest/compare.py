"""What an exploration showed against what is planted: a sentence for each difference. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..explore.causes import HANDLER
from ..faults.strikes import KILL, RACE
from ..history.records import NEVER_PASS
from ..history.report import PointReport, StrikeReport, SubjectReport
from .expected import Expected, Outcome, expected, finding_words
from .kinds import RIGHT, Planted

_UNSURE = frozenset(map(str, NEVER_PASS))


@dataclass(frozen=True, slots=True)
class Compared:
    """One handler in one mode."""

    planted: Planted
    mode: str
    differences: tuple[str, ...]
    """Empty when it came out as planted."""
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        return not self.differences


def compare(planted: Planted, subject: SubjectReport) -> Compared:
    """Every difference between the exploration and what must come out."""
    wanted = expected(planted, subject.mode)
    if subject.problem or not subject.strikes:
        return Compared(planted, subject.mode, (f"unknown: {subject.problem or 'nothing was struck'}",))
    sentences = [
        *_points(wanted, subject),
        *_strikes(planted, wanted, subject),
        *_findings(wanted, subject),
        *_coverage(planted, subject),
    ]
    if subject.verdict == "unknown":
        sentences.append("unknown: the exploration as a whole")
    return Compared(planted, subject.mode, tuple(sentences), subject.seconds)


def point_name(point: PointReport) -> str:
    """How a person reads a point: `db COMMIT #2`, `broker delivery`."""
    bare = "delivery" if point.side == "delivery" else point.shape.split(" ", 1)[-1]
    return f"{point.upstream} {bare}" + (f" #{point.nth}" if point.nth > 1 else "")


def place_name(strike: StrikeReport, struck: Mapping[str, PointReport]) -> str:
    """Where a strike hit: `before db COMMIT` for a kill, else `lose-reply at db COMMIT`, `race at db COMMIT`."""
    point = struck.get(strike.point)
    if point is None:
        return "nowhere"
    if strike.fault == RACE:
        held = strike.when.count(" held before ")
        return f"race at {point_name(point)}" if held == 1 else f"race: {strike.when}"
    return f"{strike.when if strike.fault == KILL else f'{strike.fault} at'} {point_name(point)}"


def _points(wanted: Expected, subject: SubjectReport) -> list[str]:
    seen = [point_name(point) for point in subject.points]
    if seen == list(wanted.points) or (not wanted.ordered and Counter(seen) == Counter(wanted.points)):
        return []
    return [f"other points: planted {', '.join(wanted.points)}; seen {', '.join(seen) or 'none'}"]


def _strikes(planted: Planted, wanted: Expected, subject: SubjectReport) -> list[str]:
    """What is missed, found elsewhere, found in another way, or not known."""
    sentences = []
    seen = {place_name(strike, subject.struck): strike for strike in subject.strikes}
    for place, want in wanted.bad.items():
        if place not in seen:
            sentences.append(f"missed: {want.text} {place}; nothing was struck there")
        elif seen[place].verdict == "ok":
            sentences.append(f"missed: {want.text} {place}; the strike ended well")
    for place, strike in seen.items():
        if strike.verdict in _UNSURE:
            sentences.append(f"unknown: {strike.verdict} {place}")
        elif strike.verdict != "ok":
            sentences += _bad_strike(planted, wanted, place, strike)
    return sentences


def _bad_strike(planted: Planted, wanted: Expected, place: str, strike: StrikeReport) -> list[str]:
    found = Outcome(strike.verdict, strike.layer, frozenset(phrase.partition(": ")[0] for phrase in strike.effects))
    want = wanted.bad.get(place) or wanted.open.get(place)
    if found == want:
        return []
    if want is not None:
        return [f"found otherwise: {found.text} {place}; planted {want.text}"]
    word = "accused" if planted.kind == RIGHT and strike.layer == HANDLER else "found elsewhere"
    return [f"{word}: {found.text} {place}, where nothing is planted"]


def _findings(wanted: Expected, subject: SubjectReport) -> list[str]:
    seen = [(item.layer, finding_words(item.layer, item.verdict, item.effect)) for item in subject.findings]
    sentences = []
    if Counter(seen) != Counter(wanted.findings):
        sentences.append(f"other findings: planted {_listed(sorted(wanted.findings))}; reported {_listed(seen)}")
    for item in subject.findings:
        if item.verified.get("reproduced") != item.verified.get("of"):
            verified = f"{item.verified.get('reproduced')}/{item.verified.get('of')}"
            sentences.append(f"flaky {verified}: {item.title} ({item.id})")
    return sentences


def _coverage(planted: Planted, subject: SubjectReport) -> list[str]:
    coverage = subject.coverage
    all_of_them = coverage.strikes == planted.strikes if planted.strikes else coverage.exhausted
    if all_of_them and coverage.fired == coverage.strikes:
        return []
    return [f"not covered: {coverage.fired} of {coverage.strikes} strikes fired {coverage.capped}".rstrip()]


def _listed(findings: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{layer} {what}" for layer, what in findings) or "none"
