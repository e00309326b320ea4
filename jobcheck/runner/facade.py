"""What the faces call: explore jobs of a rig, and get a report in a run folder."""

from __future__ import annotations

import asyncio
import platform
import signal
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from .. import __version__
from ..aio import side_by_side
from ..checks.contracts import Contract
from ..clock import REAL
from ..config import RULESETS
from ..errors import JobcheckError, Stopped, WorkerError
from ..events import Bus, ServiceStarted, Warned
from ..explore.causes import TRANSPORT
from ..faults.strikes import DEFAULT, family_of
from ..history.report import Report, SubjectReport
from ..store import accepted
from ..store.failures import Failures
from ..store.folder import RunFolder
from ..store.journal import Journal
from ..store.redact import USUAL, Redaction
from . import clocks, leases
from .at_role import RoleMode
from .boots import ZYGOTE
from .explore import VERIFY, Options
from .handler import HandlerMode
from .lane import Lane
from .producers import ProducerMode
from .producing import explores
from .queue import QueueMode
from .remembering import failure_of, remembered_as
from .rig import Rig
from .stage import DEADLINE, Stage
from .trial import Mode
from .versions import check_version, interpreter_of, rig_at, version_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """One job to explore in one mode."""

    subject: str
    mode: str
    """`handler`, `queue` or `producer`."""
    function: str
    """Queue and producer mode: what enqueues a case. Handler mode: what prepares its rows and returns the arguments."""
    handler: str = ""
    """Handler mode: the job function."""
    contracts: tuple[Contract, ...] = ()
    assume: str = ""
    """`at-least-once`: the worker runs with safe settings, whatever the app's are."""
    only: str = ""
    """A strike id, when one finding is replayed."""
    faults: tuple[str, ...] = ()
    """Families of strikes; empty: those of the whole run."""
    max_points: int = 0
    """At most so many strikes; 0: as for the whole run."""
    deploy: str = ""
    """The next version of the app, as `versions.version_of` reads it from the project: deployed at each point."""
    schedule: str | None = None
    """The schedule of a race, when that is replayed."""
    follow: bool = False
    """Queue mode: the jobs that the job causes are explored with it."""
    at: str = ""
    """Queue mode: the process of the rig that is struck instead of the worker."""


@dataclass(slots=True)
class Request:
    """A whole run."""

    command: str
    rig: Rig
    jobs: Sequence[Job]
    name: str = "explore"
    seed: int = 0
    reports: Path = Path("reports")
    project: Path | None = None
    """Where findings are remembered; None: nowhere."""
    rig_reference: str = ""
    node: str = ""
    lanes: int = 2
    boot: str = ZYGOTE
    faults: tuple[str, ...] = DEFAULT
    """Families of `faults.strikes`."""
    max_points: int = 0
    budget: float = 0.0
    """Seconds after which no further strike is begun; 0: no bound."""
    speed: float = 1.0
    """How many times as fast the app's processes and private servers live."""
    real_clocks: bool = False
    """Leases run out by themselves; else they are rewound."""
    deadline: float = DEADLINE
    """Seconds of real time until a job that has not ended is called hung, and a worker that is not ready is given
    up."""
    verify: int = VERIFY
    redaction: Redaction = USUAL
    ruleset: int = RULESETS[-1]
    finish: Callable[[Report], Report] = field(default=lambda report: report)
    """Last word on the report before it is stored: the demo compares with what is planted."""


@dataclass(frozen=True, slots=True)
class Result:
    report: Report
    folder: RunFolder


def environment_of(bus: Bus, redaction: Redaction, **more: object) -> dict[str, Any]:
    """What a report says of its surroundings; each server adds itself when it is started."""
    environment: dict[str, Any] = {
        "jobcheck": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        **more,
        **({"bodies": "kept as they are"} if redaction.keep_bodies else {}),
    }

    def note_service(event: object) -> None:
        if isinstance(event, ServiceStarted):
            environment[event.upstream] = f"{event.kind} {event.version} ({event.origin})"

    bus.subscribe(note_service)
    return environment


