"""Old workers end and new ones start at a named message; old workers meet jobs that they do not know."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from jobcheck.events import Bus
from jobcheck.runner.scenarios.campaign import run_scenario

APP = """
import os, urllib.request
from celery import Celery

app = Celery("tiny", broker=os.environ.get("BROKER_URL", "redis://127.0.0.1:1/0"))
app.conf.update(
    task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1, task_ignore_result=True,
    broker_connection_retry_on_startup=True,
)

def charge(key):
    request = urllib.request.Request(os.environ["PAYMENTS"] + "/charges", data=key.encode(), method="POST")
    urllib.request.urlopen(request, timeout=10).close()

@app.task
def work(key):
    charge(key)
"""
NEWER = """
@app.task
def newer(key):
    charge(key)
"""
POINT = "before payments POST /charges"
RIG = """
import jobcheck

tiny = jobcheck.Rig(
    jobcheck.celery("tiny:app"),
    upstreams={"broker": jobcheck.redis(), "payments": jobcheck.provider()},
    env={"BROKER_URL": "{broker.url}", "PAYMENTS": "{payments.base}"},
)

def enqueue(case):
    import tiny
    key = f"key-{case.number}"
    case.owns(key=key)
    tiny.begin(key)
"""


def run(folder: Path, faults: str, *, new_job: bool = False, workers: int = 2) -> dict[str, Any]:
    """Version 2 is the same, or enqueues a job that version 1 does not know."""
    begin = "\ndef begin(key):\n    {}.delay(key)\n"
    for name, rest in (("v1", begin.format("work")), ("v2", NEWER + begin.format("newer") if new_job else None)):
        (folder / name).mkdir()
        (folder / name / "tiny.py").write_text(APP + (rest or begin.format("work")))
    (folder / "v1" / "rig.py").write_text(RIG)
    file = folder / "scenario.yaml"
    file.write_text(
        "title: tiny\nrig: v1/rig.py:tiny\nworkload: {enqueue: enqueue, count: 12, rate: 6/s}\n"
        f"workers: {workers}\nversions: {{v1: v1, v2: v2}}\nfaults:\n{faults}"
        "expect:\n  - at_least_once: payments POST /charges\n"
    )
    (scenario,) = asyncio.run(run_scenario(file, Bus(), seed=7, reports=folder / "reports")).report.scenarios
    return scenario


def test_a_deploy_begins_with_the_worker_that_comes_to_the_point(tmp_path: Path) -> None:
    """SIGTERM comes while the message is held; the message goes on, the job is finished, the others follow."""
    faults = f"  - {{deploy: v2, point: {POINT}, at: 200ms, step: 100ms}}\n"
    scenario = run(tmp_path, faults)
    assert (scenario["verdict"], scenario["problem"]) == ("ok", ""), (scenario["bad"], scenario["actions"])
    texts = [action["text"] for action in scenario["actions"]]
    assert texts.count(f"deploy v2 to any {POINT}") == 1
    assert "enqueue 100% of the cases with v2" in texts
    assert len([text for text in texts if text in ("deploy v2 to w1", "deploy v2 to w2")]) == 1
    struck = scenario["actions"][texts.index(f"deploy v2 to any {POINT}")]
    assert struck["met"]
    assert struck["outcome"] == "1 job(s) were running"
    assert scenario["faults"][0]["met"]
    # Now and then Celery takes one more job after its SIGTERM, does not end, and is killed: that job runs twice.
    assert scenario["counts"]["ok"] == scenario["counts"]["acknowledged"] == 12


def test_a_job_that_an_old_worker_does_not_know_is_lost(tmp_path: Path) -> None:
    """Celery throws it away with a line in its log: nothing ran, and nothing is filed where a person could act."""
    faults = f"  - {{deploy: v2, mix: 50%, point: {POINT}, at: 200ms}}\n"
    scenario = run(tmp_path, faults, new_job=True)
    assert scenario["verdict"] == "broken"
    counts = scenario["counts"]
    assert counts["lost"] == scenario["losses"]["handler"] >= 1
    assert counts["failed_visibly"] == 0
    assert all(bad["verdict"] == "lost" and not bad["filed"] for bad in scenario["bad"])
    told = [line["text"] for line in scenario["bad"][0]["story"] if line["kind"] == "strike"]
    assert told == ["thrown away: unregistered task tiny.newer"]
    assert any("deploy the code that runs a new job to every worker before" in note for note in scenario["notes"])


def test_a_restart_waits_for_its_point(tmp_path: Path) -> None:
    scenario = run(tmp_path, "  - {restart: any, point: after payments POST /charges, at: 200ms}\n", workers=1)
    assert (scenario["verdict"], scenario["problem"]) == ("ok", ""), (scenario["bad"], scenario["actions"])
    assert "restart any after payments POST /charges" in [action["text"] for action in scenario["actions"]]
