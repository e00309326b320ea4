"""Exploring one job in one mode: record, compare, strike every point, judge, verify, explain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ..checks.clean import Clean, clean_of, lines_to_paste, uncontracted, unmatched
from ..checks.contracts import Contract
from ..checks.producers import judge_of
from ..clock import Clock
from ..errors import UsageError, WorkerError
from ..events import Bus, PointsFound, StrikeDone, SubjectFinished, SubjectStarted
from ..explore import points as pointing
from ..explore.causes import HANDLER, TRANSPORT, Cause, Outcome, causes
from ..explore.search import Read, Space, ordered, place_of, sampled
from ..faults.strikes import DEFAULT, FAMILIES
from ..history.records import NEVER_PASS, Point, Strike, TrialRecord
from ..history.report import Coverage, FindingReport, SubjectReport
from . import clocks, leases, racing
from .around import hints
from .blame import blame, layer_of
from .estimate import takes_of
from .findings import Told, finding, honours_keys
from .promises import promises, unused
from .queue import QueueMode
from .races import Raced
from .recordings import reads_of, recorded_of
from .rig import ANY_ORDER
from .telling import point_report, spoilt, strike_report, unconfirmed, work_of
from .trial import Mode

VERIFY = 3
"""How often a finding is run in all before it is reported."""

NOTHING = "nothing was struck, so nothing is shown"


@dataclass(slots=True)
class Options:
    """How far an exploration goes."""

    contracts: Sequence[Contract] = ()
    first: frozenset[str] = frozenset()
    """Strike ids that failed last time: they are tried first."""
    only: str = ""
    """A strike id: nothing else is struck (replay)."""
    schedule: str | None = None
    """The schedule of a race, as its strike's `when` has it: nothing else is run (replay)."""
    faults: tuple[str, ...] = DEFAULT
    """Families of `faults.strikes`."""
    max_points: int = 0
    until: float = 0.0
    """On the clock: no strike is begun after it; 0: no bound. At least one strike is tried."""
    verify: int = VERIFY
    replay: Callable[[str], str] = lambda finding: f"jobcheck replay {finding}"


