"""Scenario files on real workers, brokers and databases: what is right stays green, what is wrong turns red."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobcheck.events import Bus, Event, ScenarioFinished, ScenarioProgress, ScenarioStarted, ScenarioStep
from jobcheck.history.report import Report
from jobcheck.runner.facade import Result
from jobcheck.runner.scenarios.campaign import dry, load, run_scenario
from jobcheck.store.journal import read_journal

from . import tiny

APPS = Path(__file__).parents[2] / "scenarios" / "apps"
CONTRACTS = """\
  - exactly_once: payments POST /charges
  - at_least_once: mail
"""
CHAIN = CONTRACTS + "  - exactly_once: accounting POST /entries\n"


def write(folder: Path, rest: str, *, rig: str = "shop", enqueue: str = "new_invoice", work: str = "") -> Path:
    """A scenario file on the sample shop; `rest` are its faults and what it expects."""
    file = folder / "scenario.yaml"
    work = work or "count: 12, rate: 12/s"
    file.write_text(
        f"title: the shop\nrig: {APPS}/invoices/rig.py:{rig}\nworkload: {{enqueue: {enqueue}, {work}}}\n{rest}"
    )
    return file


def run(file: Path, tmp_path: Path, listen: Callable[[Event], None] = lambda event: None) -> Result:
    """Runs the file with seed 7."""
    bus = Bus()
    bus.subscribe(listen)
    return asyncio.run(run_scenario(file, bus, seed=7, reports=tmp_path / "reports"))


def only(report: Report) -> dict[str, Any]:
    (scenario,) = report.scenarios
    return scenario


def test_a_right_shop_survives_kills_copies_a_bad_network_an_outage_and_a_restart(tmp_path: Path) -> None:
    """Every fault met running jobs, every job ran again as often as was needed, and every effect happened once."""
    faults = """\
faults:
  - {kill: tree, point: after payments POST /charges, at: 0.1s}
  - {duplicate: 20%, mode: while running}
  - {duplicate: 10%, mode: later, delay: 200ms}
  - {toxic: latency, upstream: db, latency: 5, jitter: 3}
  - {toxic: slicer, upstream: accounting, average_size: 20, stream: upstream}
  - {outage: payments, status: 503, at: 1s, for: 2s}
  - {outage: accounting, at: 3s, for: 0.5s}
  - {restart: w2, after: 30 deliveries}
expect:
"""
    events: list[Event] = []
    file = write(tmp_path, faults + CHAIN + "  - recovered_within: 60s\n", work="count: 24, rate: 8/s")
    result = run(file, tmp_path, events.append)
    scenario = only(result.report)
    assert scenario["losses"]["handler"] == scenario["losses"]["settings"] == 0, scenario["bad"]
    assert scenario["problem"] == "", scenario["actions"]
    assert result.report.verdict == "ok", scenario["expectations"]
    counts = scenario["counts"]
    assert counts["attempted"] == counts["acknowledged"] == 24
    assert counts["ok"] + counts["lost"] == 24
    assert counts["lost"] == scenario["losses"]["transport"]
    assert all(fault["met"] for fault in scenario["faults"]), scenario["faults"]
    assert all(item["held"] for item in scenario["expectations"])
    assert scenario["jobs"]["deliveries"] > scenario["jobs"]["seen"] >= 60
    # The same is in the journal, and was told while it happened.
    lines = list(read_journal(result.folder.path))
    assert {"run", "scenario_plan", "scenario_step", "scenario", "end"} <= {line["type"] for line in lines}
    assert {ScenarioStarted, ScenarioStep, ScenarioProgress, ScenarioFinished} <= {type(event) for event in events}


def test_a_naive_job_is_red_after_a_kill_and_after_a_copy(tmp_path: Path) -> None:
    """Each bad case is named with its ids, its layer, its deliveries and its messages."""
    faults = """\
faults:
  - {kill: tree, point: after payments POST /charges, at: 0.2s}
  - {duplicate: 20%}
