"""What jobcheck must not touch, and what it must not write down: given servers, and secrets."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from jobcheck.services import Service
from jobcheck.services import start as start_service
from jobcheck.services.spec import Postgres, Redis
from jobcheck.store.redact import Redactor
from jobcheck.workers.guardian import Guardian
from jobcheck.workers.supervisor import Supervisor

from . import tiny
from .bad_day import HANDLER, QUEUE, ROW, jobcheck, project, rig, start

PASSWORD = "users-own-pw-77"


@asynccontextmanager
async def users_server(spec: Redis | Postgres, folder: Path) -> AsyncIterator[Service]:
    """A server that is not jobcheck's: it belongs to another run than those that are started in the test."""
    folder.mkdir()
    folder.chmod(0o755)
    run = f"usersown{folder.name}"  # its end is the end of all that carries it
    guardian = Guardian.start(run)
    supervisor = Supervisor(run, folder / "logs", guardian)
    try:
        service = await start_service(
            spec, name="own", supervisor=supervisor, guardian=guardian, folder=folder, environ={}
        )
        try:
            yield service
            assert service.alive, "it lives still"
        finally:
            await service.stop()
    finally:
        await supervisor.close()
        guardian.close()


def redis_at(service: Service, number: int = 0) -> redis.Redis:
    return redis.Redis(port=service.address.port, db=number, password=PASSWORD)


def test_a_given_redis_is_not_flushed_restarted_or_killed(tmp_path: Path) -> None:
    """A whole exploration, then one that is killed: what is the user's stays, key by key."""

    async def main() -> None:
        async with users_server(Redis(), tmp_path / "server") as service:
            with redis.Redis(port=service.address.port) as client:
                client.config_set("requirepass", PASSWORD)
            for number in (0, 1, 5):
                with redis_at(service, number) as client:
                    client.mset({f"key{count}": count for count in range(50)})
            before, run_id = users_keys(service), info(service)["run_id"]
            url = f"redis://:{PASSWORD}@127.0.0.1:{service.address.port}/0"
            folder = project(tmp_path / "project", tiny.TWICE, text=rig(f'"broker": jobcheck.redis(url="{url}")'))
            ended = await asyncio.to_thread(jobcheck, folder, "explore", *QUEUE, "--max-points", "3")
            ended.says(0, f"given: redis://:***@127.0.0.1:{service.address.port}/0", "3 fired: ")
            with redis_at(service, 2) as client:  # the first empty number was taken
                assert client.dbsize() == 0, "and is empty again"
            assert users_keys(service) == before
            await asyncio.to_thread(killed, folder)
            assert users_keys(service) == before
            assert info(service)["run_id"] == run_id
            commands = info(service, "commandstats")
            harsh = [name for name in commands if re.search("flush|shutdown|debug|swapdb|config.set", name)]
            assert harsh == ["cmdstat_config|set"], "the test's own"
            assert commands["cmdstat_config|set"]["calls"] == 1
            assert PASSWORD not in written(folder)

    asyncio.run(main())


def users_keys(service: Service) -> dict[int, dict[bytes, Any]]:
    """Every key and value of the numbers that hold the user's data."""
    found = {}
    for number in (0, 1, 5):
        with redis_at(service, number) as client:
            found[number] = {key: client.get(key) for key in client.scan_iter()}
    return found


def info(service: Service, section: str = "server") -> dict[str, Any]:
    with redis_at(service) as client:
        return dict(client.info(section))


def killed(folder: Path) -> None:
    """A run that is killed in the middle."""
    with start(folder, "explore", *QUEUE) as run:
        run.trials(1)
        run.send(signal.SIGKILL)
        run.end()


def test_a_given_postgres_keeps_its_databases_its_rows_and_its_connections(tmp_path: Path) -> None:
    async def main() -> None:
        async with users_server(Postgres(), tmp_path / "server") as service:
            port = service.address.port
            with psycopg.connect(host="127.0.0.1", port=port, user="postgres", autocommit=True) as admin:
                admin.execute("CREATE DATABASE shop")
            with psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="shop", autocommit=True) as users:
                users.execute("CREATE TABLE done (key text); INSERT INTO done VALUES ('one'), ('two')")
                users.execute("SET application_name = 'the users own'")
                before = state_of(users)
                url = f"postgresql://postgres:{PASSWORD}@127.0.0.1:{port}/shop"
                upstreams = f'"broker": jobcheck.redis(), "db": jobcheck.postgres(url="{url}", setup="CREATE.sql")'
                text = rig(upstreams, '"BROKER_URL": "{broker.url}", "DB_URL": "{db.url}"')
                folder = project(tmp_path / "project", ROW + tiny.ONCE, text=text)
                (folder / "CREATE.sql").write_text("CREATE TABLE done (key text)")
                ended = await asyncio.to_thread(jobcheck, folder, "explore", *HANDLER)
                ended.says(0, f"given: postgresql://postgres:***@127.0.0.1:{port}/shop", "4 fired: 4 ok")
                assert state_of(users) == before, "databases, rows and the session itself"
                assert PASSWORD not in written(folder)

    asyncio.run(main())


