"""The dict of one scenario as reports want to read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from .provider_rows import ProviderRow, provider_of
from .scenario_parts import (
    BAD,
    GOOD,
    PLAIN,
    TRANSPORT,
    UNSURE,
    Act,
    Cause,
    Claim,
    Count,
    FaultRow,
    cause_of,
    held_of,
    number_of,
    whole_of,
)
from .text import ORDER, plural

JEPSEN = ("attempted", "acknowledged", "ok", "lost", "duplicated", "unexpected", "recovered")
"""The counts that are always told, in the order of Jepsen's total-queue checker."""
BESIDES = ("failed_visibly", "vanished", "unfinished")
"""Counts that are told when there is something to count."""


class ScenarioView:
    """Reads one scenario's dict."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    def text(self, key: str) -> str:
        value = self.raw.get(key)
        return "" if value is None else str(value)

    def number(self, key: str) -> float | None:
        value = self.raw.get(key)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def table(self, key: str) -> Mapping[str, Any]:
        value = self.raw.get(key)
        return value if isinstance(value, Mapping) else {}

    def texts(self, key: str) -> list[str]:
        value = self.raw.get(key)
        return [str(item) for item in value] if isinstance(value, list | tuple) else []

    def rows(self, key: str) -> list[Mapping[str, Any]]:
        value = self.raw.get(key)
        return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []

    # Verdict

    @property
    def title(self) -> str:
        return self.text("title") or self.text("file") or "a scenario"

    @property
    def file(self) -> str:
        return self.text("file")

    @property
    def tone(self) -> str:
        verdict = self.text("verdict")
        return GOOD if verdict == "ok" else BAD if verdict == "broken" else UNSURE

    @property
    def word(self) -> str:
        """`ok`, `broken`, `stopped`, `not exercised`, `unknown`."""
        verdict = self.text("verdict") or "unknown"
        if verdict in ("ok", "broken"):
            return verdict
        if self.raw.get("aborted"):
            return "stopped"
        return "not exercised" if self.idle_faults and not self.other_problem else "unknown"

    @property
    def problem(self) -> str:
        return self.text("problem")

    @property
    def idle_faults(self) -> list[FaultRow]:
        """Faults that met no running job; of a run that was stopped early that is no news."""
        if self.raw.get("aborted"):
            return []
        return [fault for fault in self.faults if not fault.met]

    @property
    def other_problem(self) -> str:
        """The problem without the sentences on faults that met nobody: those stand with their faults."""
        rest = self.problem
        for fault in self.idle_faults:
            rest = rest.replace(f"not exercised: {fault.text} never met a running job", "")
        return "; ".join(part for part in rest.split("; ") if part.strip())

    # Counts

    @cached_property
    def counts(self) -> list[Count]:
        """Jepsen's seven always, the others where there is something to count; empty when nothing ran."""
        if not self.table("counts"):
            return []
        found = [self._count(name) for name in JEPSEN]
        return found + [count for name in BESIDES if (count := self._count(name)).number]

    def _count(self, name: str) -> Count:
        raw = self.raw.get("unfinished") if name == "unfinished" else self.table("counts").get(name)
        number = raw if isinstance(raw, int) else 0
        return Count(name.replace("_", " "), number, self._tone_of(name) if number else PLAIN)

    def _tone_of(self, name: str) -> str:
        if name == "ok":
            return GOOD
        if name == "lost" and self.tone == GOOD:
            return TRANSPORT
        if name in ("lost", "duplicated", "unexpected"):
            return BAD
        return UNSURE if name in ("failed_visibly", "unfinished") else PLAIN

    @property
    def counts_line(self) -> str:
        """`attempted 40, acknowledged 40, ok 38, lost 2, duplicated 0, unexpected 0, recovered 0`."""
        return ", ".join(count.text for count in self.counts) or "nothing was counted"

    @property
    def layers(self) -> dict[str, int]:
        """Bad cases by layer, those without any left out."""
        return {name: number for name, number in self.table("losses").items() if isinstance(number, int) and number}

    @property
    def layers_words(self) -> str:
        """`bad cases: 2 handler, 1 transport`; empty where there is none."""
        words = ", ".join(f"{number} {name}" for name, number in self.layers.items())
        return f"bad cases: {words}" if words else ""

    # Pace

    @property
    def pace(self) -> str:
        """`asked 8/s, achieved 7.9/s: 40 of 40 cases in 5.0 s`."""
        work = self.table("workload")
        if not work:
            return ""
        words = f"asked {number_of(work, 'rate'):g}/s, achieved {number_of(work, 'achieved'):.1f}/s"
        words += f": {number_of(work, 'enqueued'):g} of {number_of(work, 'count'):g} cases"
        words += f" in {number_of(work, 'seconds'):.1f} s"
        late = number_of(work, "late")
        return words + (f", at most {late:.1f} s late" if late >= 0.1 else "")

    @property
    def rates(self) -> str:
        """`8 / 7.9`: asked and achieved, in cases per second."""
        work = self.table("workload")
        return f"{number_of(work, 'rate'):g} / {number_of(work, 'achieved'):.1f}" if work else "-"

    @property
    def rest(self) -> str:
        """How it came to rest: `quiet 4.7 s after the healing`."""
        if not self.counts:
            return ""
        recovered = self.number("recovered")
        return "it did not become quiet" if recovered is None else f"quiet {recovered:.1f} s after the healing"

    @property
    def jobs(self) -> str:
        """`157 jobs, 160 deliveries, 155 ended`."""
        jobs = self.table("jobs")
        if not jobs:
            return ""
        ended, handed = number_of(jobs, "ended"), number_of(jobs, "deliveries")
        return f"{plural(int(number_of(jobs, 'seen')), 'job')} handed out {handed:g} times, {ended:g} ended"

    @property
    def setting(self) -> str:
        """`celery-redis, at-least-once, 2 workers, seed 7`."""
        workers = self.raw.get("workers")
        facts = [self.text("system"), self.text("guarantee")]
        facts += [plural(workers, "worker") if isinstance(workers, int) else "", f"seed {self.text('seed')}"]
        return ", ".join(filter(None, facts))

    # Rows

    @cached_property
    def claims(self) -> list[Claim]:
        return [
            Claim(
                str(row.get("text", "")), held_of(row.get("held")), str(row.get("detail") or ""), whole_of(row, "line")
            )
            for row in self.rows("expectations")
        ]

    @cached_property
    def providers(self) -> list[ProviderRow]:
        """Providers of which there is something to tell."""
        return [row for row in map(provider_of, self.rows("providers")) if not row.quiet]

    @cached_property
    def acts(self) -> list[Act]:
        return [
            Act(
                number_of(row, "at"),
                str(row.get("text", "")),
                str(row.get("outcome") or ""),
                row.get("met") is True,
                whole_of(row, "fault", -1),
            )
            for row in self.rows("actions")
        ]

    @cached_property
    def faults(self) -> list[FaultRow]:
        return [
            FaultRow(
                str(row.get("text", "")),
                whole_of(row, "line"),
                row.get("met") is True,
                tuple(sorted((act for act in self.acts if act.fault == number), key=lambda act: act.at)),
            )
            for number, row in enumerate(self.rows("faults"))
        ]

    @cached_property
    def causes(self) -> list[Cause]:
        """Bad cases by cause: the app's own first, the worst first."""
        groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
        for row in self.rows("bad"):
            broken = row.get("broken")
            phrases = tuple(map(str, broken)) if isinstance(broken, list | tuple) else ()
            groups.setdefault((str(row.get("verdict", "")), str(row.get("layer") or ""), *phrases), []).append(row)
        causes = [cause_of(key, rows, self.acts) for key, rows in groups.items()]
        order = {BAD: 0, TRANSPORT: 1, UNSURE: 2}
        rank = {verdict: number for number, verdict in enumerate(ORDER)}
        return sorted(
            causes, key=lambda cause: (order[cause.tone], rank.get(cause.verdict, len(rank)), -len(cause.cases))
        )

    @property
    def left_out(self) -> int:
        """Bad cases beyond those that the report tells in full."""
        return whole_of(self.raw, "bad_left_out")

    @property
    def reproduce(self) -> str:
        return self.text("reproduce")

    @property
    def remarks(self) -> Iterator[str]:
        """What a person should know beside the verdict."""
        yield from self.texts("notes")
        yield from (f"an effect without an owner: {text}" for text in self.texts("orphans"))
        yield from (f"an enqueue call failed: {text}" for text in self.texts("enqueue_errors"))
        yield from self.texts("owner_problems")
        if loose := self.texts("uncontracted"):
            yield "effects without a contract; to paste: " + ", ".join(f"exactly_once: {name}" for name in loose)


def views(scenarios: Sequence[Mapping[str, Any]]) -> list[ScenarioView]:
    """All scenarios of a report."""
    return [ScenarioView(raw) for raw in scenarios]
