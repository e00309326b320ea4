"""What the faces call for scenario files: run them, and get a report in a run folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...aio import side_by_side
from ...clock import REAL
from ...config import RULESETS
from ...errors import JobcheckError, UsageError
from ...events import Bus, ScenarioFinished
from ...faults.describe import describe
from ...history.report import Report
from ...scenario.model import Scenario
from ...scenario.planning import plan
from ...seeds import fresh_seed
from ...store.folder import RunFolder
from ...store.journal import Journal
from ...store.redact import USUAL, Redaction
from ..byhand import Hands
from ..facade import Result, environment_of
from ..rig import Rig
from ..stage import Stage
from .check import check_scenario, read_scenario, rig_of
from .clocks import agree
from .lane import ScenarioLane
from .roles import of_roles
from .run import ScenarioRun


@dataclass(frozen=True, slots=True)
class Loaded:
    """A scenario file that was read and checked against its rig; nothing is started yet."""

    path: Path
    scenario: Scenario
    rig: Rig
    seed: int


@dataclass(slots=True)
class ScenarioRequest:
    """A run of scenario files."""

    files: Sequence[Path] = ()
    loaded: Sequence[Loaded] = ()
    """In place of files: what was read already."""
    command: str = "jobcheck run"
    seed: int | None = None
    """Goes before the seed of a file. None and none in the file: a new one."""
    reports: Path = Path("reports")
    name: str = "scenarios"
    engine: str = ""
    """Goes before the engine of a file."""
    toxiproxy: bool = False
    """Faults can be set by hand through Toxiproxy's API, also where a file does not say so."""
    lanes: int = 1
    """How many run side by side, each on servers of its own."""
    hands: Hands | None = None
    """Who sets them, and has the run wait for it."""
    redaction: Redaction = USUAL
    ruleset: int = RULESETS[-1]
    finish: Callable[[Report], Report] = field(default=lambda report: report)


def load(path: Path, seed: int | None = None, engine: str = "", *, toxiproxy: bool = False) -> Loaded:
    """Reads a file and its rig. Raises UsageError with file and line of each mistake."""
    scenario = read_scenario(path)
    if engine:
        scenario = replace(scenario, engine=engine)
    if toxiproxy:
        scenario = replace(scenario, toxiproxy=True)
    rig = rig_of(scenario, path.parent)
    scenario = of_roles(scenario, rig)
    check_scenario(scenario, rig)
    chosen = seed if seed is not None else scenario.seed if scenario.seed is not None else fresh_seed()
    return Loaded(path, scenario, rig, chosen)


def load_all(
    files: Sequence[Path], seed: int | None = None, engine: str = "", *, toxiproxy: bool = False
) -> list[Loaded]:
    """Reads all files and their rigs. Raises UsageError with the mistakes of all of them."""
    loaded, wrong = [], list[UsageError]()
    for path in files:
        try:
            loaded.append(load(path, seed, engine, toxiproxy=toxiproxy))
        except UsageError as error:
            wrong.append(error)
    if wrong:
        raise UsageError("\n".join(error.message for error in wrong), hint=wrong[0].hint if len(wrong) == 1 else "")
    return loaded


def dry(path: Path, seed: int | None = None) -> list[str]:
    """The plan of a file, a line each, without starting anything. Raises UsageError."""
    loaded = load(path, seed)
    return [loaded.scenario.title, *describe(plan(loaded.scenario, loaded.seed))]


async def run_scenario(path: Path, bus: Bus, *, seed: int | None = None, reports: Path = Path("reports")) -> Result:
    """Runs one file. Raises UsageError when it is wrong; whatever happens later is in the report."""
    return await run_scenarios(ScenarioRequest([path], seed=seed, reports=reports, name=path.stem), bus)


