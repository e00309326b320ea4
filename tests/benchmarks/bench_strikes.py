"""Seconds for each kind of strike, beside those of a kill: one right job, in one run of each mode.

    python tests/benchmarks/bench_strikes.py

The seconds are a trial's own, from its begin to its end; the boot of the next worker, which goes on meanwhile, counts
where it is waited for. Read ratios within one run.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from machine import head, row

from jobcheck.checks.contracts import at_least_once, exactly_once
from jobcheck.events import Bus
from jobcheck.faults.strikes import FAMILIES, kind_of
from jobcheck.runner import facade
from jobcheck.runner.facade import Job, Request
from jobcheck.runner.rig import load_rig
from jobcheck.runner.samples import sample

CONTRACTS = (exactly_once("payments POST /charges"), at_least_once("mail"))
SHOP = sample("apps", "invoices", "rig.py")
WAYS = (("handler", "shop"), ("queue on Redis", "shop"), ("queue on RabbitMQ", "shop_on_rabbitmq"))
ALL = tuple(family for family in FAMILIES if family not in ("order", "webhook"))
"""The sample job is alone, so that it has no other order, and nobody calls back."""


def seconds(mode: str, rig: str, folder: Path) -> dict[str, list[float]]:
    """Those of each strike, by kind."""
    handler = "shop.variants:charge_and_mail_locked" if mode == "handler" else ""
    case = "invoice_row" if handler else "new_invoice_locked"
    job = Job("locked", mode.split()[0], f"{SHOP}:{case}", handler, CONTRACTS)
    loaded = load_rig(f"{SHOP}:{rig}")
    request = Request(command="bench", rig=loaded, jobs=[job], reports=folder, lanes=1, faults=ALL, verify=1)
    (subject,) = facade.run(lambda: facade.explore(request, Bus())).report.subjects
    if subject.problem:
        raise SystemExit(f"the run in {mode} broke off, and its numbers say nothing: {subject.problem}")
    found: dict[str, list[float]] = {}
    for strike in subject.strikes:
        found.setdefault(kind_of(strike.fault), []).append(strike.seconds)
    return found


def main() -> None:
    head("mode", "strike", "strikes", "median, s", "to a kill", "longest, s")
    with tempfile.TemporaryDirectory() as folder:
        for mode, rig in WAYS:
            found = seconds(mode, rig, Path(folder))
            kill = statistics.median(found["kill"])
            for kind, each in found.items():
                median = statistics.median(each)
                row(mode, kind, len(each), f"{median:.3f}", f"{median / kill:.1f}x", f"{max(each):.2f}")


if __name__ == "__main__":
    main()
