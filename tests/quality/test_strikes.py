"""The sample shop under every strike: each bad one is where reasoning puts it, and the right jobs stand them all.

The expectations were worked out by hand from the order of the steps, as the table in the shop's `variants.py` shows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.checks.contracts import at_least_once, exactly_once
from jobcheck.events import Bus
from jobcheck.faults.strikes import FAMILIES
from jobcheck.history.report import Report, StrikeReport, SubjectReport
from jobcheck.runner import facade
from jobcheck.runner.facade import Job, Request
from jobcheck.runner.rig import load_rig
from jobcheck.runner.samples import sample

pytestmark = pytest.mark.timeout(600)
PATH = sample("apps", "invoices", "rig.py")
CONTRACTS = (exactly_once("payments POST /charges"), at_least_once("mail"))
EVERY = tuple(family for family in FAMILIES if family != "race")

CHARGED_TWICE = "payments POST /charges duplicated"
PG = ("error-reply 40001", "error-reply 57P01")

HANDLERS: dict[str, dict[str, set[str]]] = {
    # POST, COMMIT, MAIL: whatever breaks after the charge is charged again by the run that follows.
    "naive": {
        "payments": {"lose-reply", "zombie"},
        "db": {"kill", "lose-request", "lose-reply", "zombie", *PG},
        "mail": {
            "kill",
            "kill after",
            "lose-request",
            "lose-reply",
            "error-reply 451",
            "zombie",
            "duplicate afterwards",
        },
    },
    # COMMIT, POST, MAIL: whatever breaks after the marker is lost. Two at once: the second sees the first one's marker.
    "marker_before": {
        "db": {"lose-reply"},
        "payments": {"kill", "lose-request", "lose-reply", "error-reply 500"},
        "mail": {"kill", "lose-request", "error-reply 451"},
    },
    # POST, COMMIT, MAIL: charged again until the marker is there, the mail is lost from then on.
    "marker_after": {
        "payments": {"lose-reply", "zombie"},
        "db": {"kill", "lose-request", "lose-reply", "zombie", *PG},
        "mail": {"kill", "lose-request", "error-reply 451"},
    },
    # POST, MAIL, COMMIT: as naive, but a second run waits for the lock of the first, so two at once do no harm.
    "lock_without_key": {
        "payments": {"lose-reply"},
        "mail": {"kill", "lose-request", "lose-reply", "error-reply 451"},
        "db": {"kill", "lose-request", *PG},
    },
    "idempotent": {},
    "locked": {},
}
STRIKES = {"naive": 19, "lock_without_key": 19, "locked": 19}
"""The others look for their marker first: a further read, and so a further lost reply."""


def run(jobs: list[Job], rig: str, faults: tuple[str, ...], reports: Path) -> Report:
    reference = f"{PATH}:{rig}"
    request = Request(
        command="test",
        rig=load_rig(reference),
        rig_reference=reference,
        jobs=jobs,
        reports=reports,
        faults=faults,
        verify=1,
        seed=5,
    )
    return facade.run(lambda: facade.explore(request, Bus())).report


@pytest.fixture(scope="module")
def handlers(tmp_path_factory: pytest.TempPathFactory) -> Report:
    jobs = [
        Job(name, "handler", f"{PATH}:invoice_row", f"shop.variants:charge_and_mail_{name}", CONTRACTS)
        for name in HANDLERS
    ]
    return run(jobs, "shop", EVERY, tmp_path_factory.mktemp("handlers"))


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> SubjectReport:
    """The naive job on the broker that loses nothing."""
    job = Job("naive", "queue", f"{PATH}:new_invoice_naive", "", CONTRACTS)
    return run([job], "shop_on_rabbitmq", EVERY, tmp_path_factory.mktemp("wrong")).subjects[0]


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> SubjectReport:
    """The right job on the broker that does, struck by all that leaves the worker alive."""
    job = Job("idempotent", "queue", f"{PATH}:new_invoice_idempotent", "", CONTRACTS)
    faults = ("reset", "zombie", "duplicate")
    return run([job], "shop", faults, tmp_path_factory.mktemp("right")).subjects[0]


def subject(report: Report, name: str) -> SubjectReport:
    return next(item for item in report.subjects if item.name == name)


def told(strike: StrikeReport) -> str:
    return "kill after" if (strike.fault, strike.when) == ("kill", "after") else strike.fault


def bad(item: SubjectReport, layer: str = "handler") -> dict[str, set[str]]:
    """Strikes laid at this layer, by upstream."""
    upstreams = {point.id: point.upstream for point in item.points}
    found: dict[str, set[str]] = {}
    for strike in item.strikes:
        if strike.layer == layer:
            found.setdefault(upstreams[strike.point], set()).add(told(strike))
    return found


@pytest.mark.parametrize("name", HANDLERS)
def test_a_handler_breaks_at_the_strikes_that_its_order_of_steps_implies(handlers: Report, name: str) -> None:
    item = subject(handlers, name)
    assert item.problem == ""
    assert bad(item) == HANDLERS[name]
    assert item.coverage.fired == item.coverage.strikes == STRIKES.get(name, 20)
    assert item.coverage.exhausted


def test_one_cause_is_one_finding_whatever_shows_it(handlers: Report) -> None:
    findings = subject(handlers, "naive").findings
    assert [(item.effect, item.verdict) for item in findings] == [("payments POST /charges", "duplicated")]
    assert findings[0].title.startswith("payments POST /charges happens again when the worker dies after ")
    assert "; so do a lost reply or an error, " in findings[0].why


def test_a_right_job_stands_every_strike_through_a_queue_and_the_transport_alone_loses(
    right: SubjectReport,
) -> None:
    item = right
    assert item.problem == ""
    assert item.coverage.fired == item.coverage.strikes
    assert bad(item) == bad(item, "settings") == {}
    assert bad(item, "transport") == {
        "broker": {"lose-request", "lose-reply", "error-reply READONLY", "error-reply OOM"}
    }


def test_rabbitmq_loses_nothing_and_a_naive_job_is_run_twice_by_whatever_gives_it_out_again(
    wrong: SubjectReport,
) -> None:
    item = wrong
    assert item.problem == ""
    assert item.coverage.fired == item.coverage.strikes
    assert bad(item, "transport") == bad(item, "settings") == {}
    # A network error inside the job leaves it failed (no retries are set), so it is not charged twice.
    worker = {"kill", "kill-child", "kill-parent", "zombie", "term-group"}
    assert bad(item) == {
        "broker": {
            "kill",
            "kill-parent",
            "lose-request",
            "error-reply channel-close",
            "zombie",
            "duplicate afterwards",
            "duplicate beforehand",
        },
        "payments": {"kill-parent", "zombie", "term-group", "duplicate meanwhile"},
        "db": worker,
        "mail": worker,
    }


def test_sigterm_to_the_main_process_and_to_the_group_end_differently(wrong: SubjectReport) -> None:
    """As the delivery matrix has it: a warm shutdown finishes the job, a killed child gives it back."""
    verdicts = {told(strike): set[str]() for strike in wrong.strikes}
    for strike in wrong.strikes:
        verdicts[told(strike)].add(strike.verdict)
    assert verdicts["term"] == {"ok"}
    assert "duplicated" in verdicts["term-group"]


def test_what_was_left_failed_after_a_network_error_is_told(wrong: SubjectReport) -> None:
    assert any("the job was left failed, where a person can see it" in note for note in wrong.notes)
