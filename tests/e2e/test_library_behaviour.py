"""What Celery does on Redis when a connection breaks, by name (tap-notes section 6), as a user's report shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobcheck.checks.contracts import exactly_once
from jobcheck.history.report import SubjectReport

from . import tiny

BODY = """
    import requests
    requests.post(os.environ["PAYMENTS_URL"] + "/charges", json={"key": key}).raise_for_status()
"""
CHARGE = "http POST /charges"
ACK = "redis EXEC(ZREM unacked_index, HDEL unacked)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("library")


@pytest.fixture(scope="module")
def subject(folder: Path) -> SubjectReport:
    """A tiny job under every reset. One run serves all tests of this file."""
    reference = tiny.write(folder, BODY)
    rig = folder / "rig.py"
    text = rig.read_text().replace(
        '"broker": jobcheck.redis()', '"broker": jobcheck.redis(), "payments": jobcheck.provider()'
    )
    rig.write_text(text.replace("env={", 'env={"PAYMENTS_URL": "{payments.url}", '))
    contracts = (exactly_once("payments POST /charges"),)
    return tiny.only(tiny.explore(reference, faults=("reset",), contracts=contracts))


@pytest.fixture(scope="module")
def struck(folder: Path, subject: SubjectReport) -> list[dict[str, Any]]:
    (journal,) = folder.glob("reports/*/journal.jsonl")
    trials = [line["trial"] for line in map(json.loads, journal.read_text().splitlines()) if line["type"] == "trial"]
    return [trial for trial in trials if trial["purpose"] == "strike" and trial.get("fired")]


def at(struck: list[dict[str, Any]], shape: str, fault: str) -> dict[str, Any]:
    """The first trial in which this message met this strike."""
    return next(
        trial
        for trial in struck
        if trial["strike"].get("fault") == fault
        and any(op.get("fate") == "struck" and op["shape"] == shape for op in trial["operations"])
    )


def test_a_worker_whose_ack_was_lost_takes_no_further_job_and_another_one_takes_over(
    struck: list[dict[str, Any]],
) -> None:
    """The exception is logged, the slot is never freed; the job is given out again when its lease is over."""
    trial = at(struck, ACK, "lose-request")
    assert any(note.startswith("the worker lives and does not go on with it") for note in trial["notes"])
    assert trial["deliveries_after"] == 1


def test_celery_acknowledges_a_job_that_raised(subject: SubjectReport, struck: list[dict[str, Any]]) -> None:
    """`task_acks_on_failure_or_timeout` is on by default: without retries of its own, a job that met a network error is
    over. It is told as left failed, and not taken for lost in silence."""
    trial = at(struck, CHARGE, "lose-request")
    assert trial["filed"].startswith("failed: ")
    assert trial.get("deliveries_after", 0) == 0
    assert any("the job was left failed, where a person can see it" in note for note in subject.notes)


def test_losses_are_the_transports_and_what_the_second_worker_repeats_is_the_handlers(subject: SubjectReport) -> None:
    """The charge has no key: the job whose ack was lost charges again."""
    found = {(finding.layer, finding.verdict) for finding in subject.findings}
    assert found == {("transport", "lost"), ("handler", "duplicated")}