expect:
"""
    result = run(
        write(tmp_path, faults + CONTRACTS + "  - counts: {duplicated: 0}\n", enqueue="new_invoice_naive"), tmp_path
    )
    scenario = only(result.report)
    assert result.report.verdict == scenario["verdict"] == "broken"
    held = {item["text"]: item["held"] for item in scenario["expectations"]}
    assert held == {
        "exactly once: payments POST /charges": False,
        "at least once: mail": True,
        "counts: duplicated = 0": False,
    }
    assert scenario["counts"]["duplicated"] == scenario["losses"]["handler"] >= 2
    struck = [bad for bad in scenario["bad"] if any(line["kind"] == "strike" for line in bad["story"])]
    assert len(struck) == 1
    (bad,) = struck
    assert (bad["verdict"], bad["layer"], bad["broken"]) == (
        "duplicated",
        "handler",
        ["payments POST /charges: 2 times, expected 1"],
    )
    assert {one["fate"] for one in bad["jobs"][0]["deliveries"]} == {"died", "ended"}
    assert len([effect for effect in bad["effects"] if effect["name"] == "payments POST /charges"]) == 2
    assert bad["ids"]["invoice"]


def test_a_job_that_dies_between_its_delivery_and_its_reservation_is_lost_at_the_transport(tmp_path: Path) -> None:
    """That breaks `none_lost`, and no contract of a right handler."""
    faults = "faults:\n  - {kill: tree, point: before broker delivery, at: 0.2s}\nexpect:\n"
    file = write(tmp_path, faults + CONTRACTS + "  - none_lost\n", enqueue="new_invoice_locked")
    result = run(file, tmp_path)
    scenario = only(result.report)
    assert scenario["counts"]["lost"] == 1
    assert scenario["losses"] == {"handler": 0, "settings": 0, "transport": 1}
    assert [item["held"] for item in scenario["expectations"]] == [True, True, False]
    assert result.report.verdict == "broken"
    (bad,) = scenario["bad"]
    assert [one["passed"] for one in bad["jobs"][0]["deliveries"]] == [["delivery"]]


@pytest.mark.parametrize(("rejects", "losses"), [(False, 1), (True, 0)])
def test_the_job_of_a_killed_child_is_lost_by_the_settings(tmp_path: Path, rejects: bool, losses: int) -> None:
    """Celery's parent acknowledges it, unless task_reject_on_worker_lost says otherwise."""
    body = "    import time\n    time.sleep(0.2)\n" + tiny.ONCE
    tiny.write(tmp_path, body, settings=f"app.conf.task_reject_on_worker_lost = {rejects}")
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "title: a child dies\nrig: rig.py:tiny\nworkload: {enqueue: enqueue, count: 6, rate: 4/s}\nworkers: 1\n"
        "faults:\n  - {kill: child, at: 0.4s}\nexpect:\n  - exactly_once: mark done\n"
    )
    scenario = only(run(file, tmp_path).report)
    assert scenario["problem"] == "", scenario["actions"]
    assert scenario["losses"] == {"handler": 0, "settings": losses, "transport": 0}, scenario["bad"]
    assert scenario["verdict"] == ("broken" if losses else "ok")


def test_on_rabbitmq_nothing_is_lost(tmp_path: Path) -> None:
    """The same kill at the delivery, kills at random moments and copies: every case has all of its effects."""
    faults = """\
faults:
  - {kill: tree, point: before broker delivery, at: 0.2s}
  - {kill: tree, every: 900ms}
  - {duplicate: 20%}
expect:
"""
    file = write(tmp_path, faults + CHAIN + "  - none_lost\n", rig="shop_on_rabbitmq", work="count: 32, rate: 8/s")
    scenario = only(run(file, tmp_path).report)
    assert (scenario["verdict"], scenario["problem"]) == ("ok", ""), (scenario["expectations"], scenario["actions"])
    assert scenario["system"] == "celery-rabbitmq"
    assert scenario["counts"]["ok"] == 32