async def explore(request: Request, bus: Bus) -> Result:
    """Explores every job of the request. A subject that cannot be explored is *unknown*, and the others go on."""
    if request.project is not None:
        accepted.load(request.project)  # what is wrong with it is told before the run, not after it
    for job in request.jobs:
        clocks.check(request.speed, job.faults or request.faults)
    for version in dict.fromkeys(job.deploy for job in request.jobs if job.deploy):
        await asyncio.to_thread(check_version, version, request.rig, _base(request))  # before anything is started
    folder = RunFolder.create(request.reports, request.name)
    started = REAL.now()
    environment = environment_of(bus, request.redaction, boot=request.boot, lanes=request.lanes)
    if any(job.mode == "queue" for job in request.jobs):
        environment["leases"] = leases.REAL if request.real_clocks else leases.REWOUND
    with folder, Journal(folder) as journal:
        logs = folder.path / "output"
        logs.mkdir(exist_ok=True)
        stage = Stage(
            seed=request.seed,
            bus=bus,
            logs=logs,
            deadline=request.deadline,
            redaction=request.redaction,
            speed=request.speed,
            real_clocks=request.real_clocks,
        )
        async with stage:
            await clocks.agree([request.rig], _pythons(request), stage)
            if stage.clock_words:
                environment["clock"] = stage.clock_words
            journal.write("run", command=request.command, seed=request.seed, environment=environment)
            done = await _on_lanes(request, stage, bus, journal)
            subjects = [replace(one, notes=(*stage.told, *one.notes)) for one in done]
            redacted = stage.redactor.count
        report = Report(
            command=request.command,
            seed=request.seed,
            verdict=verdict_of(subjects),
            environment=environment,
            subjects=tuple(subjects),
            started=folder.started,
            seconds=round(REAL.now() - started, 2),
            redacted=redacted,
            run=folder.name,
            ruleset=request.ruleset,
        )
        report = request.finish(_with_accepted(request, report, bus))
        journal.write("end", verdict=report.verdict)
    return Result(report, folder)


async def _on_lanes(request: Request, stage: Stage, bus: Bus, journal: Journal) -> list[SubjectReport]:
    """Each lane takes the next job when it is done with one; reports come back in the order of the jobs."""
    waiting = list(enumerate(request.jobs))
    waiting.reverse()
    done: dict[int, SubjectReport] = {}

    async def work() -> None:
        while waiting:
            async with Lane(stage, request.rig, next(stage.numbers)) as lane:
                while waiting and not lane.spoilt:
                    at, job = waiting.pop()
                    done[at] = await _subject(request, lane, job, bus, journal)

    await side_by_side("lane", min(request.lanes, len(request.jobs)), work)
    return [done[at] for at in sorted(done)]


async def _subject(request: Request, lane: Lane, job: Job, bus: Bus, journal: Journal) -> SubjectReport:
    mode = mode_of(request, lane, job)
    failures = Failures(request.project) if request.project is not None else None
    remembered = {strike.id for item in failures.all() for strike in item.strikes} if failures else set()
    options = Options(
        contracts=job.contracts,
        first=frozenset(remembered),
        only=job.only,
        schedule=job.schedule,
        faults=job.faults or request.faults,
        max_points=job.max_points or request.max_points,
        until=lane.stage.began + request.budget if request.budget else 0.0,
        verify=request.verify,
    )
    exploration = explores(mode)(mode, options, bus, REAL, journal.trial)
    try:
        report = await exploration.run()
    except WorkerError as error:
        lane.check_alive()
        if not exploration.trials:
            raise
        lane.spoilt = True
        async with Lane(lane.stage, request.rig, next(lane.stage.numbers)) as fresh:
            report = await exploration.given_up(str(error), mode_of(request, fresh, job))
    if request.node:
        report = replace(report, findings=tuple(replace(finding, node=request.node) for finding in report.findings))
    journal.write("subject", subject=report, key=mode.key)
    if failures is not None and not job.only and job.schedule is None:
        kept = [failure_of(request, job, mode, exploration, item) for item in report.findings]
        if report.coverage.exhausted and not report.problem:
            tried = exploration.options.faults
            failures.renew(remembered_as(request, mode), mode.name, kept, lambda one: family_of(one.fault) in tried)
        elif kept:  # what is shown can be replayed, also where the run could not go on
            failures.remember(kept)
    return report


