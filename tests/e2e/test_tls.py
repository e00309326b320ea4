"""A job that insists on TLS everywhere, as in production, is explored as one that does not."""

from __future__ import annotations

from pathlib import Path

from jobcheck.checks.contracts import exactly_once

from . import tiny

BODY = """
    import os, psycopg, redis, requests
    with psycopg.connect(os.environ["DB"].replace("require", "verify-full")) as db:
        assert db.pgconn.ssl_in_use
        requests.post(os.environ["PAY"] + "/charges", json={"key": key}, timeout=5).raise_for_status()
        db.execute("insert into done values (%s)", (key,))
    with redis.Redis.from_url(os.environ["BROKER_URL"]) as cache:
        cache.incr("done")
"""

RIG = """
import jobcheck

tiny = jobcheck.Rig(
    jobcheck.celery("tiny:app"),
    upstreams={
        "broker": jobcheck.redis(tls=True),
        "db": jobcheck.postgres(tls=True, setup="python migrate.py"),
        "payments": jobcheck.provider(tls=True),
    },
    env={"BROKER_URL": "{broker.url}", "DB": "{db.url}", "PAY": "{payments.base}"},
)

def enqueue(case):
    import tiny
    key = f"key-{case.number}"
    case.owns(key=key)
    tiny.work.delay(key)

def row(case):
    key = f"key-{case.number}"
    case.owns(key=key)
    return key
"""

CHARGED_ONCE = (exactly_once("payments POST /charges"),)


MIGRATE = """
import os, psycopg
with psycopg.connect(os.environ["DB"].replace("require", "verify-full")) as db:
    assert db.pgconn.ssl_in_use
    db.execute("create table done (key text)")
"""


def app(folder: Path) -> str:
    reference = tiny.write(folder, BODY)
    (folder / "rig.py").write_text(RIG)
    (folder / "migrate.py").write_text(MIGRATE)
    return reference


def test_the_handler_is_struck_at_its_points_inside_tls(tmp_path: Path) -> None:
    subject = tiny.only(tiny.explore(app(tmp_path), mode="handler", contracts=CHARGED_ONCE, verify=1))
    assert subject.verdict == "broken", subject.problem
    assert [point.shape for point in subject.points] == ["http POST /charges", "postgres COMMIT", "redis INCRBY done"]
    assert [finding.verdict for finding in subject.findings] == ["duplicated"]


def test_a_celery_worker_fetches_its_jobs_over_rediss(tmp_path: Path) -> None:
    subject = tiny.only(tiny.explore(app(tmp_path), contracts=CHARGED_ONCE, verify=1))
    assert subject.verdict == "broken", subject.problem
    assert [point.shape for point in subject.points if point.upstream != "broker"] == [
        "http POST /charges",
        "postgres COMMIT",
    ]
    assert {finding.layer for finding in subject.findings} == {"handler", "transport"}


FIXED_RIG = """
import jobcheck

tiny = jobcheck.Rig(
    jobcheck.celery("tiny:app"),
    upstreams={"broker": jobcheck.redis(), "payments": jobcheck.provider(host="api.pay.example, *.eu.pay.example")},
    env={"BROKER_URL": "{broker.url}"},
)

def row(case):
    key = f"key-{case.number}"
    case.owns(key=key)
    return key
"""


def test_a_built_in_address_is_led_to_its_stand_in(tmp_path: Path) -> None:
    body = """
    import requests, urllib.request
    for host in ("api.pay.example", "a.eu.pay.example"):
        requests.post(f"https://{host}/charges", json={"key": key}, timeout=5).raise_for_status()
    urllib.request.urlopen("http://api.pay.example/plain", data=key.encode(), timeout=5).read()
"""
    reference = tiny.write(tmp_path, body)
    (tmp_path / "rig.py").write_text(FIXED_RIG)
    subject = tiny.only(tiny.explore(reference, mode="handler", contracts=CHARGED_ONCE, verify=1))
    assert [point.shape for point in subject.points] == ["http POST /charges", "http POST /charges", "http POST /plain"]
    assert {point.code.split(" ")[0] for point in subject.points} == {"tiny.py:18", "tiny.py:19"}
    assert subject.verdict == "broken", subject.problem


def test_a_host_beside_the_declared_ones_is_refused(tmp_path: Path) -> None:
    body = """
    import requests
    requests.post("https://api.other.example/charges", json={"key": key}, timeout=5)
"""
    reference = tiny.write(tmp_path, body)
    (tmp_path / "rig.py").write_text(FIXED_RIG)
    subject = tiny.only(tiny.explore(reference, mode="handler", contracts=CHARGED_ONCE, verify=1))
    assert subject.verdict == "unknown"
    assert "the job wants to talk to api.other.example:443, which is neither tapped nor declared" in subject.problem
