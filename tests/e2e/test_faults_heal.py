"""What deploys, producers, callbacks, races and mixed versions leave behind: nothing, also when they are cut short.

The job of this app holds the one row that every job wants while it calls its provider, which is where it is struck: a
transaction that nobody ended would stop the next job.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from jobcheck.checks.contracts import at_least_once
from jobcheck.errors import Stopped
from jobcheck.events import Bus
from jobcheck.faults.strikes import DEPLOY, WEBHOOK, family_of
from jobcheck.history.records import Point, Strike, TrialRecord
from jobcheck.history.report import SubjectReport
from jobcheck.runner import callbacks, explore, facade, handler_strikes, stage
from jobcheck.runner.arenas import QueueArena, Run
from jobcheck.runner.contest import Contest
from jobcheck.runner.crew import Crew
from jobcheck.runner.facade import Job, Request
from jobcheck.runner.producers import ProducerMode
from jobcheck.runner.queue import QueueMode
from jobcheck.runner.rig import load_rig
from jobcheck.runner.scenarios.campaign import run_scenario
from jobcheck.runner.scenarios.posts import Post
from jobcheck.runner.scenarios.run import Ending, ScenarioRun
from jobcheck.runner.trial import Mode
from jobcheck.services.spec import Postgres, Redis

from .healed import at_version, left_behind, on_lane, on_this_machine, runs_now
from .test_payloads import git
from .test_safety import users_server

pytestmark = pytest.mark.timeout(300)

APP = """
import json, os, urllib.request
import jobcheck, psycopg
from celery import Celery

app = Celery("counted", broker=os.environ.get("BROKER_URL", "redis://127.0.0.1:1/0"))
app.conf.update(
    task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1, task_ignore_result=True,
    broker_connection_retry_on_startup=True,
)

def order(key):
    with psycopg.connect(os.environ["DB_URL"]) as tx:
        tx.execute("update tally set orders = orders + 1")
        tx.execute("insert into orders (key) values (%s)", [key])
    work.delay(key)

