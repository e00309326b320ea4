"""The first ten minutes: a Django shop that jobcheck has never seen, and what its developer types."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WITHIN = 400
"""Seconds for one command on a machine that is busy; alone it takes some ten."""
pytestmark = pytest.mark.timeout(900)
SHOP = Path(__file__).parents[2] / "scenarios" / "apps" / "django_shop"

JOBS = """
from jobcheck import at_least_once, exactly_once


def order_id(case):
    from django.conf import settings
    from orders.models import Order

    assert settings.SETTINGS_MODULE == "config.settings.production", settings.SETTINGS_MODULE
    assert settings.DATABASES["default"]["ENGINE"].endswith("postgresql")
    return make(case).pk


def make(case):
    from accounts.models import User
    from orders.models import Order

    user = User.objects.create(username=f"u{case.number}", email=f"case-{case.number}@example.com")
    order = Order.objects.create(customer=user)
    case.owns(order=order.pk, mail=user.email)
    return order


def test_the_announcement_itself(jobcheck_handler):
    job = jobcheck_handler("orders.tasks:announce_to_warehouse", case=order_id)
    job.explore(expect=[at_least_once("warehouse")])


def test_the_charge_itself(jobcheck_handler):
    job = jobcheck_handler("orders.tasks:charge_order", case=order_id)
    job.explore(expect=[exactly_once("stripe POST /v1/payment_intents")], max_points=2)
"""


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A copy of the shop, as if it had never been near jobcheck, and what `jobcheck init` said there."""
    folder = tmp_path_factory.mktemp("first") / "shop"
    shutil.copytree(SHOP, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder, run(folder, "jobcheck", "init")


@pytest.fixture
def shop(first: tuple[Path, str], tmp_path: Path) -> Path:
    """The shop after `jobcheck init`, for one test."""
    return Path(shutil.copytree(first[0], tmp_path / "shop"))


def run(folder: Path, *words: str, code: int = 0) -> str:
    """Types a command in a shell that carries a developer's variables; gives what it said."""
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings.test", "DB_HOST": "production.example"}
    env.pop("COLUMNS", None)
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=WITHIN)
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout


def test_init_probe_and_explore_show_the_planted_bug_with_its_line(first, shop):
    _, said = first
    assert "config.settings.production (config/celery.py, config/wsgi.py)" in said
    assert "db         postgres: DB_HOST, DB_PORT, DB_NAME, DB_USER, DB_PASSWORD" in said
    assert "broker     redis: REDIS_HOST, REDIS_PORT" in said
    assert "AWS_SES_REGION_ENDPOINT_URL (laid over the settings)" in " ".join(said.split())
    assert "stripe     stripe: its own library is told where it is" in said
    assert "made up    SECRET_KEY" in said
    assert "not known" not in said
    assert "next: jobcheck probe charge_order" in said

    seen = run(shop, "jobcheck", "probe", "charge_order")
    assert re.search(r"stripe POST /v1/payment_intents +orders/payments.py:\d+ charge\n", seen)
    assert re.search(r"DB_HOST +by the rig +config/settings/base.py:\d+\n", seen)
    assert re.search(r"STRIPE_SECRET_KEY +not set by the rig +config/settings/base.py:\d+\n", seen)
    assert "(its result)" in seen
    assert "broker SET shop:*:shipping-rates came in the first job only" in seen
    command = seen.splitlines()[-1]
    assert command.startswith("jobcheck explore charge_order --expect 'exactly_once: stripe POST /v1/payment_intents'")

    found = run(shop, *shlex.split(command), "--max-points", "4", code=1)
    assert "✗ stripe POST /v1/payment_intents happens again when the worker dies after" in found
    assert re.search(r"code +orders/payments.py:\d+ charge\n", found)

    again = run(shop, "jobcheck", "init")
    assert again.count("kept ") == 4
    assert "written" not in again


def without_aws(shop: Path, more: str = "") -> None:
    """Takes AWS out of the rig, whose stand-in takes seconds to start, and adds a function of the developer's."""
    rig = shop / "tests" / "jobs" / "jobcheck_rig.py"
    text = "".join(line for line in rig.read_text().splitlines(True) if "aws" not in line)
    rig.write_text(f"{text}\n\n{more}")


PHONE_ORDER = """
def phone_order(case):
    from orders.services import place_phone_order

    email = f"case-{case.number}@example.com"
    case.owns(mail=email, order=place_phone_order(email, {}).pk)
"""


def test_a_job_that_is_enqueued_inside_the_transaction_is_found_with_its_line(shop):
    without_aws(shop, PHONE_ORDER)
    found = run(shop, "jobcheck", "explore", "--producer", "phone_order", code=1)
    title = "✗ job orders.tasks.charge_order is enqueued without a row when the producer dies after broker LPUSH celery"
    assert f"{title}, before db COMMIT" in " ".join(found.split())
    assert re.search(r"code +orders/services\.py:\d+ place_phone_order\n", found)
    assert "2 points, 3 strikes, 3 fired: 2 ok, 1 unexpected" in found


READY = """
from django.apps import AppConfig

class CoreConfig(AppConfig):
    name = "core"

    def ready(self):
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("select 1")
"""


def test_an_app_that_queries_while_it_is_imported_shares_no_connection_with_its_forks(shop):
    (shop / "core" / "apps.py").write_text(READY)
    without_aws(shop, "def order_id(case):\n    return order_row(case).pk\n")
    words = ["--handler", "orders.tasks:announce_to_warehouse", "--case", "order_id"]
    said = run(shop, "jobcheck", "explore", *words, "--expect", "at_least_once: warehouse")
    assert "2 points, 3 strikes, 3 fired: 3 ok" in said
    assert "opens connections" not in said


def test_the_apps_own_tests_and_jobchecks_run_side_by_side_and_nothing_leaks_in(shop):
    (shop / "tests" / "jobs" / "test_jobcheck.py").write_text(JOBS)
    without_aws(shop)
    said = run(shop, "pytest", "-n", "2", "-p", "no:cacheprovider", "-q", code=1)
    assert "5 passed" in said, said  # four of the app's own on SQLite, and the announcement
    assert "charge_order, handler mode" in said
    assert re.search(r"code +orders/\w+.py:\d+ charge", said)
