"""Striking every point against kill -9 at random times, on the same job, until the double charge is seen.

    python tests/benchmarks/bench_random.py [--seeds 5] [--most 200]

Both run the handler of the shop's `marker_after` in forks behind the same taps; the random killer draws a time within
the job's own duration. Runs and seconds, per seed and as medians.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import statistics
import tempfile
from pathlib import Path

from machine import head, row

from jobcheck.checks.contracts import at_least_once, exactly_once
from jobcheck.clock import REAL
from jobcheck.events import Bus
from jobcheck.runner import facade
from jobcheck.runner.facade import Job, Request
from jobcheck.runner.handler import HandlerMode
from jobcheck.runner.lane import Lane
from jobcheck.runner.rig import load_rig
from jobcheck.runner.samples import sample
from jobcheck.runner.stage import Stage
from jobcheck.seeds import Seeds
from jobcheck.workers import platform

PATH = sample("apps", "invoices", "rig.py")
HANDLER = "shop.variants:charge_and_mail_marker_after"


async def random_kills(seed: int, most: int, folder: Path) -> tuple[int, float]:
    """Runs and seconds until two charges of one case are seen; `most` runs without one count as `most`."""
    rig = load_rig(f"{PATH}:shop")
    draw = Seeds(seed).stream("random kills")
    async with Stage(seed=seed, bus=Bus(), logs=folder) as stage, Lane(stage, rig, 0) as lane:
        mode = HandlerMode(lane, "random", HANDLER, f"{PATH}:invoice_row")
        await mode.open()
        slot, agent = lane.kept["handler"]
        await mode.run("warm-up")
        began = REAL.now()
        await mode.run("warm-up")
        length = REAL.now() - began
        began = REAL.now()
        for number in range(1, most + 1):
            since = await lane.prime()
            case = await lane.new_case(mode.case)
            pid = await agent.fork(HANDLER, [case.value], {})
            await asyncio.sleep(draw.uniform(0, length))
            platform.send(pid, signal.SIGKILL)
            await agent.exit_of(pid)
            await slot.cut()
            again = await agent.fork(HANDLER, [case.value], {})
            await agent.exit_of(again)
            effects, _ = await lane.effects(since, case.record)
            if sum(effect.applied and effect.name.startswith("payments") for effect in effects) > 1:
                return number, REAL.now() - began
        return most, REAL.now() - began


def every_point(folder: Path) -> tuple[int, float]:
    """Strikes and seconds of one whole exploration, recordings included."""
    contracts = (exactly_once("payments POST /charges"), at_least_once("mail"))
    request = Request(
        command="bench",
        rig=load_rig(f"{PATH}:shop"),
        jobs=[Job("all", "handler", f"{PATH}:invoice_row", HANDLER, contracts)],
        reports=folder,
        lanes=1,
        verify=1,
    )
    report = facade.run(lambda: facade.explore(request, Bus())).report
    assert any(finding.verdict == "duplicated" for finding in report.subjects[0].findings)
    return len(report.subjects[0].strikes), report.subjects[0].seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--most", type=int, default=200)
    given = parser.parse_args()
    head("until the double charge is seen", "runs of the job", "seconds")
    with tempfile.TemporaryDirectory() as name:
        strikes, seconds = every_point(Path(name))
        row("every point, from the start of the app on", strikes, f"{seconds:.1f}")
        runs, times = [], []
        for seed in range(given.seeds):
            count, took = asyncio.run(random_kills(seed, given.most, Path(name)))
            runs.append(count)
            times.append(took)
            row(f"kill -9 at random, seed {seed}", count if count < given.most else f"{count}, not seen", f"{took:.1f}")
        row("kill -9 at random, median", f"{statistics.median(runs):g}", f"{statistics.median(times):.1f}")


if __name__ == "__main__":
    main()
