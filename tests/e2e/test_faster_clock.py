"""Retries of minutes in seconds: a real Celery worker, producer and broker on a clock that goes 100 times as fast."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import amqp
import pytest

from jobcheck.aio import wait_for, wait_until
from jobcheck.clock import REAL, FasterClock, ManualClock
from jobcheck.errors import ServiceError, UsageError
from jobcheck.events import Bus
from jobcheck.runner.scenarios.campaign import load, run_scenario
from jobcheck.runner.stage import Stage
from jobcheck.services import find, rabbit_clock, start
from jobcheck.services.rabbitmq_server import RabbitService
from jobcheck.services.spec import RabbitMQ
from jobcheck.workers.pace import WAITS, Pace, pace

APP = """
import os, urllib.request
import jobcheck
from celery import Celery

app = Celery("patient", broker=os.environ.get("BROKER_URL", "redis://127.0.0.1:1/0"))
app.conf.update(
    task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1, task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    broker_connection_timeout=600,  # its usual 4 s are 40 ms, in which a busy machine greets nobody
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
    assert len(clock) == 3, scenario["notes"]
    assert "due times on celery-redis: the worker's memory" in clock[0]
    assert re.match(r"clock: 0\.01667/s x 0\.\d+ s of work x 100 = [\d.]+ workers busy, and there are 1$", clock[1])
    assert re.match(
        r"clock: 0\.\d+ s of work x 100 = [\d.]+ s of the job's own time, within visibility_timeout", clock[2]
    )
    left = [path.name for path in Path("/dev/shm").glob("*faketime*")]
    assert [name for name in left if not Path("/proc", name.rpartition("_")[2]).exists()] == []
    # A lock's own timed wait stands still under libfaketime before 0.9.12; Debian 13 has a newer one.
    stands = waits_of(pace(100.0, REAL, find.faketime()))["took"]["Lock.acquire"] is None
    waits = [note for note in scenario["notes"] if "Lock.acquire" in note]
    assert ["unknown, not hung" in note for note in waits] == [True] * stands


def waits_of(found: Pace) -> dict[str, Any]:
    """What this interpreter says of its timed waits under that clock, without the preload that makes them poll."""
    argv = [sys.executable, str(WAITS), "3", "30"]
    bare = subprocess.run(argv, env=found.environment(), capture_output=True, text=True, check=True, timeout=60)
    told: dict[str, Any] = json.loads(bare.stdout)
    return told


def test_a_load_that_the_workers_cannot_meet_at_that_speed_is_unknown_with_the_arithmetic(tmp_path: Path) -> None:
    scenario = run(write(tmp_path, "", work="count: 100, rate: 50/s"))
    assert scenario["verdict"] == "unknown"
    sums = r"the load cannot be met at that speed: 50/s x ([\d.]+) s of work x 100 = ([\d.]+) workers busy, and there "
    told = re.match(sums, scenario["problem"])
    assert told, scenario["problem"]
    assert float(told[2]) == pytest.approx(50 * float(told[1]) * 100, rel=0.02)


def test_a_toxic_and_a_faster_clock_are_refused_before_anything_is_started(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a toxic's times are real time"):
        load(write(tmp_path, "faults:\n  - {toxic: latency, upstream: payments, latency: 5}\n"))


def test_rabbitmq_goes_along_and_its_heartbeats_keep_the_connection(tmp_path: Path) -> None:
    """Celery's heartbeat is 120 s by default: a worker that saw none for 240 s of its own time would connect anew."""
    scenario = run(write(tmp_path, "faults:\n  - {outage: payments, status: 503, for: 5m}\n", broker="rabbitmq()"))
    assert (scenario["verdict"], scenario["problem"], scenario["speed"]) == ("ok", "", 100), scenario["notes"]
    assert (scenario["jobs"]["seen"], scenario["jobs"]["deliveries"]) == (1, 4), "at 0, 60, 180 and 420 s"
    assert scenario["seconds"] >= 60 + 120 + 240
    assert any("within consumer_timeout 1800 s" in note for note in scenario["notes"])
    outputs = [file.read_text() for file in tmp_path.glob("reports/*-scenario/output/**/*w1*.log")]
    assert any("succeeded" in output for output in outputs)
    assert not any("Connection to broker lost" in output for output in outputs)


def test_a_message_of_rabbitmq_lives_by_the_faster_clock(tmp_path: Path) -> None:
    """60 s are 0.6 s; a node that lives in real time would keep the message for the whole deadline."""

    async def main() -> None:
        async with Stage(seed=1, bus=Bus(), logs=tmp_path, speed=100.0) as stage:
            node = tmp_path / "node"
            node.mkdir()
            service = await start(
                RabbitMQ(), name="broker", supervisor=stage.supervisor, guardian=stage.guardian, folder=node,
                environ={}, pace=stage.pace,
            )  # fmt: skip
            assert isinstance(service, RabbitService)
            address = await service.namespace("1")

            def publish() -> None:
                with amqp.Connection(f"{address.host}:{address.port}", virtual_host=address.path) as connection:
                    channel = connection.channel()
                    channel.queue_declare("brief", auto_delete=False, arguments={"x-message-ttl": 60_000})
                    channel.basic_publish_confirm(amqp.Message("x"), routing_key="brief")

            async def gone() -> bool:
                return [one.ready for one in await service.depth(address)] == [0]

            try:
                await asyncio.to_thread(publish)
                assert not await gone(), "it was there"
                await wait_until(gone, "the message to be over", deadline=20)
            finally:
                await service.stop()

    asyncio.run(main())


def test_erlang_says_whether_it_follows() -> None:
    fine = "took 10052 own 31000 real 0.31"
    assert rabbit_clock.read(fine, 100.0) == ""
    assert rabbit_clock.read("took 743217 own 800000 real 8.0", 100.0) == (
        "a wait of 10 s in Erlang took 743 s of its own time"
    )
    assert rabbit_clock.read("took 10052 own 31000 real 31.0", 100.0) == (
        "Erlang's clock went 1 times as fast as the kernel's"
    )
    assert "said nothing" in rabbit_clock.read("", 100.0)


def test_an_interpreter_is_asked_and_polling_makes_its_timed_waits_follow(tmp_path: Path) -> None:
    """Without the preload, waits on locks do not come back (libfaketime before 0.9.12); with it, all but a bare one."""
    found = pace(100.0, REAL, find.faketime())

    async def main() -> list[str]:
        async with Stage(seed=1, bus=Bus(), logs=tmp_path, speed=100.0) as stage:
            return await stage.check_pace(sys.executable)

    notes = asyncio.run(main())
    told = waits_of(found)
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
    assert "apt-get install libfaketime" in error.value.hint  # the run goes on in real time, and says so
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