def test_with_early_acks_a_killed_job_is_lost_by_the_settings(tmp_path: Path) -> None:
    faults = "faults:\n  - {kill: tree, point: before payments POST /charges, at: 0.2s}\nexpect:\n"
    scenario = only(run(write(tmp_path, faults + CHAIN, rig="shop_early_acks"), tmp_path).report)
    assert scenario["guarantee"] == "at-most-once"
    assert scenario["losses"]["settings"] == 1
    assert scenario["losses"]["handler"] == 0
    assert scenario["verdict"] == "broken"


def test_a_fault_that_met_nobody_is_not_exercised(tmp_path: Path) -> None:
    """Green would be a lie. The rate that was not reached is told, too."""
    faults = "faults:\n  - {kill: tree, point: payments POST /refunds, at: 0s}\nexpect:\n"
    work = "count: 20, rate: 5000/s, values: {city: city}"
    result = run(write(tmp_path, faults + CONTRACTS, enqueue="new_invoice_locked", work=work), tmp_path)
    scenario = only(result.report)
    assert result.report.verdict == "unknown"
    assert scenario["counts"]["ok"] == 20
    assert scenario["problem"] == ("not exercised: kill tree before payments POST /refunds never met a running job")
    assert 0 < scenario["workload"]["achieved"] < 5000
    assert any("could not reach the rate: asked 5000/s" in note for note in scenario["notes"])


def test_a_stopped_run_heals_drains_and_reports_what_it_had(tmp_path: Path) -> None:
    """Ctrl-C cancels the run's task; nothing that was started goes on."""
    faults = "faults:\n  - {toxic: down, upstream: payments, at: 0s}\n  - {kill: tree, every: 60s}\nexpect:\n"
    file = write(tmp_path, faults + CONTRACTS, enqueue="new_invoice_locked", work="duration: 60s, rate: 10/s")

    async def main() -> Result:
        bus = Bus()
        task = asyncio.current_task()
        assert task is not None

        def stop(event: Event) -> None:
            if isinstance(event, ScenarioProgress) and event.phase == "workload" and event.enqueued >= 5:
                task.cancel()

        bus.subscribe(stop)
        return await run_scenario(file, bus, seed=7, reports=tmp_path / "reports")

    result = asyncio.run(main())
    scenario = only(result.report)
    assert scenario["aborted"] is True
    assert scenario["problem"].startswith("stopped after ")
    assert result.report.verdict == "unknown"
    assert 5 <= scenario["counts"]["attempted"] < 60
    assert scenario["counts"]["duplicated"] == 0
    assert any(
        "all faults ended" in line["step"]["text"] for line in read_journal(result.folder.path) if "step" in line
    )


def test_a_broker_that_dies_for_good_ends_the_run_with_what_it_had(tmp_path: Path) -> None:
    faults = "faults:\n  - {duplicate: 50%}\nexpect:\n"
    file = write(tmp_path, faults + CONTRACTS, enqueue="new_invoice_locked", work="duration: 60s, rate: 10/s")

    def kill_the_broker(event: Event) -> None:
        if isinstance(event, ScenarioProgress) and event.enqueued >= 5:
            for child in psutil.Process().children():
                if any("redis-server" in word or "valkey" in word for word in child.cmdline()[:1]):
                    os.kill(child.pid, signal.SIGKILL)

    scenario = only(run(file, tmp_path, kill_the_broker).report)
    assert scenario["verdict"] == "unknown"
    assert "broker" in scenario["problem"]
    assert "died" in scenario["problem"]
    assert scenario["counts"]["attempted"] >= 5


