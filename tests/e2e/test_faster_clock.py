"""Retries of minutes in seconds: a real Celery worker, producer and broker on a clock that goes 100 times as fast."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobcheck.aio import wait_for
from jobcheck.clock import REAL, FasterClock, ManualClock
from jobcheck.errors import ServiceError, UsageError
from jobcheck.events import Bus
from jobcheck.runner.scenarios.campaign import load, run_scenario
from jobcheck.runner.stage import Stage
from jobcheck.services import find
from jobcheck.workers.pace import WAITS, Pace, pace

APP = """
import os, urllib.request
import jobcheck
from celery import Celery

app = Celery("patient", broker=os.environ.get("BROKER_URL", "redis://127.0.0.1:1/0"))
app.conf.update(
    task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1, task_ignore_result=True,
    broker_connection_retry_on_startup=True,
)

@app.task(bind=True, max_retries=8)
def pay(self, key):
    request = urllib.request.Request(os.environ["PAYMENTS"] + "/charges", data=key.encode(), method="POST")
    try:
        urllib.request.urlopen(request, timeout=300).close()
    except OSError as error:
        raise self.retry(exc=error, countdown=60 * 2 ** self.request.retries)
"""
RIG = """
import jobcheck

patient = jobcheck.Rig(
    jobcheck.celery("patient:app"),
    upstreams={"broker": jobcheck.@BROKER@, "payments": jobcheck.provider()},
    env={"BROKER_URL": "{broker.url}", "PAYMENTS": "{payments.base}"},
)

def enqueue(case):
    import patient
    key = f"key-{case.number}"
    case.owns(key=key)
    patient.pay.delay(key)
