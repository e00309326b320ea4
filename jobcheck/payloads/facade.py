"""What the faces call: record the payloads of an app, check those of one version against another."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..clock import REAL
from ..errors import EXIT_BROKEN, EXIT_OK, EXIT_UNKNOWN, CaseError, UsageError, WorkerError
from ..events import Bus, PhaseStarted
from ..runner.rig import Rig
from ..runner.stage import Stage
from ..runner.versions import WORKING_TREE, Version, current_name, version_of
from ..store.files import write_whole
from ..store.folder import RunFolder, slug
from . import payload as files
from .broker import WIRES
from .check import Answer, Asked, Row, both_ways, verdict_of
from .content import Concern
from .floor import Floor
from .judge import Verdict
from .payload import Kept, Payload
from .record import Recording, concerns_of, payloads_of, record

RESULT = "payloads.json"
"""The result of a check in its run folder."""


@dataclass(slots=True)
class RecordRequest:
    """`jobcheck payloads record`."""

    rig: Rig
    functions: Sequence[str] = ()
    """Enqueue functions; none: all of the rig's file that take a case."""
    into: Path = Path("payloads")
    version: str = ""
    """Empty: the git revision of the app's folder."""
    within: float = 30.0
    """Seconds that the jobs of one function may take."""
    seed: int = 0
    reports: Path = Path("reports")
    """Where the output of all processes goes, in a run folder."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded."""

    version: str
    recordings: Sequence[Recording]
    kept: Sequence[Kept]
    concerns: Sequence[tuple[Payload, Concern]]
    seconds: float

    @property
    def exit_code(self) -> int:
        return EXIT_OK if self.kept else EXIT_UNKNOWN


@dataclass(slots=True)
class CheckRequest:
    """`jobcheck payloads check`."""

    rig: Rig
    payloads: Path = Path("payloads")
    against: str = ""
    """The older version: a name in `payloads`, a folder, a git revision, an interpreter, or `NAME=` and one of the last
    three for both; empty: the one recorded last."""
    against_python: str = ""
    code: str = ""
    """The newer version's code: a folder or a git revision; empty: the rig's own."""
    functions: Sequence[str] = ()
    """Enqueue functions; none: those that the stored payloads name, else all of the rig's file."""
    tasks: Sequence[str] = ()
    """Only these, by name or its last part; none: all."""
    prepare: str = ""
    base: Path = field(default_factory=Path.cwd)
    within: float = 10.0
    """Seconds that one job may take."""
    seed: int = 0
    reports: Path = Path("reports")
    """Where the result and the output of all processes go, in a run folder."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found."""

    old: str
    new: str
    rows: Sequence[Row]
    concerns: Sequence[tuple[Payload, Concern]]
    notes: Sequence[str]
    boot: float
    """Seconds until both versions were up."""
    seconds: float
    folder: Path
    """The run folder, with `payloads.json` and the output of all processes."""

    @property
    def exit_code(self) -> int:
        """0 all ok, 1 something is broken or lost, 2 something is not known."""
        verdicts = {answer.judgement.verdict for row in self.rows for answer in row.answers}
        if verdicts & {Verdict.BROKEN, Verdict.LOST}:
            return EXIT_BROKEN
        return EXIT_UNKNOWN if not verdicts or Verdict.UNKNOWN in verdicts else EXIT_OK

    def to_json(self) -> dict[str, Any]:
        """The result as data, for `payloads.json`; a direction that was not checked is null."""

        def told(answers: Sequence[Answer]) -> dict[str, Any] | None:
            verdict = verdict_of(answers)
            if verdict is None:
                return None
            worst = next(answer for answer in answers if answer.judgement.verdict is verdict)
            judgement = worst.judgement
            return {
                "verdict": str(verdict),
                "payload": worst.payload.id,
                "fault": str(judgement.fault),
                "reason": judgement.reason,
                "line": judgement.line,
                "advice": worst.advice,
            }

        return {
            "format": 1,
            "old": self.old,
            "new": self.new,
            "exit": self.exit_code,
            "tasks": [
                {
                    "task": row.task,
                    "old_payload_new_worker": told(row.forward),
                    "new_payload_old_worker": told(row.backward),
                    "differences": list(row.differences),
                    "renamed": row.renamed,
                }
                for row in self.rows
            ],
            "concerns": [
                {"task": payload.task, "kind": one.kind, "where": one.where, "evidence": one.evidence}
                for payload, one in self.concerns
            ],
            "notes": list(self.notes),
            "seconds": round(self.seconds, 2),
        }


