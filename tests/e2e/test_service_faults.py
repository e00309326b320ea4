"""Brokers and databases that fail under running jobs: real servers, killed, wiped and hampered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobcheck.errors import UsageError
from jobcheck.events import Bus, Event, ScenarioStep
from jobcheck.runner.scenarios.campaign import load, run_scenario

from . import tiny

APPS = Path(__file__).parents[2] / "scenarios" / "apps"
RUNS = "a job enqueued after the recovery runs"


def scenario_of(folder: Path, faults: str, *, work: str, broker: str = "jobcheck.redis()", more: str = "") -> Path:
    """A scenario file on the tiny app, whose one effect is a mark."""
    settings = "app.conf.broker_transport_options = {'confirm_publish': True}" if "rabbit" in broker else ""
    tiny.write(folder, settings=settings)
    rig = folder / "rig.py"
    rig.write_text(rig.read_text().replace("jobcheck.redis()", broker))
    file = folder / "scenario.yaml"
    file.write_text(
        f"title: tiny\nrig: rig.py:tiny\nworkload: {{enqueue: enqueue, {work}}}\nworkers: 1\n"
        f"faults:\n{faults}expect:\n  - at_least_once: mark done\n{more}"
    )
    return file


def run(file: Path, listen: Callable[[Event], None] = lambda event: None) -> dict[str, Any]:
    """The scenario's part of the report, with seed 7."""
    bus = Bus()
    bus.subscribe(listen)
    (scenario,) = asyncio.run(run_scenario(file, bus, seed=7, reports=file.parent / "reports")).report.scenarios
    return scenario


def held(scenario: dict[str, Any]) -> dict[str, bool | None]:
    return {item["text"]: item["held"] for item in scenario["expectations"]}


def servers() -> list[psutil.Process]:
    """Brokers and databases that are children of ours."""
    names = ("redis-server", "valkey-server", "postgres", "beam.smp")
    return [child for child in psutil.Process().children(recursive=True) if child.name() in names]


def test_a_right_shop_survives_a_database_that_fails_in_every_way(tmp_path: Path) -> None:
    """Out of connections, killed, read-only: what was acknowledged is done, or filed as failed where all can see it."""
    file = tmp_path / "scenario.yaml"
    file.write_text(
        f"title: the shop\nrig: {APPS}/invoices/rig.py:shop\n"
        "workload: {enqueue: new_invoice, count: 20, rate: 5/s}\n"
        "faults:\n"
        "  - {exhaust: db, at: 300ms, for: 500ms}\n"
        "  - {kill: db, at: 1500ms, for: 300ms}\n"
        "  - {read_only: db, at: 3s, for: 300ms}\n"
        "expect:\n  - exactly_once: payments POST /charges\n  - at_least_once: mail\n"
        "  - exactly_once: accounting POST /entries\n"
    )
    scenario = run(file)
    assert scenario["problem"] == "", scenario["actions"]
    assert scenario["verdict"] == "ok", (scenario["expectations"], scenario["bad"])
    assert held(scenario)[RUNS]
    assert all(fault["met"] for fault in scenario["faults"]), scenario["actions"]
    assert [fault["text"] for fault in scenario["faults"]] == [
        "outage of db: out of connections for 0.5 s",
        "outage of db: killed for 0.3 s",
        "outage of db: read-only for 0.3 s",
    ]
    counts = scenario["counts"]
    assert counts["attempted"] == 20 + len(scenario["probes"]) == 24
    assert counts["duplicated"] == scenario["losses"]["handler"] == scenario["losses"]["settings"] == 0
    assert counts["vanished"] >= 1, "who enqueues meets the database, too"
    assert not servers()


def test_outages_of_ten_seconds_and_more_that_come_again_and_again(tmp_path: Path) -> None:
    """A provider and a database, each twice; on a faster clock, so that it does not take a minute."""
    file = tmp_path / "scenario.yaml"
    file.write_text(
        f"title: again\nrig: {APPS}/invoices/rig.py:shop\nclock: {{speed: 10}}\nworkers: 2\n"
        "workload: {enqueue: new_invoice, count: 16, rate: 24/m}\n"
        "faults:\n"
        "  - {outage: payments, status: 503, every: 20s, for: 12s}\n"
        "  - {kill: db, every: 20s, for: 10s}\n"
        "expect:\n  - exactly_once: payments POST /charges\n  - at_least_once: mail\n"
    )
    scenario = run(file)
    assert (scenario["verdict"], scenario["problem"]) == ("ok", ""), scenario
    assert held(scenario)[RUNS], "nothing is left of the last one"
    for fault, begins, ends in ((0, "out of order", "works again"), (1, "is killed", "comes back")):
        mine = [one for one in scenario["actions"] if one["fault"] == fault]
        assert [begins in one["text"] for one in mine] == [True, False] * 2, mine
        assert [ends in one["text"] for one in mine] == [False, True] * 2, mine
        spells = [later["at"] - begun["at"] for begun, later in zip(mine[::2], mine[1::2], strict=True)]
        assert min(spells) >= 10, "so long by the jobs' own clock"
        assert scenario["faults"][fault]["met"]
    assert not servers()


