"""One clean job, looked at from all sides: `jobcheck probe`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from ..checks.clean import clean_of, lines_to_paste
from ..errors import JobcheckError
from ..events import Bus
from ..explore import points as pointing
from ..history.records import Point, TrialRecord
from ..services.spec import Provider, Smtp
from ..store.folder import RunFolder
from .around import refusals
from .facade import Request, mode_of
from .lane import Lane
from .overlay import DJANGO_VARIABLE
from .promises import filled_once
from .queue import QueueMode
from .recordings import recorded_of
from .rig import Rig
from .stage import Stage
from .trial import Mode

READS = "reads"
SHOWN_BODY = 200


@dataclass(frozen=True, slots=True)
class Host:
    """One upstream, as the job used it."""

    name: str
    kind: str
    server: str
    """`redis 7.0.15 (found: /usr/bin/redis-server)`; empty for a stand-in."""
    sent: int
    """Messages that the job's processes sent there while it ran."""


@dataclass(frozen=True, slots=True)
class Read:
    """One variable that the app's code reads."""

    name: str
    where: str
    """`config/settings/base.py:63`."""
    set_by: str
    """`rig`, or empty: the app's own default holds."""


@dataclass(slots=True)
class Probe:
    """What one clean job showed."""

    subject: str
    mode: str
    system: str
    folder: Path
    """Of the run: the output of every process."""
    seconds: float = 0.0
    hosts: list[Host] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    """Sentences on hosts that are neither tapped nor declared."""
    reads: list[Read] = field(default_factory=list)
    never_read: list[str] = field(default_factory=list)
    """Variables of the rig that nothing read."""
    points: list[tuple[str, str]] = field(default_factory=list)
    """Name and line of code."""
    effects: list[tuple[str, int, str]] = field(default_factory=list)
    """Name, how often, and the first one's body."""
    paste: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problem: str = ""
    """Why the clean run was none."""


async def probe(request: Request, bus: Bus) -> Probe:
    """Runs the request's only job twice without a fault: the first warms up, the second is told.

    Raises what a run raises: UsageError, ServiceError, WorkerError, CaseError.
    """
    (job,) = request.jobs
    rig = replace(request.rig, env={**request.rig.env, "JOBCHECK_READS": f"{{folder}}/{READS}", "JOBCHECK_ROOT": ""})
    rig.env = {**rig.env, "JOBCHECK_ROOT": str(rig.folder)}
    folder = RunFolder.create(request.reports, f"probe-{job.subject}")
    logs = folder.path / "output"
    logs.mkdir(exist_ok=True)
    with folder:
        async with Stage(seed=request.seed, bus=bus, logs=logs) as stage, Lane(stage, rig, 0) as lane:
            mode = mode_of(replace(request, rig=rig), lane, job)
            found = Probe(job.subject, mode.name, rig.system.name, folder.path)
            try:
                await _look(found, mode, lane)
            finally:
                await mode.close()
                _reads(found, request.rig, lane.folder / READS)
    return found


async def _look(found: Probe, mode: Mode, lane: Lane) -> None:
    try:
        await mode.open()
        warm_up = await mode.run("warm-up")
        trial = await mode.run("recording") if not warm_up.problems else warm_up
    except JobcheckError as error:
        if not lane.stage.proxy.refused:
            raise
        found.problem = error.message
        found.foreign = refusals(lane)
        return
    found.seconds = trial.seconds
    _hosts(found, trial, lane)
    found.foreign = [one for one in trial.problems if "around the taps" in one or "was refused" in one]
    found.foreign += [one for one in refusals(lane) if one not in found.foreign]
    found.problem = "; ".join(one for one in trial.problems if one not in found.foreign) or trial.unsettled
    one = recorded_of(mode, trial)
    found.points = [(pointing.name(point) + _role(point), point.code) for point in one.points]
    clean = clean_of([trial])
    for name, times in clean.counts().items():
        body = next(effect.body for effect in clean.effects if effect.name == name)
        found.effects.append((name, times, body[:SHOWN_BODY]))
    found.paste = lines_to_paste(clean, {name: spec.kind for name, spec in lane.rig.upstreams.items()})
    found.notes = [*lane.trace.notes, *filled_once(mode, [warm_up, trial])]
    if isinstance(mode, QueueMode):
        found.notes.insert(0, f"Celery {mode.settings.version}: {mode.settings.says}")


def _role(point: Point) -> str:
    says = {
        "reserve": "reserves the job",
        "ack": "acknowledges it",
        "enqueue": "a follow-up job",
        "result": "its result",
    }
    return f" ({says[point.role]})" if point.role in says else ""


def _hosts(found: Probe, trial: TrialRecord, lane: Lane) -> None:
    for name, spec in lane.rig.upstreams.items():
        sent = sum(op.upstream == name and op.way == "out" and op.worker != "producer" for op in trial.operations)
        service = lane.services.get(name)
        server = f"{service.kind} {service.version} ({service.origin})" if service else ""
        if isinstance(spec, Provider | Smtp):
            server = f"a stand-in for {'an HTTP provider' if isinstance(spec, Provider) else 'a mail server'}"
        found.hosts.append(Host(name, spec.kind, server, sent))


def _reads(found: Probe, rig: Rig, file: Path) -> None:
    """What the app's processes noted of the variables that they read."""
    first: dict[str, str] = {}
    lines = file.read_text("utf-8", "replace").splitlines() if file.is_file() else []
    for line in lines:
        name, _, rest = line.partition("\t")
        first.setdefault(name, rest.partition("\t")[2])
    ours = {name for name in rig.env if not name.startswith("PYTHON")}
    first.pop(DJANGO_VARIABLE, None)  # the rig's overlay names it
    found.reads = [Read(name, first[name], "rig" if name in ours else "") for name in sorted(first)]
    found.never_read = sorted(name for name in ours if name not in first)
