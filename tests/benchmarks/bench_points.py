"""Strikes per second, by mode, boot and lanes: one right job of the sample shop, explored again and again.

    python tests/benchmarks/bench_points.py [--subjects 6]

Rates count every trial of the exploration (warm-up and recordings too), services and first boots left out. Read ratios
within one run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from jobcheck.checks.contracts import at_least_once, exactly_once
from jobcheck.clock import REAL
from jobcheck.events import Bus, Event, StrikeDone
from jobcheck.runner import facade
from jobcheck.runner.facade import Job, Request
from jobcheck.runner.rig import load_rig
from jobcheck.runner.samples import sample

CONTRACTS = (exactly_once("payments POST /charges"), at_least_once("mail"))
PATH = sample("apps", "invoices", "rig.py")


@dataclass(frozen=True)
class Way:
    name: str
    mode: str
    lanes: int
    boot: str = "zygote"
    rig: str = "shop"


WAYS = [
    Way("handler, 1 lane", "handler", 1),
    Way("handler, 3 lanes", "handler", 3),
    Way("queue on Redis, cold", "queue", 1, "cold"),
    Way("queue on Redis, standby", "queue", 1, "standby"),
    Way("queue on Redis, zygote and standby", "queue", 1),
    Way("queue on Redis, zygote, 2 lanes", "queue", 2),
    Way("queue on RabbitMQ, zygote", "queue", 1, rig="shop_on_rabbitmq"),
]


def rate(way: Way, subjects: int) -> float:
    """Strikes per second between the first and the last one."""
    times: list[float] = []
    bus = Bus()

    def listen(event: Event) -> None:
        if isinstance(event, StrikeDone):
            times.append(REAL.now())

    bus.subscribe(listen)
    if way.mode == "handler":
        jobs = [
            Job(f"b{at}", "handler", f"{PATH}:invoice_row", "shop.variants:charge_and_mail_locked", CONTRACTS)
            for at in range(subjects * 2)
        ]
    else:
        contracts = (*CONTRACTS,)
        jobs = [Job(f"b{at}", "queue", f"{PATH}:new_invoice_locked", "", contracts) for at in range(subjects)]
    with tempfile.TemporaryDirectory() as folder:
        request = Request(
            command="bench",
            rig=load_rig(f"{PATH}:{way.rig}"),
            jobs=jobs,
            reports=Path(folder),
            lanes=way.lanes,
            boot=way.boot,
            verify=1,
        )
        facade.run(lambda: facade.explore(request, bus))
    return (len(times) - 1) / (times[-1] - times[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subjects", type=int, default=6)
    subjects = parser.parse_args().subjects
    base = 0.0
    for way in WAYS:
        found = rate(way, subjects)
        if way.name == "queue on Redis, cold":
            base = found
        ratio = f"  {found / base:5.1f}x cold" if way.mode == "queue" else ""
        sys.stdout.write(f"{way.name:<36} {found:6.1f} strikes/s{ratio}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
