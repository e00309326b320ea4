"""The parts of a scenario's report, read from plain values: counts, expectations, actions, faults, causes of bad cases.

Every key may be missing and every text may be anything: the report may be another version's, or cut by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobcheck.history.report import StoryLine

from .text import plural

GOOD, BAD, UNSURE, TRANSPORT, PLAIN = "good", "bad", "unsure", "transport", ""


@dataclass(frozen=True, slots=True)
class Count:
    """One count with the colour of what it means."""

    name: str
    number: int
    tone: str

    @property
    def text(self) -> str:
        return f"{self.name} {self.number}"


@dataclass(frozen=True, slots=True)
class Claim:
    """One expectation. `held` is None where this version does not check it."""

    text: str
    held: bool | None
    detail: str
    line: int

    @property
    def tone(self) -> str:
        return UNSURE if self.held is None else GOOD if self.held else BAD

    @property
    def said(self) -> str:
        """What is to be said of it beside its text."""
        return self.detail or ("not checked by this version" if self.held is None else "")

    @property
    def words(self) -> str:
        """`none_lost: 1 lost`."""
        return f"{self.text}: {self.said}" if self.said else self.text


@dataclass(frozen=True, slots=True)
class Act:
    """One action that was carried out."""

    at: float
    text: str
    outcome: str
    met: bool
    fault: int

    @property
    def failed(self) -> bool:
        return self.outcome.startswith("failed")


NEVER_REACHED = "the point was never reached"
"""What the runner says of a kill whose message never came."""
_MET = re.compile(r"(\d+) (call|message)\(s\)(?: of jobs)? met it")
DOWN = " was down"
"""How it ends what it says of a kill of a worker that was gone already."""


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One fault of the file and whether it met a running job."""

    text: str
    line: int
    met: bool
    acts: tuple[Act, ...]

    @property
    def kind(self) -> str:
        """`kill`, `toxic` ...: its first word."""
        return self.text.partition(" ")[0]

    @property
    def tone(self) -> str:
        return GOOD if self.met else UNSURE

    @property
    def times(self) -> int:
        """How often it began."""
        vain = [act for act in self.acts if act.failed or act.outcome == NEVER_REACHED or act.outcome.endswith(DOWN)]
        return len(self.spells) or len(self.acts) - len(vain)

    @property
    def words(self) -> str:
        """What became of it: `3 times`, `never happened`."""
        often = "once" if self.times == 1 else f"{self.times} times"
        if self.met:
            hits = sum(act.met for act in self.acts)
            idle = self.kind in ("kill", "restart") and hits < self.times
            return f"{often}, with a job running {hits} of them" if idle else often + self._counted
        if failed := next((act.outcome for act in self.acts if act.failed), ""):
            return failed
        if any(act.outcome == NEVER_REACHED for act in self.acts):
            return NEVER_REACHED
        return f"{often}, and never met a running job" if self.times else "never happened"

    @property
    def _counted(self) -> str:
        """`, 12 calls met it`, of a lasting fault that counts what passed while it acted."""
        found = [match for act in self.acts if (match := _MET.search(act.outcome))]
        if not found:
            return ""
        return f", {plural(sum(int(match[1]) for match in found), found[0][2])} met it"

    @property
    def spells(self) -> tuple[tuple[float, float | None], ...]:
        """When a lasting fault began and ended; None: it lasted until the end. Empty for what takes a moment."""
        if self.kind == "deploy":
            return self._deployed()
        if self.kind not in ("toxic", "outage"):
            return ()
        done = [act.at for act in self.acts if not act.failed]
        return tuple((begin, end) for begin, end in zip(done[::2], [*done[1::2], None], strict=False))

    def _deployed(self) -> tuple[tuple[float, float | None], ...]:
        """From the first action with the new version to the first one with another version, which rolls it back."""
        version = self.text.partition(" ")[2]
        ours = [f"deploy {version} to " in act.text or act.text.endswith(f" with {version}") for act in self.acts]
        if True not in ours:
            return ()
        first = ours.index(True)
        back = next((act.at for act, own in zip(self.acts, ours, strict=True) if not own), None)
        return ((self.acts[first].at, back),)


