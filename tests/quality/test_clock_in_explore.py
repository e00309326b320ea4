"""Exploring on a faster clock: retries of minutes are waited for, and a bug that only the clock shows is found."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import jobcheck
from jobcheck.checks.contracts import exactly_once
from jobcheck.events import Bus, PointsFound
from jobcheck.history.ids import short_id
from jobcheck.history.report import SubjectReport
from jobcheck.runner import facade
from jobcheck.runner.facade import Job, Request
from jobcheck.runner.rig import load_rig
from jobcheck.runner.samples import sample

pytestmark = pytest.mark.timeout(300)
PATH = sample("apps", "invoices", "rig.py")
CHARGES = "payments POST /charges"
RETRIES = "shop.claims.{} retries after 60 s and more (retry_backoff)"


def run(name: str, reports: Path, *, keys_for: str = "24h") -> tuple[SubjectReport, str]:
    """PostgreSQL refuses to commit the record of the charge that was just made; and the estimate. The provider
    remembers keys for so long."""
    reference = f"{PATH}:shop"
    rig = load_rig(reference)
    payments = jobcheck.provider(idempotency="Idempotency-Key", idempotency_for=keys_for)
    commit = short_id("db", "postgres COMMIT", 2, "request")
    only = short_id(f"{name}/celery-redis", commit, "error-reply 40001", "before")
    request = Request(
        command="test",
        rig=replace(rig, upstreams={**rig.upstreams, "payments": payments}),
        rig_reference=reference,
        jobs=[Job(name, "queue", f"{PATH}:{name}", "", (exactly_once(CHARGES),), only=only)],
        reports=reports,
        faults=("reset",),
        verify=1,
        speed=100.0,
        seed=5,
    )
    told: list[str] = []
    bus = Bus()
    bus.subscribe(lambda event: told.append(event.takes) if isinstance(event, PointsFound) else None)
    report = facade.run(lambda: facade.explore(request, bus)).report
    assert report.environment["clock"] == "100 times as fast (libfaketime)"
    return report.subjects[0], told[0]


def test_a_claim_that_ends_before_the_retries_do_is_found_by_the_clock(tmp_path: Path) -> None:
    """The charge was made, its record was not, and whoever comes after 60, 180 and 420 s finds the claim: 900 s."""
    item, takes = run("charge_claimed", tmp_path)
    (strike,) = item.strikes
    assert (strike.fired, strike.verdict, strike.layer) == (True, "duplicated", "handler"), item.problem
    assert strike.seconds >= 9, "the clock goes no faster than it was told"
    assert RETRIES.format("charge_claimed") in takes
    assert "each after 0.6 s of real time at speed 100" in takes
    assert re.match(r"about \d+ s, and (9|1\d) s where all retries are needed; ", takes), takes
    assert any(re.match(r"clock: [\d.]+ s of work x 100 = [\d.]+ s of the job's own time", note) for note in item.notes)
    assert item.notes[0].startswith("clock: workers, producers, brokers and databases live 100 times as fast")
    (finding,) = item.findings
    assert finding.effect == CHARGES
    assert max(line.at for line in finding.story) >= 900, "times in the story are the job's own"


def test_a_charge_that_the_provider_recognises_stands_the_same_strike(tmp_path: Path) -> None:
    item, _ = run("charge_claimed_with_key", tmp_path)
    (strike,) = item.strikes
    assert (strike.fired, strike.verdict) == (True, "ok"), item.problem
    assert item.findings == ()
    assert strike.seconds >= 9


def test_a_key_that_the_provider_forgets_before_the_last_retry_charges_again(tmp_path: Path) -> None:
    """Keys of two minutes, and a retry after 900 s: the same key, and a second charge. The key must be over long before
    the claim of ten minutes: on a busy machine an earlier retry may come that late."""
    item, _ = run("charge_claimed_with_key", tmp_path, keys_for="2m")
    (strike,) = item.strikes
    assert (strike.fired, strike.verdict, strike.layer) == (True, "duplicated", "handler"), item.problem
    (finding,) = item.findings
    assert finding.effect == CHARGES
    assert "the provider had forgotten it by then" in finding.advice
    assert max(line.at for line in finding.story) >= 900