@app.task
def work(key):
    with psycopg.connect(os.environ["DB_URL"]) as tx:
        tx.execute("update tally set jobs = jobs + 1")
        body = json.dumps({"key": key}).encode()
        call = urllib.request.Request(os.environ["PAY"] + "/charges", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(call).read()

@app.task
def paid(key):
    jobcheck.mark("paid", key)
"""
SCHEMA = """
create table tally (orders int, jobs int);
create table orders (key text);
insert into tally values (0, 0);
"""
RIG = """
import jobcheck

counted = jobcheck.Rig(
    jobcheck.celery("counted:app"),
    upstreams={{
        "broker": jobcheck.redis({redis}),
        "db": jobcheck.postgres({postgres}setup="schema.sql"),
        "pay": jobcheck.provider(webhook=[jobcheck.webhook(on="POST /charges", to="{{web.url}}/hooks", after=0.05)]),
    }},
    env={{"BROKER_URL": "{{broker.url}}", "DB_URL": "{{db.url}}", "PAY": "{{pay.base}}"}},
    processes={{"web": "python web.py {{web.host}} {{web.port}}"}},
)

def enqueue(case):
    import counted
    key = f"key-{{case.number}}"
    case.owns(key=key)
    counted.order(key)
"""
WEB = """
import json, sys, counted
from wsgiref.simple_server import make_server

def hooks(environ, start):
    event = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
    counted.paid.delay(event["data"]["key"])
    start("204 No Content", [])
    return [b""]

make_server(sys.argv[1], int(sys.argv[2]), hooks).serve_forever()
"""
CHARGES = "pay POST /charges"
SCENARIO = """
title: mixed versions
rig: rig.py:counted
workload: {enqueue: enqueue, count: 8, rate: 8/s}
workers: 2
versions: {v1: v1, v2: v2}
faults:
  - {deploy: v2, mix: 50%, at: 200ms, for: 800ms, rollback: true}
expect:
  - at_least_once: pay POST /charges
"""


def shop(folder: Path, redis: str = "", postgres: str = "") -> Path:
    """The app, with a next version as a revision of its repository. Servers may be given by their urls."""
    folder.mkdir()
    (folder / "rig.py").write_text(RIG.format(redis=redis, postgres=postgres))
    (folder / "schema.sql").write_text(SCHEMA)
    (folder / "web.py").write_text(WEB)
    (folder / "scenario.yaml").write_text(SCENARIO)
    git(folder, "init", "-q")
    for revision in ("v2", "v1"):
        (folder / "counted.py").write_text(APP + f"\nVERSION = {revision!r}\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", revision)
        git(folder, "tag", revision)
    return folder


KINDS = {
    "deploy": Job("deploy", "queue", "enqueue", contracts=(at_least_once(CHARGES),), deploy="v2", max_points=1),
    "producer": Job("producer", "producer", "enqueue", faults=("kill", "reset")),
    "webhook": Job("webhook", "queue", "enqueue", "", (at_least_once(CHARGES),), faults=("webhook",), max_points=9),
    "race": Job("race", "queue", "enqueue", contracts=(at_least_once(CHARGES),), faults=("race",)),
}


def explored(folder: Path, *kinds: str) -> dict[str, SubjectReport]:
    """The same enqueue function under these faults, one after the other on one lane."""
    rig = load_rig(f"{folder / 'rig.py'}:counted")
    request = Request(
        command="test",
        rig=rig,
        rig_reference=rig.file + ":counted",
        jobs=[replace(KINDS[kind], function=f"{rig.file}:enqueue") for kind in kinds],
        reports=folder / "reports",
        project=folder,
        lanes=1,
        verify=1,
        seed=3,
    )
    subjects = facade.run(lambda: facade.explore(request, Bus())).report.subjects
    assert [subject.problem for subject in subjects] == [""] * len(kinds)
    return {subject.name: subject for subject in subjects}


def chosen(strikes: Sequence[Strike], points: Sequence[Point], count: int) -> list[Strike]:
    """Callbacks, and a deploy at the call."""
    call = next(point.id for point in points if point.shape == "http POST /charges")
    wanted = [one for one in strikes if one.fault == DEPLOY and one.point == call]
    return wanted or [one for one in strikes if family_of(one.fault) == WEBHOOK]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], list[str]]:
    """By kind and strike: what was left behind, looked for right after it; and what keeps the next job from its end."""
    found: dict[tuple[str, str], list[str]] = {}
    run, produced, raced = QueueMode.run, ProducerMode.run, QueueArena.run

    def key(mode: Mode, strike: Strike, trial: TrialRecord) -> tuple[str, str]:
        assert trial.fired, strike
        return mode.subject, f"{strike.fault} {strike.when} {strike.point}"

    async def watched(
        self: QueueMode, purpose: str, strike: Strike | None = None, point: Point | None = None
    ) -> TrialRecord:
        trial = await run(self, purpose, strike, point)
        if strike is not None:
            await self.crew.staffed()
            found[key(self, strike, trial)] = [*await left_behind(self), *await runs_now(self)]
        return trial

    async def producing(
        self: ProducerMode, purpose: str, strike: Strike | None = None, point: Point | None = None
    ) -> TrialRecord:
        before = on_this_machine()
        trial = await produced(self, purpose, strike, point)
        if strike is not None:
            left = await on_lane(self.lane, self.settings)
            if on_this_machine() != before:
                left.append("another process, or another socket")
            then = await produced(self, "afterwards")
            if [effect.name for effect in then.effects] != self.lane.kept["clean"]:
                left.append(f"the next call did {[effect.name for effect in then.effects]}")
            found[key(self, strike, trial)] = [*left, *then.problems]
        else:
            self.lane.kept["clean"] = [effect.name for effect in trial.effects]
        return trial

    async def struck_no_more(self: ProducerMode) -> None:
        """At its end: workers take what the producer enqueues now."""
        self.slot.gate = None
        mode = QueueMode(self.lane, self.subject, self.job)
        await mode.open()
        found[self.subject, "a worker"] = await runs_now(mode)
        await mode.close()

    async def racing(self: QueueArena, strike: Strike, *args: Any, **more: Any) -> Run:
        ran = await raced(self, strike, *args, **more)
        crew = self.mode.crew
        left = [f"{seat.slot.name} is dead" for seat in crew.seats if not seat.alive]
        left += await on_lane(self.lane, self.mode.settings)
        await crew.part()
        await crew.staffed()
        found[key(self.mode, strike, ran.trial)] = [*left, *await left_behind(self.mode), *await runs_now(self.mode)]
        return ran

    monkeypatch.setattr(QueueMode, "run", watched)
    monkeypatch.setattr(ProducerMode, "run", producing)
    monkeypatch.setattr(ProducerMode, "close", struck_no_more)
    monkeypatch.setattr(QueueArena, "run", racing)
    monkeypatch.setattr(explore, "sampled", chosen)
    return found


STRIKES = {"deploy": 1, "producer": 11, "webhook": 3, "race": 3}
"""How many strikes, at least."""


def test_nothing_is_left_behind_and_the_next_job_runs(tmp_path: Path, seen: dict[tuple[str, str], list[str]]) -> None:
    before = on_this_machine()
    for kind, subject in explored(shop(tmp_path / "shop"), *KINDS).items():
        assert subject.coverage.fired == subject.coverage.strikes >= STRIKES[kind], kind
        assert sum(one == kind for one, _ in seen) >= STRIKES[kind]
    assert {key: left for key, left in seen.items() if left} == {}
    assert on_this_machine() == before


# Cut short


def interrupted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, *, after: bool = False) -> list[str]:
    """Ctrl-C comes when this is called, or when it has done its work; whether it came is in the list."""
    moments: list[str] = []
    original = getattr(owner, name)

    async def ctrl_c(*args: Any, **more: Any) -> None:
        if after:
            await original(*args, **more)
        moments.append(name)
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(60)
        raise AssertionError("nobody heard the Ctrl-C")

    monkeypatch.setattr(owner, name, ctrl_c)
    return moments


CUT: dict[str, tuple[Any, str, bool]] = {
    "deploy": (Crew, "newcomer", True),
    "producer": (handler_strikes, "carry_out", False),
    "webhook": (callbacks, "hand_over", False),
    "race": (Contest, "_turn", False),
}
"""In the middle of each: the next version's worker is there and held; the producer is held; the callbacks are kept
back; both deliveries are held."""


@contextmanager
def users_servers(folder: Path) -> Iterator[tuple[int, int]]:
    """Ports of a PostgreSQL and a Redis that are not jobcheck's, in a thread with a loop of its own."""
    ports: list[int] = []
    there, over = threading.Event(), threading.Event()

    async def main() -> None:
        async with AsyncExitStack() as stack:
            for name, spec in (("db", Postgres()), ("broker", Redis())):
                service = await stack.enter_async_context(users_server(spec, folder / name))
                ports.append(service.address.port)
            there.set()
            await asyncio.to_thread(over.wait)

    def serve() -> None:
        try:
            asyncio.run(main())
        finally:
            there.set()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        there.wait()
        assert len(ports) == 2
        yield ports[0], ports[1]
    finally:
        over.set()
        thread.join()


def state_of(postgres: int, broker: int) -> list[Any]:
    """Databases, sessions of others, prepared transactions, and what the broker holds."""
    with psycopg.connect(host="127.0.0.1", port=postgres, user="postgres", autocommit=True) as admin:
        others = "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"
        questions = ("select datname from pg_database order by 1", others, "select gid from pg_prepared_xacts")
        told: list[Any] = [admin.execute(question.encode()).fetchall() for question in questions]
    with redis.Redis(port=broker) as client:
        return [*told, client.info("keyspace")]


def test_what_is_cut_short_leaves_nothing_and_the_next_job_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On servers that are the user's, which live on: no session, no database, no key; no process, port or folder."""
    temporary = tmp_path / "t"
    temporary.mkdir()
    monkeypatch.setattr(stage, "_temporary", lambda: temporary)
    monkeypatch.setattr(explore, "sampled", chosen)
    with users_servers(tmp_path) as (postgres, broker):
        given = f'url="postgresql://postgres@127.0.0.1:{postgres}/postgres", '
        folder = shop(tmp_path / "shop", f'url="redis://127.0.0.1:{broker}"', given)
        before, clean = on_this_machine(), state_of(postgres, broker)
        for kind, where in CUT.items():
            with monkeypatch.context() as patch:
                moments = interrupted(patch, *where[:2], after=where[2])
                with pytest.raises(Stopped):
                    explored(folder, kind)
            assert moments == [where[1]], kind
            assert on_this_machine() == before, kind
            assert state_of(postgres, broker) == clean, kind
            assert list(temporary.iterdir()) == [], kind
        assert explored(folder, "producer")["producer"].coverage.fired >= STRIKES["producer"]


# Mixed versions


Looked = dict[str, list[str]]


def looked(monkeypatch: pytest.MonkeyPatch) -> Looked:
    """What a scenario has left behind when it is about to be judged."""
    found: Looked = {}
    judge = ScenarioRun._judge

    async def looking(self: ScenarioRun, ending: Ending) -> dict[str, Any]:
        world = self._world
        found["left"] = await on_lane(world.lane, world.settings)
        if not ending.aborted:  # then the deploy is not taken back
            makes = world.producers.agent("v2").worker.pid
            found["left"] += [name for name, post in world.posts.items() if post.version != "v1"]
            found["left"] += at_version(world.lane.stage.folder / "version-v2", but=makes)
        probe = await self._actor.probes.ask("the end")
        left = await self._calm.reached(20.0, self._tasks, self._look)
        found["then"] = [text for text in (probe.problem, left) if text]
        return await judge(self, ending)

    monkeypatch.setattr(ScenarioRun, "_judge", looking)
    return found


def scenario(folder: Path) -> Callable[[], Coroutine[Any, Any, dict[str, Any]]]:
    async def run() -> dict[str, Any]:
        result = await run_scenario(folder / "scenario.yaml", Bus(), seed=7, reports=folder / "reports")
        return dict(result.report.scenarios[0])

    return run


def test_mixed_versions_leave_nothing_when_they_are_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = on_this_machine()
    found = looked(monkeypatch)
    told = facade.run(scenario(shop(tmp_path / "shop")))
    assert (told["bad"], told["aborted"]) == ([], False), told["actions"]
    texts = [action["text"] for action in told["actions"]]
    (worker,) = [text[-2:] for text in texts if text.startswith("deploy v2 to w")]
    assert f"deploy v1 to {worker}" in texts
    assert found == {"left": [], "then": []}
    assert on_this_machine() == before


def test_a_deploy_of_a_scenario_that_is_cut_short_is_ended_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes when the old worker is gone and the new one is not there yet."""
    before = on_this_machine()
    found = looked(monkeypatch)
    serve = Post.serve
    moments: list[str] = []

    def ctrl_c(self: Post, *args: Any) -> None:
        if not moments:
            signal.raise_signal(signal.SIGINT)
        moments.append(self.name)
        serve(self, *args)

    monkeypatch.setattr(Post, "serve", ctrl_c)
    temporary = tmp_path / "t"
    temporary.mkdir()
    monkeypatch.setattr(stage, "_temporary", lambda: temporary)
    told = facade.run(scenario(shop(tmp_path / "shop")))
    assert moments
    assert told["aborted"]
    assert found == {"left": [], "then": []}
    assert on_this_machine() == before
    assert list(temporary.iterdir()) == []
