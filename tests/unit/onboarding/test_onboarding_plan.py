"""From what each variable feeds to the addresses of a rig."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.onboarding.plan import plan, provider_name
from jobcheck.onboarding.scan import Scan, Variable
from jobcheck.onboarding.texts import job_text, rig_text, row_text

MODULE = "config.settings"
REDIS = "redis://localhost:6379/0"


def fed(kind: str, value: str, **paths: object) -> dict[str, object]:
    feeds = {path.replace("__", "."): text for path, text in paths.items()}
    return {"where": "config/settings.py:1", "kind": kind, "value": value, "feeds": {MODULE: feeds}}


def planned(values, variables=None, *, needed=None, scan=None, broker=REDIS):
    survey = {"values": {MODULE: values}, "variables": variables or {}, "needed": needed or {}}
    return plan(scan or Scan(Path()), MODULE, "config.celery:app", survey, broker)


DATABASE = {
    "DATABASES.default.ENGINE": "django.db.backends.postgresql",
    "DATABASES.default.HOST": "localhost",
    "DATABASES.default.PORT": "5432",
    "DATABASES.default.NAME": "shop",
    "DATABASES.default.USER": "shop",
}


def test_a_database_by_parts_by_a_url_and_by_nothing():
    parts = {
        "DB_HOST": fed("text", "jobcheck-1.invalid", DATABASES__default__HOST="jobcheck-1.invalid"),
        "DB_NAME": fed("text", "jobcheck-2.invalid", DATABASES__default__NAME="jobcheck-2.invalid"),
    }
    made = planned(DATABASE, parts)
    assert made.env["DB_HOST"] == "{db.host}"
    assert made.env["DB_NAME"] == "{db.name}"
    assert made.override[MODULE]["DATABASES.default.PORT"] == "{db.port}"
    assert made.override[MODULE]["DATABASES.default.USER"] == "{db.user}"
    assert "DATABASES.default.NAME" not in made.override[MODULE]

    url = "postgres://u1:p1@jobcheck-1.invalid:47001/1"
    whole = {
        "DATABASE_URL": fed(
            "url",
            url,
            DATABASES__default__HOST="jobcheck-1.invalid",
            DATABASES__default__PORT=47001,
            DATABASES__default__NAME="1",
            DATABASES__default__USER="u1",
        )
    }
    made = planned(DATABASE, whole)
    assert made.env == {"DATABASE_URL": "{db.url}"}
    assert not any("DATABASES" in path for over in made.override.values() for path in over)


def test_other_databases_are_named_and_sqlite_is_no_upstream():
    made = planned({"DATABASES.default.ENGINE": "django.db.backends.mysql"})
    assert "db" not in made.upstreams
    assert made.doubts == ["DATABASES.default is mysql, which jobcheck cannot read"]
    assert planned({"DATABASES.default.ENGINE": "django.db.backends.sqlite3"}).doubts == []


def test_one_redis_for_everything_and_a_second_one():
    values = {"CELERY_BROKER_URL": REDIS, "CACHES.default.LOCATION": "redis://localhost:6379/1"}
    host = fed(
        "text",
        "jobcheck-1.invalid",
        CELERY_BROKER_URL="redis://jobcheck-1.invalid:6379/0",
        CACHES__default__LOCATION="redis://jobcheck-1.invalid:6379/1",
    )
    made = planned(values, {"REDIS_HOST": host})
    assert made.upstreams == {"broker": "redis"}
    assert made.env == {"REDIS_HOST": "{broker.host}"}

    values["CACHES.default.LOCATION"] = "redis://elsewhere:6379/0"
    mark = "redis://u2:p2@jobcheck-2.invalid:47002/2"
    made = planned(values, {"CACHE_URL": fed("url", mark, CACHES__default__LOCATION=mark)})
    assert made.env == {"CACHE_URL": "{cache.url}"}
    assert made.override == {MODULE: {"CELERY_BROKER_URL": "{broker.url}"}}


def test_a_url_by_a_variable_whose_name_does_not_say_so():
    fed_by = fed("text", "mark.invalid", CELERY_BROKER_URL="mark.invalid")
    made = planned({"CELERY_BROKER_URL": REDIS}, {"BROKER": fed_by})
    assert made.env == {"BROKER": "{broker.url}"}
    assert made.override == {}


def test_mail_that_is_queued_first_goes_to_smtp_later():
    values = {
        "EMAIL_BACKEND": "post_office.EmailBackend",
        "POST_OFFICE.BACKENDS.default": "django.core.mail.backends.smtp.EmailBackend",
    }
    assert planned(values).override[MODULE] == {"EMAIL_HOST": "{mail.host}", "EMAIL_PORT": "{mail.port}"}


def test_a_provider_keeps_the_path_that_the_app_gives_it_and_its_own_address_is_none():
    values = {
        "PAYMENTS_API_URL": "https://pay.example/v2",
        "SITE_URL": "https://shop.example",
        "SENTRY_DSN": "https://key@sentry.example/1",
    }
    made = planned(values)
    assert made.override[MODULE]["PAYMENTS_API_URL"] == "{payments.base}/v2"
    assert sorted(made.upstreams) == ["broker", "payments"]


def test_mail_loses_what_the_stand_in_does_not_speak():
    values = {"EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend", "EMAIL_USE_TLS": True, "EMAIL_PORT": 587}
    made = planned(values)
    assert made.override[MODULE] == {"EMAIL_HOST": "{mail.host}", "EMAIL_PORT": "{mail.port}", "EMAIL_USE_TLS": False}


def test_variables_that_are_read_while_a_job_runs_are_known_by_their_names():
    scan = Scan(Path())
    for name, default in (
        ("DATABASE_URL", None),
        ("SMTP_HOST", None),
        ("SMTP_PORT", "25"),
        ("PAYMENTS_URL", None),
        ("BASE_URL", None),
        ("API_TOKEN", None),
    ):
        scan.variables[name] = Variable(name, "shop.py:1", default)
    made = planned({}, scan=scan, broker="amqp://localhost//")
    assert made.env == {
        "DATABASE_URL": "{db.url}",
        "SMTP_HOST": "{mail.host}",
        "SMTP_PORT": "{mail.port}",
        "PAYMENTS_URL": "{payments.base}",
    }
    assert made.upstreams["broker"] == "rabbitmq"
    assert made.override == {"config.celery": {"app.conf.broker_url": "{broker.url}"}}


def test_what_the_app_demands_and_leads_nowhere_is_made_up_and_said():
    made = planned({}, needed={"SECRET_KEY": "jobcheck-900.invalid", "WORKERS": "47901"})
    assert made.env == {"SECRET_KEY": "jobcheck", "WORKERS": "47901"}
    assert made.made_up == ["SECRET_KEY", "WORKERS"]


def test_a_broker_that_no_tap_can_read_is_a_doubt():
    made = planned({}, broker="sqs://")
    assert "Celery's broker is sqs://, which jobcheck cannot stand in front of" in made.doubts[0]


@pytest.mark.parametrize(
    ("word", "name"), [("PAYMENTS_API_URL", "payments"), ("CRM_BASE_URL", "crm"), ("URL", "url"), ("geo.url", "geo")]
)
def test_a_provider_is_named_after_its_variable(word, name):
    assert provider_name(word) == name


def test_the_rig_and_its_functions_are_python():
    made = planned(DATABASE, needed={"SECRET_KEY": "jobcheck-900.invalid"})
    task = {
        "name": "a.b",
        "module": "a.tasks",
        "function": "pay",
        "needs": ["order_id", "note", "extra"],
        "kinds": {"note": "str", "extra": "dict"},
    }
    recipe = {
        "model": "a.models.Order",
        "by": "pk",
        "steps": [
            {
                "model": "a.models.Order",
                "name": "order",
                "fields": {"at": "timezone.now()"},
                "emails": ["to"],
                "urls": ["hook"],
            },
        ],
    }
    made.add("order", "provider", "")
    made.hosts["order"] = "example.com"
    made.packages = ["a"]
    text = rig_text(made, "../..", "migrate", [*row_text(recipe), *job_text(task, "pay", {"order_id": recipe})])
    compile(text, "rig.py", "exec")
    assert "from django.utils import timezone" in text
    assert '    note = f"note-{case.number}"\n' in text
    assert '    extra = {"case": case.number}\n' in text
    assert "    case.owns(note=note)\n" in text, "a dict is no id"
    assert "    case.owns(order=order.pk, order_to=order.to, order_hook=order.hook.rpartition('/')[2])\n" in text
    assert "    pay.delay(order_row(case).pk, note, extra)\n" in text
    assert 'jobcheck.provider(host="example.com", ' in text
    assert '    packages=["a"],' in text
    assert 'jobcheck.django("config.settings", override={\n' in text