@dataclass(frozen=True, slots=True)
class Cause:
    """Bad cases that went wrong in the same way: how many were told, and the one with the smallest story."""

    verdict: str
    layer: str
    broken: tuple[str, ...]
    cases: tuple[str, ...]
    example: str
    story: tuple[StoryLine, ...]

    @property
    def tone(self) -> str:
        if self.layer in ("handler", "settings"):
            return BAD
        return TRANSPORT if self.layer == "transport" else UNSURE

    @property
    def what(self) -> str:
        return "; ".join(self.broken)

    @property
    def place(self) -> str:
        """Where it is laid, in words."""
        return self.layer or "filed as failed"


# Reading


def cause_of(key: tuple[str, ...], rows: Sequence[Mapping[str, Any]], acts: Sequence[Act]) -> Cause:
    """The cause that these bad cases share. `key`: verdict, layer, and what was broken."""
    example = min(rows, key=lambda row: len(list_of(row, "story")) or 10**6)
    ids = example.get("ids")
    named = ", ".join(f"{name} {value}" for name, value in ids.items()) if isinstance(ids, Mapping) else ""
    case = str(example.get("case", ""))
    return Cause(
        verdict=key[0],
        layer=key[1],
        broken=key[2:],
        cases=tuple(str(row.get("case", "")) for row in rows),
        example=f"{case} ({named})" if named else case,
        story=_story(example, acts),
    )


def _story(row: Mapping[str, Any], acts: Sequence[Act]) -> tuple[StoryLine, ...]:
    """Messages, deliveries, strikes and effects of a case in the order of time."""
    lines = [
        StoryLine(
            lane=str(item.get("lane", "")),
            text=str(item.get("text", "")),
            upstream=str(item.get("upstream") or ""),
            kind=str(item.get("kind") or "message"),
            way=str(item.get("way") or ""),
            at=number_of(item, "at"),
        )
        for item in list_of(row, "story")
    ]
    for effect in list_of(row, "effects"):
        name, note = str(effect.get("name", "")), str(effect.get("note") or "")
        if effect.get("applied") is False:
            note = note or "answered again, nothing happened"
        upstream = name.partition(" ")[0]
        text = f"{name} ({note})" if note else name
        lines.append(StoryLine(upstream, text, upstream, "effect", at=number_of(effect, "at")))
    lines += _deaths(row, acts, [line.at for line in lines if line.kind == "strike"])
    lines.sort(key=lambda line: (line.at, line.kind == "strike"))
    return tuple(_without_parts(lines))


def _deaths(row: Mapping[str, Any], acts: Sequence[Act], told: Sequence[float]) -> Iterator[StoryLine]:
    """The kills by the clock that ended deliveries of this case; those at a point are in the story already."""
    for job in list_of(row, "jobs"):
        for delivery in list_of(job, "deliveries"):
            worker, since = str(delivery.get("worker", "")), number_of(delivery, "at")
            if delivery.get("fate") != "died":
                continue
            kills = (act for act in acts if act.at >= since and act.text.startswith(f"kill {worker} "))
            kill = next(kills, None)
            if kill is not None and not any(since <= at <= kill.at for at in told):
                yield StoryLine(worker, kill.text, "", "strike", at=kill.at)


def _without_parts(lines: Sequence[StoryLine]) -> Iterator[StoryLine]:
    """What was queued for an EXEC is told by the EXEC."""
    wholes = {(line.lane, line.upstream, line.at): line.text for line in lines if line.text.startswith("EXEC ")}
    for line in lines:
        whole = wholes.get((line.lane, line.upstream, line.at), "")
        if whole and line.text != whole and line.kind == "message" and line.text[:24] in whole:
            continue
        yield line


def list_of(row: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = row.get(key)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def number_of(row: Mapping[str, Any], key: str) -> float:
    value = row.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def whole_of(row: Mapping[str, Any], key: str, otherwise: int = 0) -> int:
    value = row.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def held_of(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
