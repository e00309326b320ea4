"""A worker is told to end while another job waits: right ones take nothing new, and wrong ones are told or found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobcheck.history.report import SubjectReport
from jobcheck.runner import ending, promises

from . import tiny

pytestmark = pytest.mark.timeout(300)

IGNORES = """
import signal
from celery.signals import worker_ready

@worker_ready.connect
def ignore(**_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
"""
"""It goes on as if nothing had been said."""

DROPS = """
import signal
from celery import Task
from celery.signals import worker_ready

stopping = []

@worker_ready.connect
def remember(**_):
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))

class Hurried(Task):
    def __call__(self, *args, **kwargs):
        if not stopping:
            return super().__call__(*args, **kwargs)

app.Task = Hurried
"""
"""Once it is told to end it skips whatever it takes, "to be fast", and Celery acknowledges that."""

COLD = """
import os
os.environ["REMAP_SIGTERM"] = "SIGQUIT"
"""
"""Celery's own switch: SIGTERM ends the worker at once, and the job in its hands is given back."""

LONG = """
    import time
    jobcheck.mark("begun", key)
    time.sleep(1)
    jobcheck.mark("done", key)
"""


def strike(
    folder: Path,
    settings: str = "",
    *,
    body: str = tiny.ONCE,
    options: str = "",
    broker: str = "redis",
    points: int = 2,
) -> tuple[SubjectReport, list[dict[str, Any]]]:
    """One tiny job under SIGTERM at each point; its report, and what each strike's trial says of the end."""
    reference = tiny.write(folder, body, settings=settings, options=options)
    rig = folder / "rig.py"
    rig.write_text(rig.read_text().replace("jobcheck.redis()", f"jobcheck.{broker}()"))
    subject = tiny.only(tiny.explore(reference, faults=("term",), verify=1, max_points=points))
    (journal,) = folder.glob("reports/*/journal.jsonl")
    trials = [line["trial"] for line in map(json.loads, journal.read_text().splitlines()) if line["type"] == "trial"]
    struck = [trial for trial in trials if trial["purpose"] == "strike"]
    assert all(trial["fired"] and "ending" in trial for trial in struck)
    return subject, struck


@pytest.mark.parametrize("broker", ["redis", "rabbitmq"])
def test_a_right_worker_takes_nothing_new_and_ends_in_time(tmp_path: Path, broker: str) -> None:
    subject, struck = strike(tmp_path, broker=broker, points=6 if broker == "redis" else 2)
    assert subject.problem == ""
    assert [item.layer for item in subject.findings if item.layer != "transport"] == []
    by_main = [trial for trial in struck if trial["strike"]["fault"] == "term"]
    assert by_main
    assert all(one["ending"].get("runs", 0) >= 1 for one in struck)
    assert not any(one["ending"].get("killed") for one in by_main)
    (note,) = [note for note in subject.notes if note.startswith("SIGTERM at ")]
    assert "its job was finished" in note
    if broker == "redis":  # RabbitMQ may push another job when the acknowledgement comes, before Celery has heard all
        assert "the worker took nothing new" in note


@pytest.mark.parametrize("broker", ["redis", "rabbitmq"])
def test_what_was_fetched_ahead_is_given_back(tmp_path: Path, broker: str) -> None:
    """Celery fetches four messages for each process by default: those that it had not begun go to the next worker."""
    ahead = "app.conf.worker_prefetch_multiplier = 4"
    subject, struck = strike(tmp_path, ahead, broker=broker)
    assert subject.problem == ""
    notes = [note for trial in struck for note in trial["notes"]]
    assert any(note == "a further job was in its hands already: another worker gets it" for note in notes)
    # One that it had begun, while the first one's acknowledgement was on its way, may be done again: at least once.
    assert all(one["ending"].get("runs", 0) >= 1 and not one["ending"].get("took") for one in struck)
    assert not [item for item in subject.findings if item.layer != "transport"]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """These workers never end by themselves: 3 s say as much as 10."""
    for module in (ending, promises):
        monkeypatch.setattr(module, "STOP_GRACE", 3.0)


@pytest.mark.usefixtures("impatient")
def test_a_worker_that_ignores_sigterm_and_does_a_further_job_well_is_told_and_passes(tmp_path: Path) -> None:
    reference = tiny.write(tmp_path, settings=IGNORES, options=', pool="solo"')
    subject = tiny.only(tiny.explore(reference, faults=("term",), verify=1, max_points=1))
    assert subject.problem == ""
    assert subject.findings == ()
    (note,) = [note for note in subject.notes if note.startswith("SIGTERM at ")]
    assert "took a further job" in note
    assert "did not end within 3 s" in note


@pytest.mark.usefixtures("impatient")
def test_a_worker_that_drops_what_it_takes_after_sigterm_is_a_finding_at_the_handler(tmp_path: Path) -> None:
    reference = tiny.write(tmp_path, settings=DROPS, options=', pool="solo"')
    subject = tiny.only(tiny.explore(reference, faults=("term",), verify=1, max_points=1))
    assert subject.verdict == "broken"
    (found,) = [item for item in subject.findings if item.layer == "handler"]
    assert (found.verdict, found.effect) == ("lost", "the next job")
    assert found.title.startswith("the next job is lost when the worker is told to end ")
    assert "leave SIGTERM to the job system" in found.advice


def test_a_cold_shutdown_gives_the_job_back_and_takes_nothing_new(tmp_path: Path) -> None:
    """The job has more to do than it can while the main process hears of it."""
    subject, struck = strike(tmp_path, COLD, body=LONG, points=4)
    assert subject.problem == ""
    assert not [item for item in subject.findings if item.layer == "handler"]
    assert not any(one["ending"].get("took") for one in struck)
    assert "given back" in {one["ending"]["job"] for one in struck}