SHIPPED = (
    *("kill-workers", "duplicate-deliveries", "network-faults", "mixed-versions", "all-at-once"),
    *("provider-outage", "reordered-deliveries"),
)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_scenario_is_green_on_the_right_shop(tmp_path: Path, name: str) -> None:
    """As it lies there. What is lost is lost at the transport, and counted."""
    scenario = only(run(APPS.parent / f"{name}.yaml", tmp_path).report)
    assert scenario["problem"] == "", [action for action in scenario["actions"] if not action["met"]]
    assert scenario["verdict"] == "ok", (scenario["expectations"], scenario["bad"])
    assert scenario["losses"]["handler"] == scenario["losses"]["settings"] == 0
    counts = scenario["counts"]
    assert counts["attempted"] == scenario["workload"]["count"]
    assert counts["ok"] + scenario["losses"]["transport"] == counts["attempted"]
    assert counts["lost"] == scenario["losses"]["transport"]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_scenario_is_red_on_the_wrong_shop(tmp_path: Path, name: str) -> None:
    """The same file with the naive job, or with the wrong edition of version 2."""
    text = (APPS.parent / f"{name}.yaml").read_text().replace("apps/", f"{APPS}/")
    if "versions:" in text and "kill:" not in text:
        text = text.replace("invoices_v2/right", "invoices_v2/wrong")
    else:
        # The naive job does not call the accounting.
        lines = [line for line in text.splitlines() if "accounting" not in line]
        text = "\n".join(lines).replace("enqueue: new_invoice,", "enqueue: new_invoice_naive,")
        text = text.replace("enqueue: told_by_version,", "enqueue: told_blindly,")
    file = tmp_path / f"{name}.yaml"
    file.write_text(text)
    scenario = only(run(file, tmp_path).report)
    assert scenario["verdict"] == "broken", scenario["problem"]
    assert any(item["held"] is False for item in scenario["expectations"])
    assert scenario["bad"]


@pytest.mark.parametrize(("enqueue", "verdict"), [("told_by_version", "ok"), ("told_blindly", "broken")])
def test_on_rabbitmq_jobs_come_in_another_order_and_late(tmp_path: Path, enqueue: str, verdict: str) -> None:
    """The shipped file on the other broker: what is held back comes back, and every fault fired."""
    text = (APPS.parent / "reordered-deliveries.yaml").read_text().replace("apps/", f"{APPS}/")
    text = text.replace(":shop_with_statuses", ":shop_with_statuses_on_rabbitmq").replace("told_by_version", enqueue)
    file = tmp_path / "reordered.yaml"
    file.write_text(text)
    scenario = only(run(file, tmp_path).report)
    assert (scenario["verdict"], scenario["problem"]) == (verdict, ""), (scenario["expectations"], scenario["actions"])
    assert all(fault["met"] for fault in scenario["faults"]), scenario["actions"]
    assert scenario["jobs"]["seen"] == scenario["jobs"]["ended"] == scenario["jobs"]["deliveries"]


def test_a_job_that_is_held_back_for_longer_than_the_run_is_put_back_at_its_end(tmp_path: Path) -> None:
    """Nothing is lost, and what came too early is not exercised. One job alone has no other order, either."""
    rest = """\
faults:
  - {delay: each 2, by: 999 deliveries}
  - {reorder: 100%}
expect:
  - exactly_once: payments POST /charges
  - none_lost
"""
    file = write(tmp_path, rest, rig="shop_on_rabbitmq", enqueue="new_invoice_locked", work="count: 3, rate: 20/s")
    scenario = only(run(file, tmp_path).report)
    assert scenario["counts"]["ok"] == 3, scenario["bad"]
    assert [fault["met"] for fault in scenario["faults"]] == [False, False]
    assert scenario["verdict"] == "unknown"
    outcomes = {action["outcome"].partition(",")[0] for action in scenario["actions"] if action["fault"] >= 0}
    assert outcomes == {"failed: put back at the end", "failed: only one job waited"}


def test_shipped_scenarios_say_what_they_are() -> None:
    """There are no others, and each has a title."""
    files = sorted(APPS.parent.glob("*.yaml"))
    assert {file.stem for file in files} == set(SHIPPED)
    assert len({load(file).scenario.title for file in files}) == len(files)


def test_the_same_seed_gives_the_same_plan(tmp_path: Path) -> None:
    """`--dry` shows it and starts nothing."""
    file = write(tmp_path, "faults:\n  - {kill: tree, every: 200ms}\n  - {duplicate: 30%}\nexpect:\n" + CONTRACTS)
    assert dry(file, 7) == dry(file, 7)
    assert dry(file, 7) != dry(file, 8)
    assert dry(file, 7)[:2] == ["the shop", "seed 7, workers w1 w2, 1 s"]
