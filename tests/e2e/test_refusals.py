"""A refused request reaches a real client as the error that its library knows, and the server knows of nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobcheck.checks.contracts import at_most_once
from jobcheck.events import Bus
from jobcheck.runner import facade
from jobcheck.runner.facade import Job, Request
from jobcheck.runner.rig import load_rig

APP = """
import os, smtplib
import jobcheck, psycopg, redis, requests
from kombu import Connection, Producer
from celery import Celery

app = Celery("refused", broker=os.environ.get("BROKER_URL", "redis://127.0.0.1:1/0"))

def postgres_autocommit(key):
    with psycopg.connect(os.environ["DB_URL"], autocommit=True) as db:
        try:
            db.execute("insert into rows values (%s)", [key])
        except psycopg.errors.SerializationFailure:
            saw(key, db.execute("select count(*) from rows where key = %s", [key]).fetchone()[0])
            raise

def postgres_commit(key):
    with psycopg.connect(os.environ["DB_URL"]) as db:
        db.execute("insert into rows values (%s)", [key])
        db.commit()

def redis_plain(key):
    # Not by from_url: redis-py repeats nothing for a client that is made so.
    redis.Redis(os.environ["CACHE_HOST"], int(os.environ["CACHE_PORT"]), int(os.environ["CACHE_DB"])).set(key, 1)

def redis_transaction(key):
    with redis.Redis.from_url(os.environ["CACHE_URL"]).pipeline() as pipe:
        pipe.set(key, 1)
        pipe.incr("n")
        pipe.execute()

def http(key):
    requests.post(os.environ["PAYMENTS_URL"] + "/charges", json={"key": key}).raise_for_status()

def smtp(key):
    with smtplib.SMTP(os.environ["SMTP_HOST"], int(os.environ["SMTP_PORT"])) as server:
        server.sendmail("a@example.com", ["b@example.com"], "Subject: %s" % key)

def amqp(key):
    with Connection(os.environ["RABBIT_URL"]) as connection:
        channel = connection.channel()
        Producer(channel).publish({"key": key}, routing_key="nobody")
        channel.queue_declare("other", auto_delete=True)  # a publish has no answer: the refusal is read here

def saw(key, what):
    jobcheck.mark("saw", f"{key} {what}")
"""
RUN = """
def {name}_watched(key):
    jobcheck.mark("begun", key)
    try:
        {name}(key)
    except Exception as error:
        saw(key, type(error).__name__)
"""
RIG = """
import jobcheck

refused = jobcheck.Rig(
    jobcheck.celery("refused:app"),
    upstreams={
        "broker": jobcheck.redis(),
        "cache": jobcheck.redis(),
        "db": jobcheck.postgres(setup="psql -f schema.sql"),
        "payments": jobcheck.provider(),
        "mail": jobcheck.smtp(),
        "rabbit": jobcheck.rabbitmq(),
    },
    env={
        "BROKER_URL": "{broker.url}", "CACHE_URL": "{cache.url}", "DB_URL": "{db.url}", "RABBIT_URL": "{rabbit.url}",
        "CACHE_HOST": "{cache.host}", "CACHE_PORT": "{cache.port}", "CACHE_DB": "{cache.db}",
        "PAYMENTS_URL": "{payments.url}", "SMTP_HOST": "{mail.host}", "SMTP_PORT": "{mail.port}",
    },
)

def row(case):
    key = f"key-{case.number}"
    case.owns(key=key)
    return key
"""
EXPECTED = {
    "postgres_autocommit": {"40001": "SerializationFailure", "57P01": "AdminShutdown"},
    "postgres_commit": {"40001": "SerializationFailure", "57P01": "AdminShutdown"},
    "redis_plain": {"READONLY": "ReadOnlyError", "OOM": "OutOfMemoryError"},
    "redis_transaction": {"READONLY": "ExecAbortError", "OOM": "ExecAbortError"},
    "http": {"500": "HTTPError"},
    "smtp": {"451": "SMTPDataError"},
    "amqp": {"channel-close": "NotFound"},
}


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Every strike of every job, with what the job said that it saw. One run serves all tests of this file."""
    folder = tmp_path_factory.mktemp("refused")
    (folder / "refused.py").write_text(APP + "".join(RUN.format(name=name) for name in EXPECTED))
    (folder / "schema.sql").write_text("create table rows (key text primary key);")
    (folder / "rig.py").write_text(RIG)
    reference = f"{folder / 'rig.py'}:refused"
    jobs = [Job(name, "handler", "row", f"refused:{name}_watched", (at_most_once("mark begun"),)) for name in EXPECTED]
    request = Request(
        command="test",
        rig=load_rig(reference),
        rig_reference=reference,
        jobs=jobs,
        reports=folder / "reports",
        faults=("reset",),
        seed=3,
        verify=1,
    )
    result = facade.run(lambda: facade.explore(request, Bus()))
    lines = (result.folder.path / "journal.jsonl").read_text().splitlines()
    return [line["trial"] for line in map(json.loads, lines) if line["type"] == "trial"]


def struck(trials: list[dict[str, Any]], name: str, fault: str) -> list[dict[str, Any]]:
    """The trials of the job `name` in which a message that is no mark met this strike."""
    found = [
        trial
        for trial in trials
        if trial["subject"] == f"{name}/handler"
        and trial.get("strike", {}).get("fault") == fault
        and any(op.get("fate") == "struck" and op["upstream"] != "marks" for op in trial["operations"])
    ]
    assert found, f"{name} was never struck by {fault}"
    return found


def seen(trials: list[dict[str, Any]], name: str, fault: str) -> set[str]:
    """What the job `name` saw when it met this strike: names of exceptions, and counts."""
    effects = [effect for trial in struck(trials, name, fault) for effect in trial.get("effects", ())]
    return {effect["body"].rsplit(" ", 1)[-1].strip('"') for effect in effects if effect["name"] == "mark saw"}


@pytest.mark.parametrize(("name", "how"), [(name, how) for name, hows in EXPECTED.items() for how in hows])
def test_a_client_gets_the_error_that_its_library_knows(trials: list[dict[str, Any]], name: str, how: str) -> None:
    assert EXPECTED[name][how] in seen(trials, name, f"error-reply {how}")


def test_what_was_refused_did_not_happen(trials: list[dict[str, Any]]) -> None:
    assert "0" in seen(trials, "postgres_autocommit", "error-reply 40001")


@pytest.mark.parametrize("fault", ["lose-request", "lose-reply"])
@pytest.mark.parametrize(("name", "error"), [("postgres_commit", "OperationalError"), ("http", "ConnectionError")])
def test_a_lost_connection_is_an_error_of_the_connection(
    trials: list[dict[str, Any]], name: str, error: str, fault: str
) -> None:
    assert error in seen(trials, name, fault)


def test_the_redis_client_repeats_a_command_whose_reply_was_lost(trials: list[dict[str, Any]]) -> None:
    """tap-notes 6.4: the caller never hears of it, so a producer on Redis can enqueue twice."""
    assert seen(trials, "redis_plain", "lose-reply") == set()
    for trial in struck(trials, "redis_plain", "lose-reply"):
        sent = [op for op in trial["operations"] if op["upstream"] == "cache" and op["way"] == "out"]
        assert sum(op["shape"].startswith("redis SET ") for op in sent) == 2
