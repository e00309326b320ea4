"""Races of one job: every order in which two deliveries of it can meet, up to a number of preemptions.

`race` is for Exploration, when the clean runs are recorded:

    raced = await race(mode, RaceOptions(contracts, clean, keep=..., replay=...))
    outcomes += raced.outcomes          # as those of other strikes: fault `race`, `when` is the schedule
    findings += raced.findings          # none or one: the search ends at the first failure, shrunk and run again
    points   += raced.points            # of its strikes; reads are among them

`RaceOptions.only` is `Strike.when` of a remembered strike: that schedule alone is run, as often as `verify` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ..checks.clean import Clean
from ..checks.contracts import Contract
from ..checks.judge import Judgement, judge, worst
from ..explore.advice import Evidence
from ..explore.causes import HANDLER, Cause, Outcome, causes
from ..explore.race_story import race_advice, race_story, title, where, why
from ..explore.races import BOUND, RACE, Schedule, Search, Step, Switch, parse, smaller, strike_of
from ..explore.shared import Shared
from ..explore.story import story
from ..history.ids import short_id
from ..history.records import NEVER_PASS, Point, TrialRecord, Verdict
from ..history.report import FindingReport
from .arenas import Arena, Run, arena_of
from .findings import honours_keys
from .trial import Mode


@dataclass(frozen=True, slots=True)
class RaceOptions:
    """How far a search goes, and what it is judged by."""

    contracts: Sequence[Contract]
    clean: Clean
    recording: TrialRecord | None = None
    """A clean run, to be told beside the finding."""
    bound: int = BOUND
    """Preemptions at most."""
    most: int = 0
    """Schedules at most; 0: no bound."""
    until: float = 0.0
    """On the clock: no schedule is begun after it; 0: no bound."""
    verify: int = 3
    """How often a failure is run in all before it is reported."""
    only: str | None = None
    """A schedule as text: nothing else is run."""
    keep: Callable[[TrialRecord], None] = lambda trial: None
    done: Callable[[Outcome, int], None] = lambda outcome, left: None
    """Told of each outcome, and how many schedules are known to be left."""
    replay: Callable[[str], str] = lambda finding: f"jobcheck replay {finding}"


@dataclass(slots=True)
class Raced:
    """How a search ended."""

    outcomes: list[Outcome] = field(default_factory=list)
    findings: list[FindingReport] = field(default_factory=list)
    points: dict[str, Point] = field(default_factory=dict)
    """The messages before which somebody was held, by id."""
    trials: dict[str, TrialRecord] = field(default_factory=dict)
    steps: int = 0
    """Messages of one delivery that count, in the run without preemptions."""
    left: int = 0
    """Schedules that are known and were not run, after a failure or where a bound cut the search."""
    exhausted: bool = True
    """False where a bound cut the search; one that ended at a failure has found what it looked for."""
    notes: list[str] = field(default_factory=list)


async def race(mode: Mode, options: RaceOptions) -> Raced:
    """Searches the schedules of this job and stops at the first that breaks a contract.

    The mode must be open and its job must have run. Raises UsageError where the mode knows no races.
    """
    search = _Races(mode, options, arena_of(mode))
    await search.arena.open()
    try:
        await search.run()
    finally:
        await search.arena.close()
    return search.raced


class _Races:
    """One search."""

    def __init__(self, mode: Mode, options: RaceOptions, arena: Arena) -> None:
        self.mode = mode
        self.options = options
        self.arena = arena
        self.raced = Raced()
        self.shared = Shared()
        self._study: Run | None = None
        """The run in which every look was held."""
        self._first = mode.points[0].id if mode.points else ""

    async def run(self) -> None:
        failed = await (self._search() if self.options.only is None else self._once(parse(self.options.only)))
        if failed is None:
            return
        schedule, outcome = await self._shrunk(*failed)
        found = causes([outcome], ())
        self.raced.findings += await self._findings(found, schedule, outcome)

    async def _search(self) -> tuple[Schedule, Outcome] | None:
        options, clock = self.options, self.mode.lane.stage.clock
        search = Search(options.bound)
        while (schedule := search.propose()) is not None:
            late = options.until and clock.now() >= options.until
            if self.raced.outcomes and (late or (options.most and len(self.raced.outcomes) >= options.most)):
                self.raced.left, self.raced.exhausted = search.left + 1, False
                return None
            run, outcome = await self._ran(schedule)
            search.ran(schedule, self._steps(run), self._places(run))
            self.raced.outcomes.append(outcome)
            self.raced.left = search.left
            options.done(outcome, search.left)
            if outcome.bad:
                return schedule, outcome
        return None

    async def _once(self, schedule: Schedule) -> tuple[Schedule, Outcome] | None:
        if schedule.switches:
            await self._ran(Schedule(), "study")  # what the job writes is learnt first, as it was then
        _, outcome = await self._ran(schedule)
        self.raced.outcomes.append(outcome)
        self.options.done(outcome, 0)
        return (schedule, outcome) if outcome.bad else None

    async def _shrunk(self, schedule: Schedule, outcome: Outcome) -> tuple[Schedule, Outcome]:
        """The same with fewer preemptions, where that fails too."""
        tried = {one.strike.id for one in self.raced.outcomes}
        for less in smaller(schedule) if self.options.only is None else ():
            if strike_of(self.mode.key, less, self._first).id in tried:
                continue
            _, again = await self._ran(less)
            self.raced.outcomes.append(again)
            if again.bad:
                return await self._shrunk(less, again)
        return schedule, outcome

    # One run

    async def _ran(self, schedule: Schedule, purpose: str = "strike", *, sample: bool = False) -> tuple[Run, Outcome]:
        """One run, and once more when it took another way than planned."""
        run = await self._run(schedule, purpose, sample)
        if not run.trial.fired or run.trial.diverged:
            run = await self._run(schedule, purpose, sample)
        judgement = self._judged(run)
        strike = run.trial.strike
        assert strike is not None
        return run, Outcome(
            strike=strike,
            verdict=judgement.verdict,
            broken=judgement.broken,
            layer=HANDLER if judgement.broken else "",
            trial=run.trial.id,
            seconds=run.trial.seconds,
            redelivered=True,
            fired=run.trial.fired,
            notes=judgement.notes,
        )

    async def _run(self, schedule: Schedule, purpose: str, sample: bool) -> Run:
        for switch in schedule.switches:
            self.raced.points[switch.before.id] = Point(
                switch.before.id, switch.before.upstream, switch.before.shape, switch.before.nth
            )
        strike = strike_of(self.mode.key, schedule, self._first)
        run = await self.arena.run(strike, schedule, self.shared, purpose, sample=sample)
        self.raced.trials[run.trial.id] = run.trial
        self.options.keep(run.trial)
        self.mode.lane.check_alive()
        if self.shared.open:
            self._study = run
            self.shared.learn((sight.upstream, sight.unit) for sight in run.contest.sights)
            self.raced.steps = sum(step.who == "A" for step in self._steps(run))
        self.raced.notes += [note for note in run.contest.notes if note not in self.raced.notes]
        return run

    def _judged(self, run: Run) -> Judgement:
        """One delivery that fails where the other one has done the work is a nuisance; the job is not misfiled."""
        judgement = judge(run.trial, self.options.clean, self.options.contracts)
        if not run.failures or judgement.verdict in NEVER_PASS:
            return judgement
        one = len(run.failures) == 1
        kept = tuple(item for item in judgement.broken if not (one and item.verdict is Verdict.MISFILED))
        notes = (*judgement.notes, *run.failures)
        return replace(judgement, verdict=worst([item.verdict for item in kept]), broken=kept, notes=notes)

    def _steps(self, run: Run) -> list[Step]:
        """The steps that count now that it is known what the job writes: the first run held every look."""
        steps = run.contest.director.steps
        if run is not self._study:
            return steps
        told = Shared(set(self.shared.written), open=False)
        keep = [told.counts(sight.upstream, sight.link.number, sight.unit) for sight in run.contest.sights]
        return [step for step, counts in zip(steps, keep, strict=True) if counts]

    def _places(self, run: Run) -> list[int]:
        """Before which of these steps each preemption took place."""
        steps = self._steps(run)
        return [steps.index(run.contest.director.steps[at]) for at in run.contest.director.held]

    # The finding

    async def _findings(self, found: Sequence[Cause], schedule: Schedule, outcome: Outcome) -> list[FindingReport]:
        reproduced, told = 1, None
        for _ in range(self.options.verify - 1):
            run, again = await self._ran(schedule, "verify", sample=True)
            if again.verdict is outcome.verdict:
                reproduced += 1
                told = told or run
        if told is None:
            told, _ = await self._ran(schedule, "verify", sample=True)
        verified = {"reproduced": reproduced, "of": self.options.verify}
        return [self._finding(cause, schedule, outcome, told, verified) for cause in found[:1]]

    def _finding(
        self, cause: Cause, schedule: Schedule, outcome: Outcome, run: Run, verified: dict[str, int]
    ) -> FindingReport:
        number = short_id(self.mode.key, HANDLER, cause.effects[0] if cause.effects else "", str(cause.verdict), RACE)
        evidence = Evidence(run.trial.effects, honours_keys(self.mode.lane.rig, cause))
        recording = self.options.recording
        return FindingReport(
            id=number,
            layer=HANDLER,
            effect=cause.effects[0] if cause.effects else "",
            verdict=str(cause.verdict),
            strikes=(outcome.strike.id,),
            title=title(cause, schedule),
            code=self._code(cause, schedule, run),
            where=where(schedule),
            verified=verified,
            why=why(cause, schedule),
            advice=race_advice(cause, schedule, self._steps(run), evidence),
            replay=self.options.replay(number),
            clean=story(recording) if recording is not None else (),
            story=race_story(run.trial, run.workers, run.contest.story),
        )

    def _code(self, cause: Cause, schedule: Schedule, run: Run) -> str:
        """The line at which the first one was held; without a preemption, the line of the effect."""
        for sight, step in zip(run.contest.sights, run.contest.director.steps, strict=True):
            if not sight.code:
                continue
            if schedule.switches:
                if Switch(step.who, step.message) == schedule.switches[0]:
                    return sight.code
            elif cause.effects and step.message.name.startswith(cause.effects[0]):
                return sight.code
        return ""
