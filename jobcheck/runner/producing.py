"""Exploring a producer: the same loop, with contracts that hold given the row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..checks.clean import Clean, unmatched
from ..checks.producers import given_the_row, jobs_of, rows_of
from ..errors import UsageError
from ..explore.causes import Cause, Outcome, occasion, where
from ..explore.producing import producer_advice, producer_story, producer_title, producer_why
from ..explore.search import place_of
from ..faults.strikes import DEFAULT
from ..history.records import TrialRecord, Verdict
from ..history.report import FindingReport, SubjectReport
from .at_role import RoleExploration, RoleMode
from .explore import Exploration
from .producers import ProducerMode

KNOWN = ("kill", "reset")
"""Families of strikes that make sense without a worker."""


class ProducerExploration(Exploration):
    """One producer."""

    __slots__ = ()

    @property
    def system(self) -> str:
        return self.mode.lane.rig.system.name

    def _check_contracts(self, clean: Clean) -> None:
        """Completes what the user said by what a producer owes anyway."""
        options = self.options
        options.faults = tuple(fault for fault in options.faults if fault in KNOWN) or DEFAULT
        name = self.mode.subject
        if not rows_of(clean):
            raise UsageError(
                f"{name} committed nothing that a tap of PostgreSQL could see, so there is no row to compare with",
                hint="a producer is a function that stores a row and enqueues a job for it",
            )
        if not jobs_of(clean):
            raise UsageError(
                f"{name} ran, and the broker holds no job of it",
                hint="does a relay enqueue it? name its function in the rig: settle=('shop.outbox:run_relay',)",
            )
        if missing := unmatched(options.contracts, clean):
            raise UsageError("; ".join(missing), hint="name an effect as the clean run shows it")
        said = options.contracts
        owed = [one for one in given_the_row(clean) if not any(mine.matches(one.effect) for mine in said)]
        options.contracts = (*owed, *said)

    def _told(self, cause: Cause, verified: dict[str, int], recording: TrialRecord) -> FindingReport:
        strike = cause.outcomes[0].strike
        struck = self._point(strike)
        guilty = self.points[min(max(place_of(strike, self.points) - 1, 0), len(self.points) - 1)]
        number = cause.id(self.subject)
        return FindingReport(
            id=number,
            layer=cause.layer,
            effect=cause.effects[0] if cause.effects else "",
            verdict=str(cause.verdict),
            strikes=tuple(outcome.strike.id for outcome in cause.outcomes),
            title=producer_title(cause, occasion(strike, self.points, struck)),
            code=next((point.code for point in (guilty, *self.points) if point.code), ""),
            where=where(strike, self.points, struck),
            verified=verified,
            why=producer_why(cause),
            advice=producer_advice(cause),
            replay=self.options.replay(number),
            clean=producer_story(recording),
            story=producer_story(self.trials[cause.outcomes[0].trial]),
        )

    def _report(
        self, outcomes: Sequence[Outcome], findings: Sequence[FindingReport], problem: str = ""
    ) -> SubjectReport:
        report = Exploration._report(self, outcomes, findings, problem)
        if self.clean is None:
            return report
        rows = rows_of(self.clean)
        named = tuple(name for name in report.uncontracted if name not in rows)
        return replace(report, uncontracted=named, notes=(*report.notes, *self._twice(outcomes)))

    def _twice(self, outcomes: Sequence[Outcome]) -> list[str]:
        """Jobs that came more often than in the clean run where that was no breach."""
        assert self.clean is not None
        wanted = self.clean.counts()
        found = dict.fromkeys(
            name
            for outcome in outcomes
            if outcome.verdict is Verdict.OK
            for name, count in Counter(effect.name for effect in self.trials[outcome.trial].effects).items()
            if name in jobs_of(self.clean) and count > wanted[name]
        )
        return [
            f"{name} may be enqueued twice: it must bear that (explore it with --faults duplicate)" for name in found
        ]


def explores(mode: object) -> type[Exploration]:
    """How a mode is explored."""
    if isinstance(mode, RoleMode):
        return RoleExploration
    return ProducerExploration if isinstance(mode, ProducerMode) else Exploration