async def record_payloads(request: RecordRequest, bus: Bus) -> Recorded:
    """Runs each function once and writes the payloads that were seen. Raises UsageError for a version with no name."""
    _supported(request.rig)
    started = REAL.now()
    functions = request.functions or case_functions(request.rig)
    version = request.version or current_name(request.rig)
    if not version:
        raise UsageError(
            f"no name for this version: {request.rig.folder} is in no git repository with a commit",
            hint="--version v1",
        )
    folder = RunFolder.create(request.reports, "payloads-record")
    async with Stage(seed=request.seed, bus=bus, logs=folder.path / "output") as stage:
        bus.emit(PhaseStarted(f"booting version {version}"))
        async with Floor(stage, request.rig, Version(version), 0) as floor:
            recordings = [await record(floor, function, within=request.within) for function in functions]
    payloads = payloads_of(recordings)
    kept = files.write(request.into, payloads)
    return Recorded(version, recordings, kept, concerns_of(payloads), REAL.now() - started)


async def check_payloads(request: CheckRequest, bus: Bus) -> Checked:
    """Replays the payloads of the older version on workers of the newer one and, where the older one's code is at
    hand, the reverse. Raises UsageError when there is nothing to replay."""
    _supported(request.rig)
    started = REAL.now()
    folder = RunFolder.create(request.reports, "payloads-check")
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(Stage(seed=request.seed, bus=bus, logs=folder.path / "output"))
        new, old, stored, notes = _versions(request, stage.folder / "code")
        names = " and ".join(version.name for version in (old, new) if version is not None)
        bus.emit(PhaseStarted(f"booting {names}"))
        floors = await _open(stack, stage, request.rig, new, old, notes)
        boot = REAL.now() - started
        functions = request.functions or _functions_of(stored) or case_functions(request.rig)
        bus.emit(PhaseStarted("recording and replaying payloads"))
        old_payloads, new_payloads = await _payloads(floors, stored, functions, request.within, notes)
        old_payloads, new_payloads = (_only(found, request.tasks) for found in (old_payloads, new_payloads))
        if not old_payloads:
            raise UsageError(
                "there is no payload of the older version to replay"
                + (f" ({'; '.join(notes)})" if notes else "")
                + (f" of {', '.join(request.tasks)}" if request.tasks else ""),
                hint="jobcheck payloads record, in the older version",
            )
        asked = Asked(request.prepare, request.within)
        rows = await both_ways(old_payloads, new_payloads, floors[0], floors[1], asked)
    old_name = old.name if old is not None else stored[0].version
    concerns = concerns_of([*new_payloads, *old_payloads])
    checked = Checked(old_name, new.name, rows, concerns, notes, boot, REAL.now() - started, folder.path)
    write_whole(folder.path / RESULT, json.dumps(checked.to_json(), indent=2, ensure_ascii=False) + "\n")
    return checked


