"""Findings as a person wants them told: the same cause once, and a story short enough to be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jobcheck.history.report import FindingReport, Report, StoryLine, SubjectReport

from .text import LAYERS, clean, label, listed, plural, title_of


@dataclass(frozen=True, slots=True)
class Told:
    """One story: a finding, and the others that say the same."""

    subject: SubjectReport
    finding: FindingReport
    same: tuple[tuple[SubjectReport, FindingReport], ...] = ()

    @property
    def strikes(self) -> int:
        """Strikes behind this story, over all findings of it."""
        return len(self.finding.strikes) + sum(len(finding.strikes) for _, finding in self.same)

    @property
    def same_words(self) -> str:
        """`the same in queue mode`, `the same for 5 more variants: ...`; empty when there is no other."""
        if not self.same:
            return ""
        others = [subject for subject, _ in self.same]
        if all(subject.name == self.subject.name for subject in others):
            return f"the same in {listed(dict.fromkeys(clean(item.mode) for item in others))} mode"
        names = list(dict.fromkeys(clean(item.name) for item in others if item.name != self.subject.name))
        return f"the same for {plural(len(names), 'more variant')}: {listed(names)}"


def stories(report: Report) -> tuple[Told, ...]:
    """The findings of a report, those of one cause folded; the app's own first, accepted ones last.

    Transport findings are of one cause when they have the same title; others when job, effect, verdict and line of
    code are the same (handler mode and queue mode see the same bug).
    """
    groups: dict[tuple[str, ...], list[tuple[SubjectReport, FindingReport]]] = {}
    for subject in report.subjects:
        for finding in subject.findings:
            groups.setdefault(_cause(subject, finding), []).append((subject, finding))
    told = [Told(*group[0], same=tuple(group[1:])) for group in groups.values()]
    return tuple(sorted(told, key=lambda item: (bool(item.finding.accepted), _layer_order(item.finding.layer))))


def causes_by_verdict(told: Sequence[Told]) -> dict[str, int]:
    """How many causes stand behind each verdict."""
    return dict(Counter(item.finding.verdict for item in told))


def _cause(subject: SubjectReport, finding: FindingReport) -> tuple[str, ...]:
    accepted = "accepted" if finding.accepted else ""
    if finding.layer == "transport":
        return (accepted, finding.layer, title_of(finding))
    place = finding.code or title_of(finding)
    return (accepted, finding.layer, subject.name, finding.effect, finding.verdict, place)


def _layer_order(layer: str) -> int:
    return LAYERS.index(layer) if layer in LAYERS else len(LAYERS)


def shorten(lines: Sequence[StoryLine], limit: int) -> list[StoryLine | int]:
    """At most about `limit` lines: those around the strike, recovery, effects and notes stay.

    A number stands for that many messages that were left out.
    """
    if len(lines) <= limit:
        return list(lines)
    strike = next((n for n, line in enumerate(lines) if line.kind == "strike"), len(lines) // 2)
    keep = {n for n, line in enumerate(lines) if line.kind not in ("message", "note")}
    keep.add(len(lines) - 1)
    for distance in range(1, len(lines)):
        for n in (strike - distance, strike + distance):
            if 0 <= n < len(lines) and len(keep) < limit:
                keep.add(n)
    # A gap of one line would save nothing.
    keep |= {n for n in range(1, len(lines) - 1) if n - 1 in keep and n + 1 in keep}
    out: list[StoryLine | int] = []
    for n, line in enumerate(lines):
        if n in keep:
            out.append(line)
        elif out and isinstance(out[-1], int):
            out[-1] += 1
        else:
            out.append(1)
    return out


def again(story: Sequence[StoryLine]) -> dict[int, str]:
    """`2nd time` by line number, for effects that stood in the story before, word for word."""
    seen: Counter[tuple[str, str]] = Counter()
    out = {}
    for number, line in enumerate(story):
        if line.kind == "effect":
            seen[line.upstream, line.text] += 1
            count = seen[line.upstream, line.text]
            if count > 1:
                out[number] = {2: "2nd time", 3: "3rd time"}.get(count, f"{count}th time")
    return out


def plain_story(told: Told, *, limit: int = 60) -> str:
    """The story as plain text of several lines, for JUnit and other places without layout."""
    finding = told.finding
    lines = [title_of(finding), f"{label(told.subject)}, laid at the {clean(finding.layer)}"]
    if finding.code:
        lines.append(f"code: {clean(finding.code)}")
    if finding.where:
        lines.append(f"struck {clean(finding.where)}")
    lines += ["", *(plain_line(line) for line in shorten(finding.story, limit)), ""]
    for name, text in (("why", finding.why), ("mend", finding.advice), ("replay", finding.replay)):
        if text:
            lines.append(f"{name}: {clean(text)}")
    return "\n".join(lines)


def plain_line(line: StoryLine | int) -> str:
    """One line of a story: `w1 > payments  POST /charges`."""
    if isinstance(line, int):
        return f"  ... {plural(line, 'message')} left out"
    text = clean(line.text)
    if line.kind == "message":
        return f"  {clean(line.lane)} {'<' if line.way == 'in' else '>'} {clean(line.upstream)}  {text}"
    mark = {"strike": "X", "recovery": "~", "delivery": "+", "effect": "*"}.get(line.kind, "-")
    return f"  {mark} {clean(line.lane)}: {text}"