def mode_of(request: Request, lane: Lane, job: Job) -> Mode:
    """How a lane runs this job: through its queue, or the handler alone."""
    function = request.rig.reference(job.function)
    if job.mode == "producer":
        return ProducerMode(lane, job.subject, function)
    if job.mode == "handler":
        return HandlerMode(lane, job.subject, request.rig.reference(job.handler), function)
    mode = (RoleMode if job.at else QueueMode)(
        lane, job.subject, function, safe=job.assume == "at-least-once", boot=request.boot, follow=job.follow
    )
    mode.at = job.at
    if job.deploy:
        version = version_of(job.deploy, request.rig, base=_base(request), temp=lane.folder / "next")
        mode.next_rig = rig_at(request.rig, version)
    return mode


def _pythons(request: Request) -> list[str]:
    """Interpreters of versions that are to be deployed."""
    return list(filter(None, (interpreter_of(job.deploy, _base(request)) for job in request.jobs if job.deploy)))


def _base(request: Request) -> Path:
    """From where the path of a version counts."""
    return request.project or Path.cwd()


def _with_accepted(request: Request, report: Report, bus: Bus) -> Report:
    """Marks the known findings; what expired or vanished is told."""
    if request.project is None:
        return report
    found = [finding.id for subject in report.subjects for finding in subject.findings]
    review = accepted.review(accepted.load(request.project), found, REAL.today())
    for line in review.lines:
        bus.emit(Warned(line))
    if not review.holding:
        return report
    subjects = tuple(_accepting(subject, review.holding) for subject in report.subjects)
    return replace(report, subjects=subjects, verdict=verdict_of(subjects))


def _accepting(subject: SubjectReport, holding: Mapping[str, str]) -> SubjectReport:
    findings = tuple(replace(item, accepted=holding.get(item.id, "")) for item in subject.findings)
    open_ones = [item for item in findings if not item.accepted and item.layer != TRANSPORT]
    verdict = "ok" if subject.verdict == "broken" and not open_ones else subject.verdict
    return replace(subject, findings=findings, verdict=verdict)


def verdict_of(subjects: Sequence[SubjectReport]) -> str:
    """`broken` beats `unknown` beats `ok`."""
    verdicts = {subject.verdict for subject in subjects}
    return next((verdict for verdict in ("broken", "unknown") if verdict in verdicts), "ok")


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs the work in an event loop of its own, and turns SIGTERM and Ctrl-C into a clean end (Stopped)."""
    if _loop_runs_here():
        return _in_thread(work)
    loop_box: list[asyncio.Task[T]] = []

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        loop_box.append(task)
        return await work()

    previous = None
    main_thread = threading.current_thread() is threading.main_thread()
    if main_thread:
        # A plain cancel() would be noticed at the loop's next event only, which may be half a minute away.
        previous = signal.signal(
            signal.SIGTERM,
            lambda *_: loop_box and loop_box[0].get_loop().call_soon_threadsafe(loop_box[0].cancel),
        )
    try:
        return asyncio.run(main())
    except KeyboardInterrupt:
        raise Stopped("stopped by Ctrl-C; every worker and private server was ended") from None
    except asyncio.CancelledError:
        raise Stopped("stopped by SIGTERM; every worker and private server was ended") from None
    except ExceptionGroup as group:
        first = next((error for error in group.exceptions if isinstance(error, JobcheckError)), None)
        raise first or group from None
    finally:
        if main_thread:
            signal.signal(signal.SIGTERM, previous)


def _loop_runs_here() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_thread(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """For callers inside an event loop, such as a test of pytest-asyncio."""
    box: list[T] = []
    errors: list[BaseException] = []
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        running.append((asyncio.get_running_loop(), task))
        return await work()

    def target() -> None:
        try:
            box.append(asyncio.run(main()))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target, name="jobcheck")
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        for loop, task in running:
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise Stopped("stopped by Ctrl-C; every worker and private server was ended") from None
    if errors:
        raise errors[0]
    return box[0]


__all__ = ["Job", "Redaction", "Request", "Result", "explore", "mode_of", "run", "verdict_of"]
