"""Payloads of one version on real workers of another: a small app on a real Redis, and the sample shop."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jobcheck.errors import UsageError
from jobcheck.events import Bus
from jobcheck.payloads.facade import Checked, CheckRequest, RecordRequest, check_payloads, record_payloads, verdict_of
from jobcheck.runner.rig import Rig, load_rig
from jobcheck.runner.versions import Version, checkout, current_name, rig_at, version_of
from jobcheck.services.spec import RabbitMQ

APPS = Path(__file__).parents[2] / "scenarios" / "apps"

RIG = """
import jobcheck

mini = jobcheck.Rig(
    jobcheck.celery("mini:app"),
    upstreams={"broker": jobcheck.redis(), "store": jobcheck.redis()},
    env={"BROKER_URL": "{broker.url}", "STORE_URL": "{store.url}"},
)


def orders(case):
    import mini

    order = 700000 + case.number
    mini.store.set(f"order:{order}", "open")
    case.owns(order=order)
    mini.ship.delay(order)
    mini.pack.delay({"order": order, "colour": "red", "weight": 3})
    mini.stubborn.delay(order)
    mini.mail.delay("ada@example.com", password="hunter2")
    mini.close.delay(order)


def unbound(case):
    import mini

    mini.close.delay(1)


def row(case, payload):
    import mini

    mini.store.set("order:1", "open")
"""

V1 = """
import os

import redis
from celery import Celery

app = Celery("mini", broker=os.environ["BROKER_URL"])
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True, task_acks_late=True)
store = redis.Redis.from_url(os.environ["STORE_URL"])


@app.task
def ship(order):
    store.set(f"shipped:{order}", 1)
    follow.delay(order)


@app.task
def follow(order):
    store.set(f"followed:{order}", 1)


@app.task
def pack(parcel):
    store.set("packed", parcel["colour"])


@app.task(autoretry_for=(Exception,), retry_backoff=60)
def stubborn(order):
    store.set(f"stubborn:{order}", 1)


@app.task
def mail(to, password):
    store.set("mailed", 1)


@app.task
def close(order):
    store.set("closed", store.get(f"order:{order}").decode())
"""

V2 = (
    V1.replace("def ship(order):", "def ship(order, speed):")
    .replace("follow.delay(order)", "track.delay(order)")
    .replace("def follow(order):", "def track(order):")
    .replace('parcel["colour"]', 'parcel["color"]')
    .replace("def stubborn(order):", "def stubborn(order, again):")
    .replace("def mail(to, password):", "def mail(to, password, copy=None):")
)
V2_RIG = (
    RIG.replace("ship.delay(order)", "ship.delay(order, 9)")
    .replace('"colour"', '"color"')
    .replace("stubborn.delay(order)", "stubborn.delay(order, again=True)")
)


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def write_app(folder: Path, app: str, rig: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mini.py").write_text(app)
    (folder / "rig.py").write_text(rig)


def fresh_rig(folder: Path, name: str = "mini") -> Rig:
    return load_rig(f"{folder / 'rig.py'}:{name}")


def words(checked: Checked) -> dict[str, tuple[str, str]]:
    """Verdicts by the last part of each task's name: old payload on new workers, and the reverse."""
    return {
        row.task.rpartition(".")[2]: (str(verdict_of(row.forward)), str(verdict_of(row.backward)))
        for row in checked.rows
    }


def reasons(checked: Checked, task: str) -> list[str]:
    return [
        f"{answer.judgement.reason} | {answer.judgement.line} | {answer.advice}"
        for row in checked.rows
        if row.task.endswith(f".{task}")
        for answer in row.answers
    ]


