"""Where a bad verdict is laid: at the handler, at the settings, or at the transport."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..checks.judge import Judgement
from ..explore.causes import HANDLER, SETTINGS, TRANSPORT
from ..explore.search import place_of
from ..faults.strikes import ORDER, SURVIVED, WEBHOOK, kind_of
from ..history.records import FINISHED, NEVER_PASS, NEXT_JOB, Point, Strike, TrialRecord, Verdict
from ..systems.contract import Blame
from .lane import CANARY
from .queue import QueueMode
from .telling import survived
from .trial import Mode


async def layer_of(
    mode: Mode,
    points: Sequence[Point],
    judgement: Judgement,
    trial: TrialRecord,
    keep: Callable[[TrialRecord], None],
) -> str:
    """Empty for a strike that ended well, or that nothing is known of. The trials of a canary go to `keep`."""
    if judgement.verdict is Verdict.OK or judgement.verdict in NEVER_PASS:
        return ""
    lost = all(item.verdict is Verdict.LOST or item.effect == NEXT_JOB for item in judgement.broken)
    if not isinstance(mode, QueueMode) or mode.at or not lost or trial.strike is None:
        return HANDLER
    if trial.ending is not None and all(item.effect == NEXT_JOB for item in judgement.broken):
        # Only the app's own handling of SIGTERM takes a job for done that was not: all else is the job system's.
        if trial.ending.took and not trial.ending.runs:
            return HANDLER
        if trial.ending.runs:
            return TRANSPORT
        return SETTINGS if mode.settings.guarantee == "at-most-once" else TRANSPORT
    if kind_of(trial.strike.fault) in (ORDER, WEBHOOK):
        return HANDLER  # nobody died, and nothing was lost on the way
    if survived(trial.strike, _point(points, trial.strike)) or _settled_it(trial, _point(points, trial.strike)):
        return HANDLER
    if not trial.deliveries_after:
        return blame(mode, points, trial.strike).layer
    if at_the_counter(points, trial.strike):
        return TRANSPORT
    return TRANSPORT if await _canary_is_lost(mode, points, trial.strike, keep) else HANDLER


def _settled_it(trial: TrialRecord, point: Point | None) -> bool:
    """Whether a worker that was told to end in the middle of its own steps said itself that the job is done."""
    return trial.ending is not None and trial.ending.job == FINISHED and point is not None and not point.broker


def at_the_counter(points: Sequence[Point], strike: Strike) -> bool:
    """Whether a part of a chord was struck when it had counted itself: its own code is done by then, and what starts
    the body, or does not, is the job system's."""
    point, place = _point(points, strike), place_of(strike, points)
    if point is None:
        return False
    mine = [one for one in points[:place] if one.job == point.job]
    counted = next((at for at, one in enumerate(mine) if one.role == "chord count"), -1)
    return counted >= 0 and all(one.role for one in mine[counted:])


def blame(mode: Mode, points: Sequence[Point], strike: Strike) -> Blame:
    """Whose fault it is when the job was not given out again after this strike, by the job system's own word."""
    assert isinstance(mode, QueueMode)
    place = place_of(strike, points)
    struck = _point(points, strike)
    mine = struck.job if struck is not None else ""
    if struck is not None and struck.role == "enqueue" and kind_of(strike.fault) in SURVIVED:
        return mode.system.blame_publish(mode.settings)
    passed = [point.role for point in points[:place] if point.job == mine]
    coming = points[place].role if place < len(points) and points[place].job == mine else ""
    return mode.system.blame_loss(passed, coming, mode.settings)


async def _canary_is_lost(
    mode: QueueMode, points: Sequence[Point], strike: Strike, keep: Callable[[TrialRecord], None]
) -> bool:
    """Whether a job without any code of the user's is lost at the same point of the broker too."""
    point = _point(points, strike)
    if point is None or not point.broker:
        return False
    canary = QueueMode(mode.lane, "canary", CANARY, safe=mode.safe, boot=mode.boot)
    await canary.open()
    try:
        clean = await canary.run("recording")
        struck = await canary.run("canary", strike, point)
    finally:
        await canary.close()
    for trial in (clean, struck):
        keep(trial)
    return struck.fired and bool(clean.effects) and not struck.effects


def _point(points: Sequence[Point], strike: Strike) -> Point | None:
    return next((point for point in points if point.id == strike.point), None)