async def run_scenarios(request: ScenarioRequest, bus: Bus) -> Result:
    """Runs the files, in their order; all of them are read and checked before the first one starts.

    Raises UsageError for files that are wrong, all of them at once. A scenario that cannot be run is *unknown*, also
    where only its clean case shows what is wrong with the file, and the next one goes on (a single file raises); after
    Ctrl-C the one that ran is reported as far as it came, and no other is started.
    """
    if not request.files and not request.loaded:
        raise UsageError("expected at least one scenario file", hint="jobcheck run scenarios/*.yaml")
    loaded = request.loaded or load_all(request.files, request.seed, request.engine, toxiproxy=request.toxiproxy)
    folder = RunFolder.create(request.reports, request.name)
    started = REAL.now()
    environment = environment_of(bus, request.redaction)
    seed = loaded[0].seed
    with folder, Journal(folder) as journal:
        journal.write("run", command=request.command, seed=seed, environment=environment)
        logs = folder.path / "output"
        logs.mkdir(exist_ok=True)
        reports, redacted = await _on_lanes(request, loaded, logs, bus, journal)
        report = Report(
            command=request.command,
            seed=seed,
            verdict=_worst([str(one["verdict"]) for one in reports]),
            environment=environment,
            scenarios=tuple(reports),
            started=folder.started,
            seconds=round(REAL.now() - started, 2),
            redacted=redacted,
            run=folder.name,
            ruleset=request.ruleset,
        )
        report = request.finish(report)
        journal.write("end", verdict=report.verdict)
    return Result(report, folder)


async def _on_lanes(
    request: ScenarioRequest, loaded: Sequence[Loaded], logs: Path, bus: Bus, journal: Journal
) -> tuple[list[dict[str, Any]], int]:
    """Each lane takes the next scenario when it is done with one; the reports in the order of the scenarios, as far as
    they were begun, and how much was redacted. After Ctrl-C no other one begins; on several lanes nothing is reported
    then."""
    waiting = list(enumerate(loaded))
    waiting.reverse()
    done: dict[int, dict[str, Any]] = {}
    redacted = 0

    async def work() -> None:
        nonlocal redacted
        while waiting:
            at, one = waiting.pop()
            place = logs / f"{at + 1}-{one.path.stem}"
            async with Stage(
                seed=one.seed,
                bus=bus,
                logs=place,
                redaction=request.redaction,
                speed=one.scenario.speed,
                real_clocks=one.scenario.real_clocks,
            ) as stage:
                done[at] = await _one(request, one, stage, bus, journal, alone=len(loaded) == 1)
                redacted += stage.redactor.count
            if done[at].get("aborted"):
                waiting.clear()

    if request.lanes == 1:  # Ctrl-C then reaches the scenario itself, which heals and reports
        await work()
    else:
        await side_by_side("lane", min(request.lanes, len(loaded)), work)
    return [done[at] for at in sorted(done)], redacted


async def _one(
    request: ScenarioRequest, loaded: Loaded, stage: Stage, bus: Bus, journal: Journal, *, alone: bool
) -> dict[str, Any]:
    scenario = loaded.scenario
    began = REAL.now()
    try:
        await agree(scenario, loaded.rig, loaded.path.parent, stage)
        scenario = replace(scenario, speed=stage.speed)
        async with ScenarioLane(stage, loaded.rig, scenario.engine, by_hand=scenario.toxiproxy) as lane:
            run = ScenarioRun(
                scenario,
                loaded.rig,
                lane,
                bus,
                loaded.path.parent,
                journal.write,
                hands=request.hands,
                beside=request.lanes > 1,
            )
            report = await run.run()
    except JobcheckError as error:
        if alone and isinstance(error, UsageError):
            raise
        report = _could_not_run(loaded, str(error)) | {"clock": stage.clock_words, "notes": list(stage.told)}
        if isinstance(error, UsageError):
            report["usage"] = True
        journal.write("scenario", **report)
    counts = str(report.get("counts_text", ""))
    bus.emit(ScenarioFinished(scenario.title, str(report["verdict"]), counts, round(REAL.now() - began, 2)))
    return report


def _could_not_run(loaded: Loaded, problem: str) -> dict[str, Any]:
    scenario = loaded.scenario
    return {
        "title": scenario.title,
        "file": scenario.file,
        "rig": scenario.rig,
        "system": loaded.rig.system.name,
        "seed": loaded.seed,
        "verdict": "unknown",
        "problem": problem,
        "reproduce": f"jobcheck run {scenario.file} --seed {loaded.seed}",
    }


def _worst(verdicts: Sequence[str]) -> str:
    return next((verdict for verdict in ("broken", "unknown") if verdict in verdicts), "ok")


__all__ = ["Loaded", "ScenarioRequest", "dry", "load", "run_scenario", "run_scenarios"]
