"""The rounds of the self-test: explore everything that is planted, compare, and keep what differs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ..clock import REAL
from ..errors import Aborted, JobcheckError
from ..events import Bus
from ..history.report import Report
from ..runner import facade
from ..runner.facade import Request, Result
from ..runner.scenarios.campaign import run_scenarios
from ..services.find import faketime
from .asked import NO_CLOCK, requests
from .compare import Compared, compare
from .kinds import EXPLORED, MODES, SCENARIO_MODE, Planted
from .planted import PLANTED
from .runs import played_runs, runs_request


@dataclass(frozen=True, slots=True)
class Round:
    """One round: every planted handler once in each of its modes."""

    number: int
    seed: int
    compared: tuple[Compared, ...]
    seconds: float
    results: tuple[Result, ...] = ()
    """What was explored, a run for each rig of the app and each clock, and the scenarios; what the round has not come
    to when it broke off is missing."""
    broke: str = ""
    """Why it broke off."""

    @property
    def good(self) -> bool:
        return not self.broke and all(item.good for item in self.compared)

    def discard(self) -> None:
        """Removes the run folder: of a round that came out as planted there is nothing to read."""
        for result in self.results:
            shutil.rmtree(result.folder.path, ignore_errors=True)


def planted_in(modes: Sequence[str], only: Sequence[str] = ()) -> list[tuple[Planted, str]]:
    """The explorations and scenarios of one round: what is planted, by mode; `only` names handlers."""
    return [
        (planted, mode)
        for mode in modes
        for planted in PLANTED
        if mode in planted.modes and (not only or planted.name in only) and planted.name not in clockless()
    ]


def clockless(only: Sequence[str] = ()) -> list[str]:
    """Names of what is not played on this machine, because it has no faster clock."""
    return [] if faketime() else [one.name for one in PLANTED if one.speed != 1 and (not only or one.name in only)]


def request_for(
    seed: int, modes: Sequence[str] = EXPLORED, *, reports: Path = Path("reports"), only: Sequence[str] = ()
) -> Request:
    """The first run of one round's explorations; its report says of each subject whether it came out as planted."""
    return requests(planted_in(modes, only), seed, reports, finish)[0]


def _explored(
    seed: int, modes: Sequence[str], *, reports: Path, bus: Bus, only: Sequence[str]
) -> Iterator[tuple[Result, list[Compared]]]:
    """Run by run. Raises JobcheckError when it breaks off."""
    modes = [mode for mode in modes if mode != SCENARIO_MODE]
    for request in requests(planted_in(modes, only), seed, reports, finish):
        result = facade.run(partial(facade.explore, request, bus))
        yield result, compared(result.report)


def _ran(
    seed: int, modes: Sequence[str], *, reports: Path, bus: Bus, only: Sequence[str]
) -> Iterator[tuple[Result, list[Compared]]]:
    """The same for the scenarios."""
    planted = [one for one, _ in planted_in([SCENARIO_MODE] if SCENARIO_MODE in modes else [], only)]
    if planted:
        request = runs_request(planted, seed, reports=reports)
        result = facade.run(lambda: run_scenarios(request, bus))
        yield result, played_runs(planted, result.report)


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
    started = REAL.now()
    results: list[Result] = []
    items: list[Compared] = []
    broke = ""
    try:
        for part in (_explored, _ran):
            for result, found in part(seed, modes, reports=reports, bus=bus, only=only):
                results.append(result)
                items += found
    except Aborted:
        raise
    except JobcheckError as error:
        broke = str(error)
    return Round(number, seed, tuple(items), REAL.now() - started, tuple(results), broke)


__all__ = ["NO_CLOCK", "Round", "clockless", "compared", "finish", "planted_in", "play", "request_for"]
