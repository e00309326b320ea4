"""Strikes per second, by app, mode, boot and lanes: one right job, explored again and again.

    python tests/benchmarks/bench_points.py [WORD ...]

WORD chooses the rows that contain it. Rates count all that an exploration does between its first strike and its last
(the warm-ups and recordings of the next ones too); services and first boots are left out. Where the machine is busy,
the CPU time tells more: of jobcheck's own process, and of everything that it started (workers, app, servers; their
boots included), by strike. Read ratios within one run.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import big_app
from machine import head, row

from jobcheck.checks.contracts import at_least_once, exactly_once
from jobcheck.clock import REAL
from jobcheck.events import Bus, Event, StrikeDone
from jobcheck.runner import facade
from jobcheck.runner.facade import Job, Request
from jobcheck.runner.rig import load_rig
from jobcheck.runner.samples import sample

CONTRACTS = (exactly_once("payments POST /charges"), at_least_once("mail"))
SHOP = sample("apps", "invoices", "rig.py")
BIG, POOL = "Django, 50 models", "Django, a pool at import"


@dataclass(frozen=True)
class Way:
    app: str
    mode: str
    boot: str
    lanes: int
    subjects: int
    """Explorations, as many as take some seconds."""
    rig: str = "shop"


COLD = Way("shop", "queue on Redis", "cold", 1, 1)
WAYS = [
    COLD,
    Way("shop", "queue on Redis", "standby", 1, 2),
    Way("shop", "queue on Redis", "zygote", 1, 5),
    Way("shop", "queue on Redis", "zygote", 2, 8),
    Way("shop", "queue on RabbitMQ", "zygote", 1, 3, "shop_on_rabbitmq"),
    Way(BIG, "queue on Redis", "cold", 1, 1),
    Way(BIG, "queue on Redis", "zygote", 1, 4),
    Way(POOL, "queue on Redis", "zygote", 1, 1),
    Way("shop", "handler", "fork", 1, 15),
    Way("shop", "handler", "fork", 3, 30),
    Way(BIG, "handler", "fork", 1, 10),
]


@dataclass(frozen=True)
class Measured:
    rate: float
    own: float
    """Milliseconds of CPU of this process, by strike."""
    others: float
    """The same of what it started."""


def cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def jobs_of(way: Way, rig: Path) -> list[Job]:
    big = way.app != "shop"
    if way.mode == "handler":
        case, handler = (
            ("order", "big.tasks:charge") if big else ("invoice_row", "shop.variants:charge_and_mail_locked")
        )
        return [Job(f"b{at}", "handler", f"{rig}:{case}", handler, CONTRACTS) for at in range(way.subjects)]
    enqueue = "new_order" if big else "new_invoice_locked"
    return [Job(f"b{at}", "queue", f"{rig}:{enqueue}", "", CONTRACTS) for at in range(way.subjects)]


def measure(way: Way, folder: Path) -> Measured:
    """One run, from its first strike to its last."""
    rig = SHOP if way.app == "shop" else big_app.write(folder / "app", pool=way.app == POOL)
    times: list[float] = []
    own: list[float] = []
    bus = Bus()

    def listen(event: Event) -> None:
        if isinstance(event, StrikeDone):
            times.append(REAL.now())
            own.append(cpu(resource.RUSAGE_SELF))

    bus.subscribe(listen)
    before = cpu(resource.RUSAGE_CHILDREN)
    request = Request(
        command="bench",
        rig=load_rig(f"{rig}:{way.rig}"),
        jobs=jobs_of(way, rig),
        reports=folder / "reports",
        lanes=way.lanes,
        boot="zygote" if way.boot == "fork" else way.boot,
        verify=1,
    )
    facade.run(lambda: facade.explore(request, bus))
    between = len(times) - 1
    others = cpu(resource.RUSAGE_CHILDREN) - before
    return Measured(between / (times[-1] - times[0]), 1000 * (own[-1] - own[0]) / between, 1000 * others / len(times))


def main() -> None:
    words = sys.argv[1:]
    head("app", "mode", "boot", "lanes", "strikes/s", "to the shop's cold boots", "own CPU, ms", "CPU of the rest, ms")
    cold = 0.0
    for way in WAYS:
        text = " ".join((way.app, way.mode, way.boot, f"{way.lanes} lanes"))
        if words and not any(word in text for word in words):
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = measure(way, Path(folder))
        if way is COLD:
            cold = found.rate
        ratio = f"{found.rate / cold:.1f}x" if cold else "-"
        numbers = (f"{found.rate:.1f}", ratio, f"{found.own:.0f}", f"{found.others:.0f}")
        row(way.app, way.mode, way.boot, way.lanes, *numbers)


if __name__ == "__main__":
    main()