def state_of(connection: psycopg.Connection[Any]) -> list[Any]:
    """What must stay: when the server started, its databases, the rows, and this very session."""
    questions = (
        "SELECT pg_postmaster_start_time()",
        "SELECT datname FROM pg_database ORDER BY 1",
        "SELECT key FROM done ORDER BY 1",
        "SELECT pg_backend_pid()",
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'",
    )
    return [connection.execute(question).fetchall() for question in questions]


# Secrets

CARD, TOKEN, LOGIN, FIELD, COOKIE, VALUE = (
    "4242424242424242",
    "sk_live_51HxAbCdEfGhIjKlMnOp",
    "url-passw0rd",
    "field-passw0rd",
    "sid-c00kie-value",
    "plain-value-of-a-variable",
)
SECRETS = (CARD, TOKEN, LOGIN, FIELD, COOKIE, VALUE)
SENDS = f"""
    import json, os, smtplib, urllib.request, psycopg
    body = {{"card": {{"number": "{CARD}"}}, "password": "{FIELD}", "key": key}}
    body["callback"] = "https://u:{LOGIN}@example.com/"
    headers = {{"Authorization": "Bearer {TOKEN}", "Cookie": "sid={COOKIE}", "Content-Type": "application/json"}}
    url = os.environ["PAYMENTS_URL"] + "/charges?token={TOKEN}"
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")).read()
    with psycopg.connect(os.environ["DB_URL"], autocommit=True) as connection:
        connection.execute("INSERT INTO users (key, card, password) VALUES (%s, '{CARD}', %s)", [key, "{FIELD}"])
        connection.execute("UPDATE users SET password = '{FIELD}' WHERE key = %s", [key])
    mail = smtplib.SMTP(os.environ["SMTP_HOST"], int(os.environ["SMTP_PORT"]))
    mail.sendmail("a@example.com", [key + "@example.com"], "Subject: " + key + "\\n\\nYour password: {FIELD}, {CARD}")
    mail.quit()
    jobcheck.mark("done", key + " by " + os.environ["API_SECRET"])
    print("the app logs {TOKEN} by itself")
"""
RIG = f"""
import jobcheck

tiny = jobcheck.Rig(
    jobcheck.celery("tiny:app"),
    upstreams={{
        "broker": jobcheck.redis(), "db": jobcheck.postgres(setup="users.sql"),
        "payments": jobcheck.provider(), "mail": jobcheck.smtp(),
    }},
    env={{
        "BROKER_URL": "{{broker.url}}", "DB_URL": "{{db.url}}", "PAYMENTS_URL": "{{payments.base}}",
        "SMTP_HOST": "{{mail.host}}", "SMTP_PORT": "{{mail.port}}",
        "API_SECRET": "{VALUE}",
    }},
)

def enqueue(case):
    import tiny
    key = f"key-{{case.number}}"
    case.owns(key=key)
    tiny.work.delay(key, "{TOKEN}", password="{FIELD}", card="{CARD}")
"""


