"""A faster clock that cannot be had: it is said everywhere, real time is used, and nobody is called hung for it."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from jobcheck.events import Bus, Warned
from jobcheck.runner import clocks
from jobcheck.runner.rig import load_rig
from jobcheck.runner.roles import Process
from jobcheck.runner.stage import Stage
from jobcheck.services.spec import Redis

from .bad_day import Ended, jobcheck
from .test_faster_clock import run, write
from .test_safety import users_server

CHARGES = "exactly_once: payments POST /charges"
ASKED = "clock: real time; asked for 100: 'broker' is given by its url and lives in real time"
LATER = "its retry is due in another "


def flat(text: str) -> str:
    """As it was before the terminal broke its lines."""
    return " ".join(text.split())


def test_an_exploration_and_a_scenario_go_on_in_real_time_and_their_retries_are_unknown(tmp_path: Path) -> None:
    """The broker is the user's own, so it lives in real time, and a retry in 60 s is out of reach."""

    async def main() -> tuple[Ended, dict[str, Any]]:
        async with users_server(Redis(), tmp_path / "server") as service:
            url = f"redis://127.0.0.1:{service.address.port}/0"
            faults = "timeouts: {drain: 1s}\nfaults:\n  - {outage: payments, status: 503, for: 2s}\n"
            file = write(tmp_path, faults, broker=f"redis(url='{url}')", work="count: 1, rate: 1/s")
            words = ("--rig", "rig.py:patient", "--faults", "reset", "--speed", "100", "--deadline", "2s")
            more = ("--max-points", "1", "--expect", CHARGES)
            explored = await asyncio.to_thread(jobcheck, tmp_path, "explore", "enqueue", *words, *more)
            return explored, await asyncio.to_thread(run, file)

    explored, scenario = asyncio.run(main())
    explored.says(2)
    assert ASKED in flat(explored.err), "it is seen before the first strike"
    assert ASKED in flat(explored.out)
    assert LATER in flat(explored.out)
    assert "hung" not in explored.out
    (file,) = tmp_path.glob("reports/*-enqueue/report.json")
    found = json.loads(file.read_text())
    assert found["environment"]["clock"] in ASKED
    assert found["subjects"][0]["notes"][0].startswith(ASKED)
    assert [one["verdict"] for one in found["subjects"][0]["strikes"]] == ["unknown"]
    suite = ET.parse(file.with_name("junit.xml"))
    assert [one.get("value") for one in suite.iter("property") if one.get("name") == "jobcheck.clock"]
    assert LATER in flat(explored.out)
    assert scenario["verdict"] == "unknown"
    assert scenario["problem"].startswith(LATER), scenario["problem"]
    assert scenario["speed"] == 1
    assert scenario["clock"] in ASKED
    assert ASKED in scenario["notes"][0]


def agreed(folder: Path, *, interpreters: tuple[str, ...] = (), processes: str = "") -> tuple[Stage, list[str]]:
    """A stage that was asked to go 20 times as fast, once all parts of the patient's rig were asked; and warnings."""
    write(folder, "")
    told: list[str] = []
    bus = Bus()
    bus.subscribe(lambda event: told.append(event.text) if isinstance(event, Warned) else None)
    patient = load_rig("rig.py:patient", folder)
    patient.processes = {"relay": Process(processes)} if processes else {}

    async def main() -> Stage:
        async with Stage(seed=1, bus=bus, logs=folder, speed=20.0) as stage:
            await clocks.agree([patient], interpreters, stage)
            return stage

    return asyncio.run(main()), told


def test_an_interpreter_that_does_not_follow_keeps_all_of_it_in_real_time(tmp_path: Path) -> None:
    own = tmp_path / "python"
    own.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec {sys.executable} "$@"\n')
    own.chmod(0o755)
    stage, told = agreed(tmp_path, interpreters=(str(own),))
    assert (stage.speed, stage.job_clock) == (1.0, stage.clock)
    found = re.match(
        rf"expected {own} to follow a clock that is 20 times as fast, and its clock went (\S+) times", stage.kept
    )
    assert found, stage.kept
    assert float(found[1]) == pytest.approx(1, abs=0.2)
    assert told == [f"clock: real time; asked for 20: {stage.kept}; all clocks go faster, or none"]
    assert stage.told == (
        *told,
        "due times on celery-redis: the worker's memory (Celery keeps eta and countdown there)",
    )


def test_a_program_that_loads_no_library_and_a_machine_without_one_stay_in_real_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    relay = tmp_path / "relay"
    relay.write_bytes(b"\x7fELF\x02\x01\x01".ljust(64, b"\0"))  # a header that names no dynamic linker
    relay.chmod(0o755)
    stage, told = agreed(tmp_path, processes="./relay --fast")
    assert stage.kept == "the process 'relay' is linked statically, so it loads no library"
    assert len(told) == 1
    monkeypatch.setattr("jobcheck.services.find.faketime", list)
    stage, _ = agreed(tmp_path)
    kept = "expected libfaketime for a clock that is 20 times as fast; apt-get install libfaketime"
    assert stage.clock_words == f"real time; asked for 20: {kept}"


def test_what_follows_lives_faster_without_a_warning(tmp_path: Path) -> None:
    stage, told = agreed(tmp_path)
    assert (stage.speed, stage.kept, told) == (20.0, "", [])
    assert stage.clock_words == "20 times as fast (libfaketime)"