"""


def write(folder: Path, rest: str, *, work: str = "count: 1, rate: 1/m", broker: str = "redis()") -> Path:
    (folder / "patient.py").write_text(APP)
    (folder / "rig.py").write_text(RIG.replace("@BROKER@", broker))
    file = folder / "scenario.yaml"
    file.write_text(
        f"title: patience\nrig: rig.py:patient\nclock: {{speed: 100}}\nworkers: 1\n"
        f"workload: {{enqueue: enqueue, {work}}}\n{rest}expect:\n  - exactly_once: payments POST /charges\n"
    )
    return file


def run(file: Path) -> dict[str, Any]:
    reports = file.parent / "reports"
    (scenario,) = asyncio.run(run_scenario(file, Bus(), seed=7, reports=reports)).report.scenarios
    return scenario


def test_retries_of_60_120_240_and_480_seconds_run_in_their_own_time(tmp_path: Path) -> None:
    """The history is in the job's own time: an attempt at 0, 60, 180, 420 and 900 s. In real time it would take 15
    minutes, which this test does not have."""
    scenario = run(write(tmp_path, "faults:\n  - {outage: payments, status: 503, for: 10m}\n"))
    assert (scenario["verdict"], scenario["problem"]) == ("ok", ""), scenario["actions"]
    assert scenario["counts"]["ok"] == 1
    assert scenario["bad"] == []
    assert (scenario["jobs"]["seen"], scenario["jobs"]["deliveries"]) == (1, 5)
    assert scenario["faults"][0]["met"]
    assert scenario["seconds"] >= 60 + 120 + 240 + 480
    assert scenario["speed"] == 100
    clock = [note for note in scenario["notes"] if note.startswith("clock: ")]
    assert len(clock) == 2, scenario["notes"]
    assert "owned by the worker's memory" in clock[0]
    assert "1.66667/s of real time; a clean case took" in clock[1]
    left = [path.name for path in Path("/dev/shm").glob("*faketime*")]
    assert [name for name in left if not Path("/proc", name.rpartition("_")[2]).exists()] == []
    waits = next(note for note in scenario["notes"] if "Lock.acquire" in note)
    assert "unknown, not hung" in waits


def test_a_load_that_the_workers_cannot_meet_at_that_speed_is_told_with_the_arithmetic(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at that speed: 50/s at 100 times the speed are 5000/s") as error:
        run(write(tmp_path, "", work="count: 100, rate: 50/s"))
    assert "1 worker(s) do about " in error.value.message
    assert "a rate of at most " in error.value.hint


@pytest.mark.parametrize(
    ("faults", "broker", "said"),
    [
        ("", "rabbitmq()", "celery-rabbitmq cannot be sped up: RabbitMQ sends heartbeats in real time"),
        ("", "redis(url='redis://localhost/1')", "'broker' is given by its url and lives in real time"),
        ("faults:\n  - {toxic: latency, upstream: payments, latency: 5}\n", "redis()", "a toxic's times are real time"),
    ],
)
def test_all_clocks_go_faster_or_none(tmp_path: Path, faults: str, broker: str, said: str) -> None:
    """What cannot be sped up is said before anything is started."""
    with pytest.raises(UsageError) as error:
        load(write(tmp_path, faults, broker=broker))
    assert said in error.value.message


def test_an_interpreter_is_asked_and_polling_makes_its_timed_waits_follow() -> None:
    """Without the preload, waits on locks do not come back (libfaketime before 0.9.12); with it, all but a bare one."""
    found = pace(100.0, REAL, find.faketime())

    async def main() -> list[str]:
        async with Stage(seed=1, bus=Bus(), logs=Path(), speed=100.0) as stage:
            return await stage.check_pace(sys.executable)

    notes = asyncio.run(main())
    argv = [sys.executable, str(WAITS), "3", "30"]
    bare = subprocess.run(argv, env=found.environment(), capture_output=True, text=True, check=True, timeout=60)
    told = json.loads(bare.stdout)
    stuck = [way for way, seconds in told["took"].items() if seconds is None]
    assert told["took"]["time.sleep"] is not None
    if stuck:
        with pytest.raises(ServiceError, match=r"Event.wait.* did not come back"):
            found.read("python", told["took"], told["rate"])
    assert len(notes) <= 1, "with the preload only a bare lock may stand still"


def test_a_clock_that_stands_is_no_job_that_hangs() -> None:
    """Unknown, with the reason: a library that is not there, a program that loads none, a wait that never ends."""
    with pytest.raises(ServiceError, match="expected libfaketime for a clock that is 100 times as fast") as error:
        pace(100.0, REAL, [])
    assert error.value.exit_code == 2
    assert "apt-get install libfaketime" in error.value.hint
    found = Pace(100.0, Path("/lib/x.so"), ManualClock(), 0.0)
    every = {"time.sleep": 5.0, "select.select": 5.0, "Event.wait": 5.0, "queue.Queue.get": 5.0, "Lock.acquire": None}
    assert len(found.read("python", every, 99.0)) == 1
    with pytest.raises(ServiceError, match="linked statically"):
        found.read("python", every, 1.0)
    with pytest.raises(ServiceError, match=r"queue\.Queue\.get did not come back"):
        found.read("python", {**every, "queue.Queue.get": None}, 99.0)


def test_a_process_that_starts_later_is_as_far_as_the_others() -> None:
    real = ManualClock(1000.0)
    fast = FasterClock(real, 100.0)
    found = Pace(100.0, Path("/lib/x.so"), real, real.now())
    assert found.environment()["FAKETIME"] == "+0.000 x100"
    real.advance(2.5)
    assert fast.now() == 1250.0
    assert found.environment()["FAKETIME"] == "+247.500 x100"


def test_two_real_processes_agree_on_the_time_however_far_apart_they_start() -> None:
    found = pace(50.0, REAL, find.faketime())

    def ask() -> tuple[float, float]:
        argv = [sys.executable, "-c", "import time; print(time.time())"]
        done = subprocess.run(argv, env=found.environment(), capture_output=True, text=True, check=True, timeout=60)
        return float(done.stdout), REAL.now()

    async def later() -> None:
        began = REAL.now()
        await wait_for(lambda: REAL.now() - began > 0.5, "half a second", deadline=5)

    first, at = ask()
    asyncio.run(later())
    second, then = ask()
    # The second one was started (then - at) later, and is ahead of the first by about as many times 50.
    assert second - first >= 50 * 0.5
    assert second - first <= 50 * (then - at) + 50
