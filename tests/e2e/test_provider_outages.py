"""Providers that are out of order, under real workers: what each outage does to the jobs, and backoff that is none."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jobcheck.events import Bus
from jobcheck.runner.scenarios.campaign import run_scenario

APPS = Path(__file__).parents[2] / "scenarios" / "apps"


def run(folder: Path, enqueue: str, rest: str, count: int = 20) -> dict[str, Any]:
    """A scenario of the sample shop with seed 7; `rest` are its faults and what it expects beside one charge a case."""
    file = folder / "scenario.yaml"
    file.write_text(
        f"title: the shop\nrig: {APPS}/invoices/rig.py:shop\n"
        f"workload: {{enqueue: {enqueue}, count: {count}, rate: 10/s}}\n"
        f"faults:\n{rest.replace('EXPECT', 'expect:')}  - exactly_once: payments POST /charges\n"
    )
    (scenario,) = asyncio.run(run_scenario(file, Bus(), seed=7, reports=folder / "reports")).report.scenarios
    return scenario


def test_a_job_that_tries_again_at_once_is_red_though_every_charge_happens_once(tmp_path: Path) -> None:
    """A job that waits in a queue on a busy machine looks as if it waited on purpose, so it is asked for waits that no
    queue gives."""
    scenario = run(
        tmp_path,
        "charge_impatient",
        "  - {outage: payments, route: POST /charges, status: 503, first: 1 of each case, for: 6s}\nEXPECT\n"
        "  - backoff: {provider: payments, base: 60s, factor: 2, jitter: full, max_attempts: 9}\n",
    )
    backoff, once = scenario["expectations"]
    assert (backoff["held"], once["held"], scenario["verdict"]) == (False, True, "broken"), backoff["detail"]
    assert backoff["detail"].startswith("the waits are too short: ")
    assert scenario["providers"][0]["counted"] == 20
    assert 14 <= scenario["providers"][0]["refused"]["503"] <= 20


@pytest.mark.parametrize(("enqueue", "held"), [("charge_polite", True), ("charge_in_step", False)])
def test_who_is_asked_to_wait_longer_waits_longer(tmp_path: Path, enqueue: str, held: bool) -> None:
    """The one that does not read `Retry-After` comes after a second, and was asked for six."""
    scenario = run(
        tmp_path,
        enqueue,
        "  - {outage: payments, route: POST /charges, status: 429, retry_after: 6s, first: 1 of each case, for: 4s}\n"
        "EXPECT\n  - backoff: {provider: payments, base: 1s, jitter: 100%, retry_after: true}\n",
        count=6,
    )
    backoff, once = scenario["expectations"]
    assert (backoff["held"], once["held"]) == (held, True), backoff["detail"]
    assert held or "Retry-After had asked for 6 s" in backoff["detail"]


def test_every_way_to_fail_meets_the_jobs_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """The cases after the last outage charge at their first call; what a job cannot read is filed as failed."""
    outages = """\
  - {outage: payments, answer: hang, for: 400ms}
  - {outage: payments, answer: cut, first: 2, at: 500ms, for: 500ms}
  - {outage: payments, slow: 200ms, first: 2, at: 1s, for: 500ms}
  - {outage: payments, status: 500, counts: true, first: 2, at: 1500ms, for: 500ms}
  - {outage: payments, answer: garbage, first: 1, at: 2s, for: 300ms}
  - {toxic: reset_peer, point: payments POST /charges, stream: upstream, first: 2}
  - {toxic: latency, point: db COMMIT, latency: 300ms, first: 1 of each case, at: 1s, for: 1s}
  - {outage: payments, capacity: 2/s, queue: 0, beyond: 429, at: 2500ms, for: 500ms}
EXPECT
"""
    scenario = run(tmp_path, "charge_patient", outages, count=40)
    assert (scenario["verdict"], scenario["problem"]) == ("ok", ""), scenario["actions"]
    assert all(fault["met"] for fault in scenario["faults"])
    refused = scenario["providers"][0]["refused"]
    assert {"no answer", "connection closed", "429 beyond capacity"} <= set(refused)
    counts = scenario["counts"]
    assert counts["ok"] + counts["failed_visibly"] == 40
    assert counts["failed_visibly"] <= 1
    assert scenario["providers"][0]["counted"] == 40