async def _open(
    stack: AsyncExitStack, stage: Stage, rig: Rig, new: Version, old: Version | None, notes: list[str]
) -> tuple[Floor, Floor | None]:
    """Both floors, booted side by side. An older version that does not boot is a note, and is done without."""

    async def opened(version: Version, number: int) -> Floor:
        floor = Floor(stage, rig, version, number)
        await stack.enter_async_context(floor)
        return floor

    if old is None:
        return await opened(new, 0), None
    first, second = await asyncio.gather(opened(new, 0), opened(old, 1), return_exceptions=True)
    if isinstance(first, BaseException):
        raise first
    if isinstance(second, WorkerError | CaseError):
        notes.append(f"workers of {old.name} do not start here: {second.message}")
        return first, None
    if isinstance(second, BaseException):
        raise second
    return first, second


async def _payloads(
    floors: tuple[Floor, Floor | None],
    stored: list[Payload],
    functions: Sequence[str],
    within: float,
    notes: list[str],
) -> tuple[list[Payload], list[Payload]]:
    """Those of the older version (stored, else recorded now), and those of the newer one, recorded now."""

    async def recorded(floor: Floor) -> list[Payload]:
        found = [await record(floor, function, within=within) for function in functions]
        for one in found:
            notes.extend(f"{floor.version.name}, {one.function}: {text}" for text in (one.problem, *one.notes) if text)
        return payloads_of(found)

    new, old = floors
    if stored or old is None:
        return stored, await recorded(new)
    before, after = await asyncio.gather(recorded(old), recorded(new))
    return before, after


def _versions(request: CheckRequest, temp: Path) -> tuple[Version, Version | None, list[Payload], list[str]]:
    """The newer version, the older one's code if it is at hand, its stored payloads, and notes."""
    rig, base = request.rig, request.base
    notes: list[str] = []
    new = version_of(request.code, rig, base=base, temp=temp) if request.code else Version(WORKING_TREE)
    name, given, where = request.against.partition("=")
    stored = files.read(request.payloads, name) if not name or slug(name) in files.versions(request.payloads) else []
    if not name and not stored:
        raise UsageError(
            f"no recorded payloads in {request.payloads}, and --against names no older version",
            hint="jobcheck payloads record, and commit what it writes; or --against REVISION",
        )
    name = name or stored[0].version
    python = request.against_python
    try:
        return new, version_of(where or name, rig, base=base, temp=temp, name=name, python=python), stored, notes
    except UsageError:
        if given or not stored:
            raise
        notes.append(
            f"the code of {name} is not at hand, so new payloads were not tried on old workers "
            f"(--against {name}=FOLDER or {name}=REVISION)"
        )
        return new, None, stored, notes


def _functions_of(stored: Sequence[Payload]) -> list[str]:
    return list(dict.fromkeys(payload.function for payload in stored))


def _only(payloads: Sequence[Payload], tasks: Sequence[str]) -> list[Payload]:
    wanted = set(tasks)
    return [one for one in payloads if not wanted or one.task in wanted or one.task.rpartition(".")[2] in wanted]


def _supported(rig: Rig) -> None:
    if rig.system.name not in WIRES:
        raise UsageError(f"payloads are understood of {' and '.join(WIRES)}, and the rig's system is {rig.system.name}")


def case_functions(rig: Rig) -> list[str]:
    """The functions at the top of the rig's file whose only argument is `case`. Raises UsageError when there is none.

    They are read from the source: the file's functions belong to the app and are not run here.
    """
    names = []
    if rig.file:
        for node in ast.parse(Path(rig.file).read_bytes(), rig.file).body:
            if isinstance(node, ast.FunctionDef) and [one.arg for one in node.args.args] == ["case"]:
                names.append(node.name)
    if not names:
        raise UsageError(
            f"no enqueue function: {rig.file or 'the rig'} has no function whose argument is 'case'",
            hint="name one: jobcheck payloads record tests/rig.py:new_invoice",
        )
    return [name for name in names if not name.startswith("_")]


__all__ = [
    "Answer",
    "CheckRequest",
    "Checked",
    "Concern",
    "Payload",
    "RecordRequest",
    "Recorded",
    "Row",
    "case_functions",
    "check_payloads",
    "record_payloads",
    "verdict_of",
]