def test_payloads_of_a_git_revision_meet_the_working_tree(tmp_path: Path) -> None:
    """The whole way on the command line: record, commit, change the code, check; one kind of fault after another."""
    project = tmp_path / "project"
    write_app(project, V1, RIG)
    (project / "pyproject.toml").write_text('[tool.jobcheck]\nrig = "rig.py:mini"\n')
    (project / ".gitignore").write_text("reports/\n__pycache__/\n")
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "version 1")
    revision = git(project, "rev-parse", "--short", "HEAD")

    recorded = jobcheck(project, "payloads", "record", "orders")
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    files = sorted((project / "payloads" / revision).rglob("*.json"))
    assert [path.parent.name for path in files] == [
        *("mini.close", "mini.follow", "mini.mail", "mini.pack", "mini.ship", "mini.stubborn")
    ]
    assert "e-mail address: a...@example.com" in recorded.stdout
    assert "hunter2" not in "".join(path.read_text() for path in files) + recorded.stdout
    again = jobcheck(project, "payloads", "record", "orders")
    assert "6 payloads, 0 new" in again.stdout

    write_app(project, V2, V2_RIG)
    checked = jobcheck(project, "payloads", "check", "--json")
    assert checked.returncode == 1, checked.stdout + checked.stderr
    told = json.loads(checked.stdout)
    assert (told["old"], told["new"]) == (revision, "working tree")
    by_task = {row["task"].rpartition(".")[2]: row for row in told["tasks"]}
    assert {
        task: tuple(
            told and (told["verdict"], told["fault"])
            for told in (row["old_payload_new_worker"], row["new_payload_old_worker"])
        )
        for task, row in by_task.items()
    } == {
        "close": (("ok", ""), ("ok", "")),
        "follow": (("lost", "unregistered task"), None),
        "track": (None, ("lost", "unregistered task")),
        "mail": (("ok", ""), ("ok", "")),
        "pack": (("broken", "failed while reading its payload"), ("broken", "failed while reading its payload")),
        "ship": (("broken", "does not fit the function"), ("broken", "does not fit the function")),
        "stubborn": (("broken", "does not fit the function"), ("broken", "does not fit the function")),
    }
    assert by_task["pack"]["old_payload_new_worker"]["line"].startswith("mini.py:")
    assert by_task["pack"]["differences"] == ["parcel.colour renamed to parcel.color"]
    assert by_task["ship"]["differences"] == ["speed added: integer (required)"]
    assert by_task["mail"]["differences"] == ["copy accepted now (optional), not sent"]
    assert by_task["follow"]["renamed"] == "mini.track"
    assert not list(Path(project).glob(".git/worktrees/*")), "the repository was left as it was"


def jobcheck(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jobcheck", *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def test_rows_that_are_not_there_are_no_fault_of_a_version(tmp_path: Path) -> None:
    """A payload whose ids nobody can make is unknown; with a `prepare` function it is ok."""
    write_app(tmp_path / "v1", V1, RIG)
    rig = fresh_rig(tmp_path / "v1")
    old = f"v1={tmp_path / 'v1'}"
    base = CheckRequest(
        rig=rig, payloads=tmp_path / "none", against=old, functions=["unbound"], reports=tmp_path / "reports"
    )
    checked = asyncio.run(check_payloads(base, Bus()))
    assert words(checked) == {"close": ("unknown", "unknown")}
    assert checked.exit_code == 2
    assert all("NoneType" in reason and "--prepare" in reason for reason in reasons(checked, "close"))
    checked = asyncio.run(check_payloads(replace(base, prepare="row"), Bus()))
    assert words(checked) == {"close": ("ok", "ok")}
    assert checked.exit_code == 0


IN_YAML = '\napp.conf.update(task_serializer="yaml", accept_content=["yaml"])\n'
SLOW = V1.replace("def ship(order):\n", "def ship(order):\n    import time\n    time.sleep(60)\n")


def test_another_serializer_a_hanging_job_and_a_worker_that_does_not_boot(tmp_path: Path) -> None:
    """Refused content is lost, a job without an end is unknown, and old code that cannot run is a note."""
    write_app(tmp_path / "v1", V1, RIG)
    write_app(tmp_path / "in_yaml", V1 + IN_YAML, RIG)
    write_app(tmp_path / "slow", SLOW, RIG)
    write_app(tmp_path / "broken", "import no_such_library\n", RIG)
    rig = fresh_rig(tmp_path / "v1")
    reports = tmp_path / "reports"

    async def main() -> None:
        recorded = await record_payloads(RecordRequest(rig, ["orders"], tmp_path / "p", "v1", reports=reports), Bus())
        assert recorded.exit_code == 0

        ask = CheckRequest(rig, tmp_path / "p", f"v1={tmp_path / 'v1'}", tasks=["ship"], reports=reports)
        checked = await check_payloads(replace(ask, code=str(tmp_path / "in_yaml")), Bus())
        assert words(checked) == {"ship": ("lost", "lost")}
        assert "accept both serializers" in reasons(checked, "ship")[0]

        checked = await check_payloads(
            replace(ask, against="v1", code=str(tmp_path / "slow"), functions=["unbound"], within=0.5), Bus()
        )
        assert words(checked) == {"ship": ("unknown", "None")}
        assert "the code of v1 is not at hand" in checked.notes[0]
        assert "nothing was heard of it in 0.5 s" in reasons(checked, "ship")[0]

        checked = await check_payloads(replace(ask, against=f"v1={tmp_path / 'broken'}"), Bus())
        assert words(checked) == {"ship": ("ok", "None")}
        assert "no_such_library" in " ".join(checked.notes)

    asyncio.run(main())


def test_rabbitmq_takes_payloads_that_were_recorded_on_redis(tmp_path: Path) -> None:
    """A message is kept in one form; and a job that never ends does not come back to the next worker."""
    write_app(tmp_path / "v1", V1, RIG)
    write_app(tmp_path / "slow", SLOW, RIG)
    rig = fresh_rig(tmp_path / "v1")
    reports = tmp_path / "reports"

    async def main() -> None:
        await record_payloads(RecordRequest(rig, ["orders"], tmp_path / "p", "v1", reports=reports), Bus())
        on_rabbitmq = replace(rig, upstreams={**rig.upstreams, "broker": RabbitMQ()})
        ask = CheckRequest(on_rabbitmq, tmp_path / "p", "v1", code=str(tmp_path / "slow"), reports=reports)
        checked = await check_payloads(replace(ask, tasks=["ship", "stubborn"], functions=["unbound"], within=2), Bus())
        assert words(checked) == {"ship": ("unknown", "None"), "stubborn": ("ok", "None")}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("rig", "variant", "expected", "code"),
    [
        (
            "shop",
            "right",
            {
                "render_invoice_pdf": ("ok", "ok"),
                "charge_card": ("ok", "ok"),
                "send_invoice_email": ("ok", "ok"),
                "sync_invoice_to_accounting": ("ok", "ok"),
            },
            0,
        ),
        (
            "shop_on_rabbitmq",
            "wrong",
            {
                "render_invoice_pdf": ("ok", "ok"),
                "charge_card": ("broken", "broken"),
                "send_invoice_email": ("ok", "ok"),
                "sync_invoice_to_accounting": ("lost", "None"),
                "book_invoice": ("None", "lost"),
            },
            1,
        ),
    ],
)
def test_the_next_version_of_the_shop(
    tmp_path: Path, rig: str, variant: str, expected: dict[str, tuple[str, str]], code: int
) -> None:
    """The right one goes through in both directions (Redis); in the wrong one exactly what is planted is found
    (RabbitMQ)."""
    request = CheckRequest(
        rig=load_rig(f"{APPS / 'invoices' / 'rig.py'}:{rig}"),
        payloads=tmp_path,
        against=f"v1={APPS / 'invoices'}",
        code=str(APPS / "invoices_v2" / variant),
        functions=["new_invoice"],
        reports=tmp_path / "reports",
    )
    checked = asyncio.run(check_payloads(request, Bus()))
    assert words(checked) == expected
    assert checked.exit_code == code
    assert (checked.folder / "payloads.json").is_file()


