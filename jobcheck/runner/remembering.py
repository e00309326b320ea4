"""Findings as the project remembers them, so that `replaying` makes the same exploration of them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..clock import REAL, iso
from ..faults.strikes import DEPLOY
from ..history.report import FindingReport
from ..store.failures import Failure
from .clocks import SPEED
from .explore import Exploration
from .leases import REAL_CLOCKS, YES
from .trial import Mode

if TYPE_CHECKING:
    from .facade import Job, Request

FOLLOW = "follow=yes"
"""How a remembered finding says that the jobs which the job causes were explored with it."""
AT = "at"
"""Among its options: the process of the rig that was struck in the worker's place."""


def remembered_as(request: Request, mode: Mode) -> str:
    """Two tests may explore one job with other contracts: each renews its own findings only."""
    return f"{mode.key}#{request.node}" if request.node else mode.key


def failure_of(request: Request, job: Job, mode: Mode, exploration: Exploration, finding: FindingReport) -> Failure:
    """All that it takes to run the finding again."""
    by_id = {strike.id: strike for trial in exploration.trials.values() if (strike := trial.strike) is not None}
    strikes = tuple(by_id[number] for number in finding.strikes)
    speed = f"{request.speed:g}" if request.speed != 1 else ""
    real = YES if request.real_clocks else ""
    further = ((DEPLOY, job.deploy), (AT, job.at), (SPEED, speed), (REAL_CLOCKS, real))
    points = {point.id: point for point in (*exploration.points, *exploration.looks)}
    return Failure(
        id=finding.id,
        subject=remembered_as(request, mode),
        mode=mode.name,
        rig=request.rig_reference,
        function=job.function,
        handler=job.handler,
        points=tuple(points[strike.point] for strike in strikes),
        strikes=strikes,
        contracts=tuple(contract.call for contract in job.contracts),
        options=(
            *filter(None, (job.assume, FOLLOW if job.follow else "")),
            *(f"{word}={said}" for word, said in further if said),
        ),
        node=request.node,
        seed=request.seed,
        command=finding.replay,
        layer=finding.layer,
        effect=finding.effect,
        verdict=finding.verdict,
        title=finding.title,
        code=finding.code,
        found=iso(REAL.wall()),
    )