@dataclass(slots=True)
class Exploration:
    """One job in one mode. `run` gives its report; trials go to `keep` as they end."""

    mode: Mode
    options: Options
    bus: Bus
    clock: Clock
    keep: Callable[[TrialRecord], None]
    trials: dict[str, TrialRecord] = field(default_factory=dict)
    points: tuple[Point, ...] = ()
    reads: tuple[Read, ...] = ()
    """What changes nothing, and is struck by lost replies."""
    raced: Raced | None = None
    clean: Clean | None = None
    booted: float = 0.0
    """Seconds until the first workers were there."""
    outcomes: list[Outcome] = field(default_factory=list)
    found: list[FindingReport] = field(default_factory=list)

    @property
    def subject(self) -> str:
        return self.mode.key

    @property
    def system(self) -> str:
        return self.mode.system.name if isinstance(self.mode, QueueMode) else "handler"

    async def run(self) -> SubjectReport:
        """Raises UsageError when a contract names an effect that the clean run never showed, or there is none."""
        self.bus.emit(SubjectStarted(self.mode.subject, self.mode.name))
        started = self.clock.now()
        await self.mode.open()
        self.booted = self.clock.now() - started
        try:
            report = await self._explore()
        finally:
            await self.mode.close()
        report = replace(report, seconds=round(self.clock.now() - started, 3))
        self.bus.emit(SubjectFinished(report.name, report.mode, report.verdict, len(report.findings), report.seconds))
        return report

    async def _explore(self) -> SubjectReport:
        warm_up = await self._trial("warm-up")
        if problem := spoilt(warm_up):
            return self._report([], [], problem="\n".join([problem, *hints(self.mode.lane)]))
        first, second = await self._trial("recording"), await self._trial("recording")
        if problem := self._unusable(first, second):
            return self._report([], [], problem=problem)
        self.points = self._points(first, second)
        self.mode.points = self.points
        self.reads = reads_of(self.mode, first)
        self.clean = clean_of([first, second])
        self._check_contracts(self.clean)
        planned = self._planned()
        if isinstance(self.mode, QueueMode):
            leases.check_plan(self.mode, planned)
        plan, coming = racing.plan_of(self, planned), [*planned, *racing.expected(self)]
        takes = takes_of(self.mode, coming, (first.seconds + second.seconds) / 2, self.booted)
        self.bus.emit(PointsFound(self.mode.subject, self.mode.name, len(self.points), len(planned), plan, takes))
        for strike in planned:
            if self.outcomes and self._late():
                break
            outcome = await self._strike(strike)
            self.outcomes.append(outcome)
            self.bus.emit(
                StrikeDone(self.mode.subject, self.mode.name, str(outcome.verdict), len(self.outcomes), len(planned))
            )
        await self._explain()
        await racing.races(self, first)
        struck = bool(self.outcomes) or self.raced is not None
        return self._report(self.outcomes, self.found, problem="" if struck else NOTHING)

    @property
    def looks(self) -> tuple[Point, ...]:
        """What was struck and is no point."""
        mine = {point.id for point in self.points}
        raced = self.raced.points.values() if self.raced else ()
        found = {point.id: point for point in (*(read.point for read in self.reads), *raced)}
        return tuple(point for number, point in found.items() if number not in mine)

    async def given_up(self, problem: str, fresh: Mode) -> SubjectReport:
        """The report of an exploration that could not go on. What was judged before stays, and is run again in a fresh
        place before it is reported; where that is not possible either, it is shown as not verified."""
        if any(outcome.bad for outcome in self.outcomes):
            before, self.mode = self.mode, fresh
            fresh.points = self.points
            try:
                await fresh.open()
                await self._explain()
                await fresh.close()
            except WorkerError:
                self.mode = before
                await self._explain(verify=False)
        return self._report(self.outcomes, self.found, problem=problem)

    async def _explain(self, *, verify: bool = True) -> None:
        """Makes findings of the outcomes: each is run again first."""
        recording = next((trial for trial in self.trials.values() if trial.purpose == "recording"), None)
        bad = causes(self.outcomes, self.points)
        must = next((cause for cause in bad if cause.layer != TRANSPORT), bad[0] if bad else None)
        for cause in bad[len(self.found) :]:
            assert recording is not None
            verified = await self._verify(cause, least=cause is must) if verify else self._verified(1, 1)
            self.found.append(self._told(cause, verified, recording))

    def _late(self) -> bool:
        return bool(self.options.until) and self.clock.now() >= self.options.until

    # Recording

    def _recorded(self, trial: TrialRecord) -> pointing.Recorded:
        return recorded_of(self.mode, trial)

    def _unusable(self, first: TrialRecord, second: TrialRecord) -> str:
        for trial in (first, second):
            if problem := spoilt(trial):
                return problem
        any_order = self.mode.lane.rig.order == ANY_ORDER
        if found := pointing.difference(self._recorded(first), self._recorded(second), any_order=any_order):
            return found
        return "" if self._recorded(first).points else "the clean run changed nothing that a tap can see"

    def _points(self, first: TrialRecord, second: TrialRecord) -> tuple[Point, ...]:
        """Where the stack could be taken in one of the two recordings only, that one's line is used."""
        codes = {point.id: point.code for point in self._recorded(second).points}
        merged = pointing.merged(self._recorded(first), self._recorded(second))
        any_order = self.mode.lane.rig.order == ANY_ORDER
        early = isinstance(self.mode, QueueMode) and self.mode.settings.guarantee == "at-most-once"
        return tuple(
            replace(
                point,
                code=point.code or codes.get(point.id, ""),
                # An early ack is sent by another process than the job's own messages, which go on meanwhile.
                ordered=point.ordered and not any_order and not (early and point.role == "ack"),
            )
            for point in merged
        )

    def _check_contracts(self, clean: Clean) -> None:
        kinds = {name: spec.kind for name, spec in self.mode.lane.rig.upstreams.items()}
        paste = "\n    ".join(lines_to_paste(clean, kinds))
        if not self.options.contracts:
            raise UsageError(
                f"no contract says how often the effects of {self.mode.subject} may happen",
                hint=f"the clean run showed these effects; paste what you mean:\n    {paste}",
            )
        if missing := unmatched(self.options.contracts, clean):
            raise UsageError(
                "; ".join([*missing, *unused(self.mode.lane, self.options.contracts)]),
                hint=f"the clean run showed:\n    {paste}",
            )

    @property
    def space(self) -> Space:
        """Everything that can be struck."""
        if not isinstance(self.mode, QueueMode):
            return Space(self.subject, self.points, self.reads)
        deploy, leased = self.mode.next_rig is not None, self.mode.settings.guarantee != "at-most-once"
        jobs = max((len(trial.case.jobs) for trial in self.trials.values() if trial.purpose == "recording"), default=1)
        return Space(
            self.subject,
            self.points,
            self.reads,
            queue=True,
            deploy=deploy,
            jobs=jobs,
            callbacks=self.mode.callbacks,
            leased=leased,
            fast=self.mode.lane.stage.pace is not None,
        )

    def _planned(self) -> list[Strike]:
        if self.options.schedule is not None:
            return []
        if self.options.only:
            every = self.space.planned(tuple(FAMILIES))
            chosen = [strike for strike in every if strike.id == self.options.only]
            if not chosen:
                raise UsageError(f"the job has no strike {self.options.only} any more: its points have changed")
            return chosen
        strikes = ordered(self.space.planned(self.options.faults), self.points, self.options.first)
        return sampled(strikes, self.points, self.options.max_points) if self.options.max_points else strikes

    def _point(self, strike: Strike | None) -> Point | None:
        """What the strike waits for."""
        every = (*self.points, *self.looks)
        return next((point for point in every if strike is not None and point.id == strike.point), None)

    # Striking

    async def _trial(self, purpose: str, strike: Strike | None = None) -> TrialRecord:
        trial = await self.mode.run(purpose, strike, self._point(strike))
        self.trials[trial.id] = trial
        self.keep(trial)
        self.mode.lane.check_alive()  # what happened without a server says nothing of the job
        return trial

    async def _strike(self, strike: Strike, purpose: str = "strike") -> Outcome:
        """One strike; a run that took another way is tried once more before it is reported."""
        trial = await self._trial(purpose, strike)
        if trial.diverged or not trial.fired:
            trial = await self._trial(purpose, strike)
        assert self.clean is not None
        judgement = judge_of(self.mode.name)(trial, self.clean, self.options.contracts)
        return Outcome(
            strike=strike,
            verdict=judgement.verdict,
            broken=judgement.broken,
            layer=await layer_of(self.mode, self.points, judgement, trial, self.keep),
            trial=trial.id,
            seconds=trial.seconds,
            redelivered=trial.deliveries_after > 0,
            fired=trial.fired,
            notes=judgement.notes,
        )

    # Findings

    async def _verify(self, cause: Cause, *, least: bool) -> dict[str, int]:
        """Runs the first strike of a cause again: a finding is verified or flaky, and says so. The budget bounds this
        too; `least`: it is run again once in any case."""
        again, ran, reproduced = cause.outcomes[0], 1, 1
        while ran < self.options.verify and not (self._late() and not (least and ran == 1)):
            outcome = await self._strike(again.strike, "verify")
            ran += 1
            reproduced += outcome.verdict is again.verdict
        return self._verified(reproduced, ran)

    def _verified(self, reproduced: int, ran: int) -> dict[str, int]:
        """A finding that was to be run again, and was not, counts as not verified."""
        return {"reproduced": reproduced, "of": ran} if ran > 1 or self.options.verify == 1 else {}

    def _told(self, cause: Cause, verified: dict[str, int], recording: TrialRecord) -> FindingReport:
        strike = cause.outcomes[0].strike
        told = Told(
            subject=self.subject,
            points=self.points,
            struck=self._point(strike),
            order=tuple(self.clean.counts()) if self.clean else (),
            trial=self.trials[cause.outcomes[0].trial],
            recording=recording,
            honours_keys=honours_keys(self.mode.lane.rig, cause),
            mend="" if cause.layer == HANDLER else blame(self.mode, self.points, strike).advice,
        )
        return finding(cause, told, verified, self.options.replay)

    # The report

    def _report(
        self, outcomes: Sequence[Outcome], findings: Sequence[FindingReport], problem: str = ""
    ) -> SubjectReport:
        verdict = "unknown" if problem or any(outcome.verdict in NEVER_PASS for outcome in outcomes) else "ok"
        for sentence, ids in unconfirmed(findings):
            verdict = "unknown"
            problem = "; ".join(filter(None, (problem, f"{sentence}: {', '.join(ids)}")))
        if any(finding.layer != TRANSPORT and finding.confirmed for finding in findings):
            verdict = "broken"
        guarantee, notes = promises(self.mode, list(self.trials.values()), outcomes)
        notes = [*self.space.unstruck(self.options.faults), *notes]
        unsure = [note for outcome in outcomes if outcome.verdict in NEVER_PASS for note in outcome.notes]
        every = len(self.space.planned(self.options.faults))
        if self.raced is not None:
            every += len(self.raced.outcomes) + (0 if self.raced.exhausted else self.raced.left)
        capped = f"capped at {len(outcomes)} of {every}" if len(outcomes) < every else ""
        return SubjectReport(
            name=self.mode.subject,
            system=self.system,
            mode=self.mode.name,
            guarantee=guarantee,
            contracts=tuple(contract.text for contract in self.options.contracts),
            points=tuple(point_report(point) for point in self.points),
            looks=tuple(point_report(point) for point in self.looks),
            strikes=tuple(strike_report(outcome) for outcome in self._in_order(outcomes)),
            findings=tuple(findings),
            coverage=Coverage(
                len(self.points), len(outcomes), sum(outcome.fired for outcome in outcomes), not capped, capped
            ),
            effects=self.clean.counts() if self.clean else {},
            uncontracted=tuple(uncontracted(self.clean, self.options.contracts)) if self.clean else (),
            notes=(*notes, *self._own_time()),
            verdict=verdict,
            problem=problem or "; ".join(dict.fromkeys(unsure)),
        )

    def _own_time(self) -> list[str]:
        """What the work itself is on a faster clock, from the recordings."""
        stage, settings = self.mode.lane.stage, self.mode.settings if isinstance(self.mode, QueueMode) else None
        clean = [trial for trial in self.trials.values() if trial.purpose in ("warm-up", "recording")]
        took = [work_of(trial) / stage.speed for trial in clean[-2:]]
        return clocks.own_time(stage, settings, sum(took) / len(took)) if took else []

    def _in_order(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """In the order of the job, not of the search."""
        return sorted(outcomes, key=lambda outcome: place_of(outcome.strike, self.points))