def test_a_version_is_a_folder_an_interpreter_or_a_revision(tmp_path: Path) -> None:
    """Each gives the same rig at another place; what is none of them is a usage error."""
    project = tmp_path / "project"
    write_app(project / "app", V1, RIG)
    (project / ".gitignore").write_text("__pycache__/\n")
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "version 1")
    rig = fresh_rig(project / "app")
    revision = current_name(rig)
    (project / "app" / "mini.py").write_text(V2)
    assert current_name(rig) == f"{revision}-dirty"

    temp = tmp_path / "temp"
    old = rig_at(rig, version_of(revision, rig, base=tmp_path, temp=temp))
    assert (old.folder / "mini.py").read_text() == V1
    assert old.reference("orders") == f"{old.folder / 'rig.py'}:orders", "the rig's functions are that version's too"
    assert (checkout("HEAD", project, temp) / "app" / "mini.py").exists(), "a second one has a folder of its own"
    assert git(project, "status", "--porcelain") == "M app/mini.py", "the repository is as it was"

    write_app(tmp_path / "other", V2, RIG)
    other = rig_at(rig, version_of("other", rig, base=tmp_path, temp=temp))
    assert other.folder == tmp_path / "other"
    python = version_of(sys.executable, rig, base=tmp_path, temp=temp, name="py")
    assert rig_at(rig, python).system.interpreter == sys.executable
    assert rig_at(rig, python).folder == rig.folder
    assert rig_at(rig, Version("same")).folder == rig.folder
    with pytest.raises(UsageError, match="no-such-thing"):
        version_of("no-such-thing", rig, base=tmp_path, temp=temp)
    with pytest.raises(UsageError, match="--output=x"):
        version_of("--output=x", rig, base=tmp_path, temp=temp)


def test_nothing_to_replay_is_a_usage_error(tmp_path: Path) -> None:
    """With what to do about it."""
    write_app(tmp_path, V1, RIG)
    request = CheckRequest(fresh_rig(tmp_path), tmp_path / "payloads", reports=tmp_path / "reports")
    with pytest.raises(UsageError, match="no recorded payloads"):
        asyncio.run(check_payloads(request, Bus()))
