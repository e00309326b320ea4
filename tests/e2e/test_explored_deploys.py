"""A deploy at each point of a job: the old worker is told to end, and the next version does what is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.errors import UsageError
from jobcheck.events import Bus
from jobcheck.history.report import SubjectReport
from jobcheck.runner import facade
from jobcheck.runner.asked import deployed, queue_job
from jobcheck.runner.facade import Request
from jobcheck.runner.rig import load_rig

from . import bad_day, tiny


def explored(folder: Path, next_version: str) -> SubjectReport:
    """The tiny job, with a deploy of a version whose task is `next_version` at each point and nothing else."""
    reference = tiny.write(folder)
    after = folder / "v2"
    after.mkdir()
    app = (folder / "tiny.py").read_text()
    (after / "tiny.py").write_text(app.replace("def work(key):", next_version))
    rig = load_rig(reference)
    jobs = deployed([queue_job(rig, "enqueue", tiny.DONE)], "v2")
    request = Request(
        command="test",
        rig=rig,
        rig_reference=reference,
        jobs=jobs,
        reports=folder / "reports",
        project=folder,
        lanes=1,
        faults=("zombie",),
        seed=3,
    )
    return tiny.only(facade.run(lambda: facade.explore(request, Bus())).report)


def deploys(subject: SubjectReport) -> list[tuple[str, str]]:
    """Verdict and layer of each deploy."""
    return [(strike.verdict, strike.layer) for strike in subject.strikes if strike.fault == "deploy"]


def test_a_next_version_that_reads_the_old_payload_finishes_every_job(tmp_path: Path) -> None:
    subject = explored(tmp_path, 'def work(key, currency="EUR"):')
    assert deploys(subject) == [("ok", "")] * len(subject.points)
    assert subject.coverage.exhausted


def test_a_next_version_that_cannot_read_it_fails_what_the_old_worker_gave_back(tmp_path: Path) -> None:
    """Celery's old worker finishes what it has begun; a delivery that it had not heard of is the next one's."""
    subject = explored(tmp_path, "def work(key, currency):")
    assert subject.verdict == "broken"
    assert any(verdict != "ok" for verdict, _ in deploys(subject))
    assert any("when the next version is deployed" in finding.title for finding in subject.findings)


def test_a_handler_without_its_queue_has_no_worker_to_replace() -> None:
    with pytest.raises(UsageError, match="a deploy replaces a worker"):
        deployed([], "v2")


def test_a_version_that_is_not_there_is_told_before_anything_is_started(tmp_path: Path) -> None:
    folder = bad_day.project(tmp_path / "project")
    ended = bad_day.jobcheck(
        folder, "explore", "enqueue", "--expect", "at_least_once: mark done", "--deploy", "nowhere"
    )
    ended.says(3, "expected a folder, a Python interpreter or a git revision, got 'nowhere': no such path, and")
    assert "redis" not in ended.err
    assert not (folder / "reports").exists()