def test_a_broker_that_is_killed_forgets_nothing_and_one_that_is_wiped_what_waited(tmp_path: Path) -> None:
    """After each recovery a job is enqueued to see whether it runs; what is gone with the storage is no handler's."""
    faults = (
        "  - {kill: broker, point: before broker ack, at: 100ms}\n"
        "  - {wipe: broker, point: before broker ack, at: 3s, for: 200ms}\n"
        "  - {restart: broker, point: before broker ack, at: 4s, for: 200ms}\n"
    )
    scenario = run(scenario_of(tmp_path, faults, work="count: 60, rate: 12/s"))
    assert scenario["problem"] == "", scenario["actions"]
    assert [probe["after"] for probe in scenario["probes"]] == ["broker comes back"] * 3 + ["the healing"]
    assert scenario["probes"][0]["ran"] is not None
    assert held(scenario)[RUNS]
    assert scenario["verdict"] == "ok", (scenario["expectations"], scenario["bad"])
    assert scenario["counts"]["lost"] == scenario["losses"]["transport"]
    assert all(fault["met"] for fault in scenario["faults"]), scenario["actions"]
    assert any(note.startswith("broker on disk: appendonly yes") for note in scenario["notes"])


def test_a_broker_that_keeps_nothing_loses_what_waits_by_its_settings(tmp_path: Path) -> None:
    """A polite restart is enough; the report says which setting would have kept it."""
    faults = "  - {restart: broker, after: 5 cases, for: 100ms}\n"
    file = scenario_of(tmp_path, faults, work="count: 60, rate: 2000/s", broker="jobcheck.redis(keeps='')")
    scenario = run(file)
    assert scenario["losses"]["settings"] >= 1, scenario["counts"]
    assert scenario["losses"]["handler"] == 0
    assert held(scenario) == {"at least once: mark done": False, RUNS: True}
    assert any("appendonly yes" in note and "forgot" in note for note in scenario["notes"])


def test_rabbitmq_with_confirmed_messages_forgets_nothing_when_it_is_killed(tmp_path: Path) -> None:
    file = scenario_of(
        tmp_path,
        "  - {kill: broker, at: 300ms}\n",
        work="count: 20, rate: 20/s",
        broker="jobcheck.rabbitmq()",
        more="  - none_lost\n",
    )
    scenario = run(file)
    assert (scenario["verdict"], scenario["problem"]) == ("ok", ""), (scenario["bad"], scenario["actions"])
    assert held(scenario)[RUNS]
    assert scenario["faults"][0]["met"]


def test_a_celery_worker_on_redis_wedges_when_its_ack_is_lost_with_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known behaviour (prefork -c 1, prefetch 1, late acks): the slot is never freed. The process is up, its
    connections are, and nothing is fetched: only a job that is enqueued now tells."""

    monkeypatch.setattr("jobcheck.runner.scenarios.probes.RUNS_WITHIN", 2.0)
    faults = "  - {toxic: reset_peer, point: broker ack, stream: upstream, first: 1, at: 200ms}\n"
    scenario = run(scenario_of(tmp_path, faults, work="count: 6, rate: 10/s", more="timeouts: {drain: 3s}\n"))
    assert held(scenario)[RUNS] is False
    assert scenario["verdict"] == "broken"
    (probe,) = scenario["probes"]
    assert probe["problem"].startswith("was not handed out within 2 s; w1 lives, and ")
    assert "job(s) are on the broker; no message of a job for " in probe["problem"]
    assert scenario["recovered"] is None


def test_a_stopped_run_brings_its_servers_back_and_leaves_none(tmp_path: Path) -> None:
    """Ctrl-C while the broker is down for a minute: it is healed at once, and nothing is left."""
    file = scenario_of(tmp_path, "  - {kill: broker, at: 300ms, for: 60s}\n", work="duration: 60s, rate: 5/s")
    told: list[str] = []

    async def main() -> dict[str, Any]:
        bus, task = Bus(), asyncio.current_task()
        assert task is not None

        def stop(event: Event) -> None:
            if isinstance(event, ScenarioStep):
                told.append(event.text)
                if event.text == "broker is killed":
                    task.cancel()

        bus.subscribe(stop)
        (scenario,) = (await run_scenario(file, bus, seed=7, reports=tmp_path / "reports")).report.scenarios
        return scenario

    scenario = asyncio.run(main())
    assert scenario["aborted"]
    assert told.index("broker is killed") < told.index("broker comes back")
    assert not servers()


def test_only_servers_of_our_own_are_made_to_fail(tmp_path: Path) -> None:
    """Before anything is started: each mistake has its line."""
    faults = "  - {kill: broker}\n  - {restart: marc}\n  - {wipe: broker}\n  - {exhaust: broker, for: 1s}\n"
    file = scenario_of(tmp_path, faults, work="count: 1, rate: 1/s", broker='jobcheck.redis(url="redis://localhost/1")')
    with pytest.raises(UsageError) as error:
        load(file)
    lines = str(error.value).splitlines()
    assert [line.partition(": ")[0].rpartition(":")[2] for line in lines] == ["6", "7", "8", "9"]
    assert "'broker' is given by its url, and jobcheck restarts, wipes and hampers only servers that" in lines[0]
    assert "unknown upstream 'marc'; the rig has broker" in lines[1]