def test_no_secret_is_written_down_and_their_number_is_shown(tmp_path: Path) -> None:
    """Headers, cookies, logins in URLs, cards, fields and SQL values, and the Base64 that Celery sends."""
    folder = project(tmp_path / "project", SENDS, text=RIG)
    source = (folder / "tiny.py").read_text().replace("def work(key)", "def work(key, *args, **kwargs)")
    (folder / "tiny.py").write_text(source)
    (folder / "users.sql").write_text("CREATE TABLE users (key text, card text, password text)")
    words = ("explore", *QUEUE, "--expect", "exactly_once: payments POST /charges", "--max-points", "8")
    ended = jobcheck(folder, *words).says(1, "duplicated")
    (report,) = (folder / "reports").glob("2*/report.json")
    redacted = json.loads(report.read_text())["redacted"]
    assert redacted > 100
    assert f"{redacted} secrets redacted" in ended.out
    assert f"{redacted} secrets redacted" in (report.parent / "report.html").read_text()
    text = written(folder) + ended.out + ended.err
    encoded = [run[: len(run) // 4 * 4] for run in re.findall(BASE64, text)]
    decoded = "".join(base64.b64decode(run).decode("utf-8", "ignore") for run in encoded)
    assert [secret for secret in SECRETS if secret in text + decoded] == []
    # What the app itself logs is the app's, as it wrote it, and in a file of its own.
    assert TOKEN in "".join(path.read_text() for path in (report.parent / "output").glob("tiny-0-w*.log"))


IBAN = "DE89370400440532013000"
STORES = f"""
    import json, os, urllib.request
    body = {{"iban": "{IBAN}", "password": "{FIELD}", "key": key}}
    headers = {{"Authorization": "Bearer {TOKEN}", "Content-Type": "application/json"}}
    url = os.environ["PAYMENTS_URL"] + "/charges"
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")).read()
    import redis
    client = redis.Redis.from_url(os.environ["CACHE_URL"])
    client.hset("user:" + key, mapping={{"name": "ann", "password": "{FIELD} with spaces", "customer_iban": "{IBAN}"}})
    client.close()
"""


def test_fields_of_the_projects_own_are_secret_and_bodies_can_be_kept(tmp_path: Path) -> None:
    """Credentials in headers are taken out all the same; the run says that bodies were kept."""
    text = rig(
        '"broker": jobcheck.redis(), "payments": jobcheck.provider(), "cache": jobcheck.redis()',
        '"BROKER_URL": "{broker.url}", "PAYMENTS_URL": "{payments.base}", "CACHE_URL": "{cache.url}"',
    )
    folder = project(tmp_path / "project", STORES, text=text)
    (folder / "pyproject.toml").write_text('[tool.jobcheck]\nrig = "rig.py:tiny"\nsecrets = ["iban"]\n')
    words = ("explore", *HANDLER[:4], "--expect", "at_least_once: payments POST /charges", "--max-points", "1")
    jobcheck(folder, *words).says(0, "secrets redacted")
    text = written(folder)
    assert "HSET user:key-" in text
    assert [secret for secret in (IBAN, FIELD, "with spaces", TOKEN) if secret in text] == []
    jobcheck(folder, *words, "--keep-bodies").says(0)
    text = written(folder)
    assert [secret for secret in (IBAN, FIELD, "with spaces", TOKEN) if secret in text] == [IBAN, FIELD, "with spaces"]
    assert (
        json.loads((folder / "reports/latest/report.json").read_text())["environment"]["bodies"] == "kept as they are"
    )


BASE64 = r"[A-Za-z0-9+/]{24,}"


def written(folder: Path) -> str:
    """All that jobcheck wrote in a project; the app's source and its workers' own logs are left out."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc", ".sql")]
    return "\n".join(path.read_text(errors="replace") for path in files if path.parent.name != "output")


PASSES = base64.b64encode(b'[["sk_live_51HxAbCdEfGh"], {"password": "hunter2"}, {}]').decode()
"""As Celery sends arguments."""


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('{"password": "hunter2-very-lo…', "hunter2"),
        ("POST https://u:hunter2-very…", "hunter2"),
        ("charge 42424242424…", "42424242424"),
        ("INSERT INTO users (email, password) VALUES ('a', 'hunter2')", "hunter2"),
        ("INSERT INTO u (a, \"password_hash\") VALUES (now(), 'x'), (lower('A'), 'hunter2') RETURNING id", "hunter2"),
        ("INSERT INTO u (a, password) VALUES ('a', 'hunter2-very…", "hunter2"),
        (f"LPUSH celery {PASSES}", PASSES),
        (f"LPUSH celery {PASSES[:30]}…", PASSES[:30]),
    ],
)
def test_a_secret_is_seen_where_a_text_was_cut_in_sql_and_in_base64(text: str, secret: str) -> None:
    assert secret in text
    redactor = Redactor(b"salt")
    assert secret not in redactor.text(text)
    assert redactor.count > 0


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO users (email, name) VALUES ('a', 'b')",
        "INSERT INTO users (email, password) VALUES ($1, $2)",
        "LPUSH celery " + base64.b64encode(b'[["key-1"], {}, {"callbacks": null}]').decode(),
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor(b"salt").text(text) == text
