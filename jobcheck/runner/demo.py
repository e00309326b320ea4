"""The demo: the six variants of the sample shop's charge-and-mail job, in both modes, against what is planted."""

from __future__ import annotations

from dataclasses import replace

from ..checks.contracts import at_least_once, exactly_once
from ..history.report import Report, SubjectReport
from .facade import Job, Request
from .rig import load_rig
from .samples import sample

PLANTED = {
    "naive": 3,
    "marker_before": 2,
    "marker_after": 2,
    "lock_without_key": 2,
    "idempotent": 0,
    "locked": 0,
}
"""Kill points at which a variant breaks a contract (tap-notes 3.2)."""
TRANSPORT = 2
"""Kill points at which Celery on Redis loses any job: at the BRPOP reply, and before the reservation."""


def demo_request(seed: int) -> Request:
    """The run; its report says of each subject whether it came out as planted."""
    path = sample("apps", "invoices", "rig.py")
    reference = f"{path}:shop"
    contracts = (exactly_once("payments POST /charges"), at_least_once("mail"))
    handlers = [
        Job(variant, "handler", f"{path}:invoice_row", f"shop.variants:charge_and_mail_{variant}", contracts)
        for variant in PLANTED
    ]
    queues = [Job(variant, "queue", f"{path}:new_invoice_{variant}", "", contracts) for variant in PLANTED]
    return Request(
        command="jobcheck demo",
        rig=load_rig(reference),
        rig_reference=reference,
        jobs=[*handlers, *queues],
        name="demo",
        seed=seed,
        finish=compare,
    )


def bad_points(subject: SubjectReport, layer: str) -> int:
    """Strikes with a broken contract that are laid at this layer."""
    return sum(strike.layer == layer for strike in subject.strikes)


def compare(report: Report) -> Report:
    """Ok when every subject shows exactly what is planted, and nothing was left out."""
    subjects = []
    exact = True
    for subject in report.subjects:
        planted = PLANTED[subject.name]
        transport = TRANSPORT if subject.mode == "queue" else 0
        found = bad_points(subject, "handler")
        lost = bad_points(subject, "transport")
        others = bad_points(subject, "settings")
        good = (
            (found, lost, others) == (planted, transport, 0)
            and not subject.problem
            and subject.verdict != "unknown"
            and subject.coverage.exhausted
            and subject.coverage.fired == subject.coverage.strikes
        )
        exact = exact and good
        text = f"planted {planted}, found {found}"
        if lost != transport:
            text += f"; at the transport {transport}, found {lost}"
        subjects.append(replace(subject, expected=text))
    return replace(report, subjects=tuple(subjects), verdict="ok" if exact else "broken")
