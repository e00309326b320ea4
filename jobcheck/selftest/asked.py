"""What is planted as explorations: a run for each rig of the app and each clock, for a run has but one of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from ..explore.points import point_id
from ..history.ids import short_id
from ..history.report import Report
from ..runner.facade import Job, Request
from ..runner.rig import Rig, load_rig
from ..runner.samples import sample
from .kinds import HANDLER_MODE, PRODUCER_MODE, Planted

NO_CLOCK = "no libfaketime is here (apt-get install libfaketime), so nothing is played on a faster clock"
_SHAPES = {"db": "postgres", "broker": "redis", "payments": "http"}


def requests(
    planted: Iterable[tuple[Planted, str]], seed: int, reports: Path, finish: Callable[[Report], Report]
) -> list[Request]:
    """The runs of a round, in the order in which they are played."""
    path = sample("apps", "selftest", "rig.py")
    groups: dict[tuple[str, float], list[tuple[Planted, str]]] = {}
    for one, mode in planted:
        groups.setdefault((one.rig, one.speed), []).append((one, mode))
    out: list[Request] = []
    for (name, speed), members in groups.items():
        rig = load_rig(f"{path}:{name}")
        out.append(
            Request(
                command="jobcheck selftest",
                rig=rig,
                rig_reference=f"{path}:{name}",
                jobs=[_job(rig, one, mode) for one, mode in members],
                name="selftest" if len(groups) == 1 or not out else f"selftest-{name.removeprefix('club_')}",
                seed=seed,
                reports=reports,
                speed=speed,
                finish=finish,
            )
        )
    return out


def _job(rig: Rig, planted: Planted, mode: str) -> Job:
    function, handler = f"{rig.file}:enqueue_{planted.kind}_{planted.name}", ""
    if mode == HANDLER_MODE:
        function, handler = f"{rig.file}:member", f"club.{planted.kind}:{planted.name}"
    if mode == PRODUCER_MODE:
        function = f"{rig.file}:create_{planted.kind}_{planted.name}"
    job = Job(planted.name, mode, function, handler, planted.contracts, faults=planted.faults)
    deploy = str(rig.folder / planted.deploy) if planted.deploy else ""
    return replace(job, max_points=planted.strikes, deploy=deploy, only=_only(rig, planted))


def _only(rig: Rig, planted: Planted) -> str:
    """The id of its one strike; empty: all of its families."""
    if planted.only is None:
        return ""
    fault, message = planted.only
    name, _, nth = message.partition(" #")
    upstream, _, bare = name.partition(" ")
    point = point_id(upstream, f"{_SHAPES[upstream]} {bare}", int(nth or 1), "request")
    return short_id(f"{planted.name}/{rig.system.name}", point, fault, "before")
