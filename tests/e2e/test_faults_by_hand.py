"""Toxiproxy's API inside a run: a user's own scripts spoil the network of a scenario while it runs."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from jobcheck.errors import UsageError
from jobcheck.events import Bus, Event, PhaseStarted
from jobcheck.runner.scenarios.campaign import ScenarioRequest, load
from jobcheck.runner.scenarios.live import Live
from jobcheck.services.spec import Redis

from . import tiny
from .bad_day import QUEUE, jobcheck, project, rig
from .test_safety import users_server
from .test_toxiproxy_command import CLIENTS, client, command, node_client

SCENARIO = """\
title: by hand
rig: rig.py:tiny
workload: {enqueue: enqueue, count: 12, rate: 8/s}
workers: 1
expect:
  - exactly_once: mark done
"""
SEES_URL = """
    import os, urllib.request
    urllib.request.urlopen(os.environ["TOXIPROXY_URL"] + "/version").read()
    jobcheck.mark("done", key)
"""


def scenario(folder: Path, body: str = tiny.ONCE, text: str = SCENARIO) -> Path:
    """A scenario of the tiny job, which does not use its provider: a worker whose broker is cut off may wedge."""
    tiny.write(folder, body)
    rig = folder / "rig.py"
    rig.write_text(rig.read_text().replace("jobcheck.redis()", 'jobcheck.redis(), "payments": jobcheck.provider()'))
    file = folder / "scenario.yaml"
    file.write_text(text)
    return file


def live(file: Path, said: list[str] | None = None) -> Live:
    bus = Bus()

    def listen(event: Event) -> None:
        if isinstance(event, PhaseStarted) and said is not None:
            said.append(event.text)

    bus.subscribe(listen)
    return Live(ScenarioRequest([file], seed=7, reports=file.parent / "reports"), bus)


def reported(run: Live) -> dict[str, Any]:
    assert run.result is not None
    return run.result.report.scenarios[0]


def ask(url: str, method: str = "GET", body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, method=method), timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def by_hand(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["text"], one["outcome"]) for one in report["actions"] if one["text"].startswith("by hand: ")]


PROXIES = ["broker", "payments", "producer:broker", "producer:payments", "w1:broker", "w1:payments"]


def test_toxiproxy_python_spoils_a_run_and_the_history_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    with live(scenario(tmp_path, SEES_URL), said) as run:
        seen = client(sys.executable, str(CLIENTS / "by_hand.py"), run.toxiproxy_url)
    report = reported(run)
    assert seen == {"there": PROXIES, "toxics": ["slow"], "down": False}
    assert said[-1] == f"{run.toxiproxy_url} answers as Toxiproxy: broker, payments"
    changes = by_hand(report)
    assert [text for text, _ in changes] == [
        "by hand: broker slow: latency latency=30 jitter=0 downstream",
        "by hand: end of broker slow: latency latency=30 jitter=0 downstream",
        "by hand: w1:payments disabled",
        "by hand: end of w1:payments disabled",
        "by hand: broker bandwidth_downstream: bandwidth rate=5000 downstream",
        "by hand: end of broker bandwidth_downstream: bandwidth rate=5000 downstream",
    ]
    assert "3 fault(s) were set by hand, through Toxiproxy's API: the seed does not repeat them" in report["notes"]
    # What was left acting was healed before the effects were read, as the plan's own faults are.
    ended = [one["at"] for one in report["actions"] if one["text"] == changes[-1][0]]
    assert ended[-1] <= report["healed_at"]
    assert report["verdict"] == "ok", report["problem"]
    assert report["recovered"] is not None


def test_toxiproxy_node_client_does_too_and_cannot_move_a_tap(tmp_path: Path) -> None:
    folder = node_client(tmp_path / "client")
    shutil.copy(CLIENTS / "by_hand.js", folder)
    with live(scenario(tmp_path)) as run:
        seen = client("node", "by_hand.js", run.toxiproxy_url, folder=folder)
    assert seen == {"there": PROXIES, "toxics": ["slow"], "moved": True, "populated": True, "removed": True}
    assert [text for text, _ in by_hand(reported(run))] == [
        "by hand: broker slow: latency latency=30 jitter=0 downstream",
        "by hand: end of broker slow: latency latency=30 jitter=0 downstream",
        "by hand: payments disabled",
        "by hand: end of payments disabled",
    ]


def test_a_run_without_a_hand_says_nothing_of_one(tmp_path: Path) -> None:
    with live(scenario(tmp_path)) as run:
        assert sorted(ask(run.toxiproxy_url + "/proxies")) == PROXIES
    report = reported(run)
    assert (report["verdict"], by_hand(report)) == ("ok", [])
    assert not [note for note in report["notes"] if "hand" in note]


def test_what_is_wrong_with_the_run_is_raised_in_the_block(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="mark nothing"),
        live(scenario(tmp_path, text=SCENARIO.replace("mark done", "mark nothing"))),
    ):
        raise AssertionError("the block must not begin")


def test_a_real_toxiproxy_answers_its_own_api(tmp_path: Path) -> None:
    file = scenario(tmp_path, text=SCENARIO + "toxiproxy: true\nengine: toxiproxy\n")
    with pytest.raises(UsageError, match=r"scenario.yaml:7: a Toxiproxy server answers its own API"):
        load(file)


def test_the_command_line_prints_the_address(tmp_path: Path) -> None:
    file = scenario(tmp_path, text=SCENARIO.replace("count: 12", "count: 2"))
    words = [sys.executable, "-m", "jobcheck", "run", str(file), "--toxiproxy", "--seed", "7"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "http://127.0.0.1:" in done.stderr
    assert "answers as Toxiproxy: broker, payments" in done.stderr


def test_an_exploration_goes_through_a_toxiproxy_of_the_users_own(tmp_path: Path) -> None:
    """What is set there before it begins holds for all of it, clean runs included, and stays when it is over."""

    async def main() -> None:
        async with users_server(Redis(), tmp_path / "server") as service:
            with command() as (port, _):
                api = f"http://127.0.0.1:{port}"
                upstream = f"127.0.0.1:{service.address.port}"
                proxy = ask(f"{api}/proxies", "POST", {"name": "broker", "listen": "127.0.0.1:0", "upstream": upstream})
                toxic = {"type": "latency", "attributes": {"latency": 20}}
                ask(f"{api}/proxies/broker/toxics", "POST", toxic)
                text = rig(f'"broker": jobcheck.redis(url="redis://{proxy["listen"]}/0")')
                folder = project(tmp_path / "project", text=text)
                ended = await asyncio.to_thread(jobcheck, folder, "explore", *QUEUE, "--max-points", "1")
                ended.says(0, f"given: redis://{proxy['listen']}/0", ", 1 fired: ")
                (file,) = folder.glob("reports/*-enqueue/report.json")
                strikes = json.loads(file.read_text())["subjects"][0]["strikes"]
                assert min(one["seconds"] for one in strikes) >= 4 * 0.02, "fetch, reserve, start and ack wait"
                assert [one["name"] for one in ask(f"{api}/proxies/broker")["toxics"]] == ["latency_downstream"]

    asyncio.run(main())
