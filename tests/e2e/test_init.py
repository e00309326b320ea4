"""What `jobcheck init` finds out about apps of other kinds. Their settings are imported in real children."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jobcheck.errors import UsageError, WorkerError
from jobcheck.onboarding.facade import Found, find, texts
from jobcheck.runner.surroundings import PRELOAD

DB = """
import os
from sqlalchemy import create_engine

engine = create_engine(os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://"))
"""
JOBS = """
import os
import requests
from celery import Celery
from .db import engine

app = Celery("shop", broker=os.environ["CELERY_BROKER_URL"])
PORT = int(os.environ["METRICS_PORT"])


@app.task
def tidy():
    pass


@app.task
def charge(order_id, note: str, again=False):
    requests.post(os.environ["PAYMENTS_URL"] + "/charges", json={"order": order_id}, timeout=10)
"""


def app(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def found(folder: Path) -> Found:
    return find(folder, sys.executable)


def test_an_app_with_sqlalchemy_whose_engine_is_made_at_import(tmp_path):
    (tmp_path / "requirements.txt").write_text("celery[redis]\nsqlalchemy\n")
    (tmp_path / "alembic.ini").touch()
    seen = found(app(tmp_path, shop____init__="", shop__db=DB, shop__jobs=JOBS))
    assert seen.plan.upstreams == {"broker": "redis", "db": "postgres", "payments": "provider"}
    assert seen.plan.env == {
        "CELERY_BROKER_URL": "{broker.url}",
        "DATABASE_URL": "{db.url}",
        "PAYMENTS_URL": "{payments.base}",
        "METRICS_PORT": seen.plan.env["METRICS_PORT"],
    }
    assert seen.plan.env["METRICS_PORT"].isdigit()
    assert seen.plan.made_up == ["METRICS_PORT"]
    assert seen.setup == "alembic upgrade head"
    assert [task["function"] for task in seen.tasks] == ["charge", "tidy"], "the one with a call first"
    assert seen.plan.doubts == ["what shop.jobs.charge needs as order_id, note: complete its function in the rig"]
    rig = texts(seen, tmp_path)["tests/jobs/jobcheck_rig.py"]
    assert "    charge.delay(order_id, note)\n" in rig


def test_addresses_that_no_variable_sets_are_laid_over_the_modules_that_hold_them(tmp_path):
    config = 'PAYMENTS_URL = "https://pay.example/v2"\nBROKER = "amqp://guest:guest@rabbit//"\n'
    jobs = 'from celery import Celery\nfrom shop import config\n\napp = Celery("shop", broker=config.BROKER)\n'
    seen = found(app(tmp_path, shop____init__="", shop__config=config, shop__jobs=jobs))
    assert seen.plan.override["shop.config"] == {"PAYMENTS_URL": "{payments.base}/v2", "BROKER": "{broker.url}"}
    assert seen.plan.override["shop.jobs"] == {"app.conf.broker_url": "{broker.url}"}
    assert seen.plan.upstreams == {"broker": "rabbitmq", "payments": "provider"}


def test_what_cannot_be_imported_is_told_with_its_line_and_nothing_is_written(tmp_path):
    app(tmp_path, jobs='from celery import Celery\n\napp = Celery("shop")\nraise RuntimeError("no licence")\n')
    with pytest.raises(WorkerError, match=r"^jobs cannot be imported: RuntimeError: no licence \(jobs.py:4\)"):
        found(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "jobcheck", "init"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: jobs cannot be imported: RuntimeError: no licence (jobs.py:4)\ntry: ")
    assert not (tmp_path / "tests").exists()


def test_a_project_without_celery_is_told_what_it_has_instead(tmp_path):
    (tmp_path / "requirements.txt").write_text("rq>=1.0\n")
    with pytest.raises(UsageError, match=r"no Celery app in .*; the project uses rq, which jobcheck does not know yet"):
        found(tmp_path)


def test_jobs_of_the_packages_that_an_app_uses_where_it_has_none_of_its_own(tmp_path):
    jobs = "from celery import Celery\n\napp = Celery('site', broker='redis://r/0', include=['parcels.tasks'])\n"
    tasks = "from celery import shared_task\n\n@shared_task\ndef deliver(parcel: int):\n    pass\n"
    tasks += "\n@shared_task\ndef _own():\n    '''charges, mails and the like'''\n"
    package = tmp_path / "site-packages" / "parcels"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "tasks.py").write_text(tasks)
    seen = found(app(tmp_path, jobs=f"import sys\nsys.path.append({str(package.parent)!r})\n{jobs}"))
    assert [(task["name"], task["needs"]) for task in seen.tasks] == [
        ("parcels.tasks.deliver", ["parcel"]),
        ("parcels.tasks._own", []),
    ]
    assert '    packages=["parcels"],' in texts(seen, tmp_path)["tests/jobs/jobcheck_rig.py"]


FACTORY = """
from celery import Celery

def make():
    return Celery("shop", broker="redis://r/0")
"""


def test_an_app_that_a_factory_makes_and_one_that_is_named(tmp_path):
    jobs = "from made import make\n\ncelery = {}\n\n@celery.task\ndef tidy():\n    pass\n"
    app(tmp_path, made=FACTORY, jobs=jobs.format("make_celery()").replace("import make", "import make as make_celery"))
    assert found(tmp_path).plan.celery == "jobs:celery"
    app(tmp_path, jobs=jobs.format("make()"))
    with pytest.raises(UsageError, match="no Celery app in") as told:
        found(tmp_path)
    assert "--app MODULE:NAME" in told.value.hint
    assert [task["name"] for task in find(tmp_path, sys.executable, "jobs:celery").tasks] == ["jobs.tidy"]


READS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import jobcheck_reads
seen = []
jobcheck_reads.watch(".", lambda name, value, where: seen.append([name, value, where]))
import settings
print(json.dumps(seen))
"""


def test_variables_are_seen_also_where_jobcheck_is_installed_as_a_package(tmp_path):
    installed = tmp_path / "venv" / "site-packages" / "jobcheck"
    shutil.copytree(PRELOAD, installed)
    app(tmp_path, settings="import os\n\nHOST = os.environ.get('MAIL_SERVER')\n", ask=READS)
    command = [sys.executable, "ask.py", str(installed)]
    done = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [["MAIL_SERVER", None, "settings.py:3"]]
