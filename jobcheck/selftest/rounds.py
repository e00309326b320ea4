"""The rounds of the self-test: explore everything that is planted, compare, and keep what differs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..clock import REAL
from ..errors import Aborted, JobcheckError
from ..events import Bus
from ..history.report import Report
from ..runner import facade
from ..runner.facade import Job, Request, Result
from ..runner.rig import load_rig
from ..runner.samples import sample
from .compare import Compared, compare
from .kinds import HANDLER_MODE, MODES, Planted
from .planted import PLANTED


@dataclass(frozen=True, slots=True)
class Round:
    """One round: every planted handler once in each of its modes."""

    number: int
    seed: int
    compared: tuple[Compared, ...]
    seconds: float
    result: Result | None = None
    """None when the round broke off."""
    broke: str = ""
    """Why it broke off."""

    @property
    def good(self) -> bool:
        return not self.broke and all(item.good for item in self.compared)

    def discard(self) -> None:
        """Removes the run folder: of a round that came out as planted there is nothing to read."""
        if self.result is not None:
            shutil.rmtree(self.result.folder.path, ignore_errors=True)


def planted_in(modes: Sequence[str], only: Sequence[str] = ()) -> list[tuple[Planted, str]]:
    """The explorations of one round: what is planted, by mode; `only` names handlers."""
    return [
        (planted, mode)
        for mode in modes
        for planted in PLANTED
        if mode in planted.modes and (not only or planted.name in only)
    ]


def request_for(
    seed: int, modes: Sequence[str] = MODES, *, reports: Path = Path("reports"), only: Sequence[str] = ()
) -> Request:
    """One round as a run; its report says of each subject whether it came out as planted."""
    path = sample("apps", "selftest", "rig.py")
    reference = f"{path}:club"
    jobs = [_job(str(path), planted, mode) for planted, mode in planted_in(modes, only)]
    return Request(
        command="jobcheck selftest",
        rig=load_rig(reference),
        rig_reference=reference,
        jobs=jobs,
        name="selftest",
        seed=seed,
        reports=reports,
        finish=finish,
    )


def _job(path: str, planted: Planted, mode: str) -> Job:
    function, handler = f"{path}:enqueue_{planted.kind}_{planted.name}", ""
    if mode == HANDLER_MODE:
        function, handler = f"{path}:member", f"club.{planted.kind}:{planted.name}"
    job = Job(planted.name, mode, function, handler, planted.contracts, faults=planted.faults)
    return replace(job, max_points=planted.strikes)


def compared(report: Report) -> list[Compared]:
    """Each subject of a round beside what is planted."""
    by_name = {planted.name: planted for planted in PLANTED}
    return [compare(by_name[subject.name], subject) for subject in report.subjects]


def finish(report: Report) -> Report:
    """The report of a round: each subject says what came out, and all is well when nothing differs."""
    results = compared(report)
    subjects = tuple(
        replace(subject, expected="as planted" if item.good else "; ".join(item.differences))
        for subject, item in zip(report.subjects, results, strict=True)
    )
    return replace(report, subjects=subjects, verdict="ok" if all(item.good for item in results) else "broken")


def play(
    number: int,
    modes: Sequence[str] = MODES,
    *,
    seed: int,
    reports: Path,
    bus: Bus,
    only: Sequence[str] = (),
) -> Round:
    """Plays one round, with servers of its own. A round that breaks off is told as one.

    Raises Aborted on Ctrl-C, on SIGTERM and when the disk is full.
    """
    request = request_for(seed, modes, reports=reports, only=only)
    started = REAL.now()
    try:
        result = facade.run(lambda: facade.explore(request, bus))
    except Aborted:
        raise
    except JobcheckError as error:
        return Round(number, seed, (), REAL.now() - started, broke=str(error))
    return Round(number, seed, tuple(compared(result.report)), REAL.now() - started, result)
