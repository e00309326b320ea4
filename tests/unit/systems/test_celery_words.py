"""What a Celery worker's lines say about the end of a job, and where a loss is laid. Lines are Celery 5.7's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobcheck.systems.celery.adapter import Celery
from jobcheck.systems.contract import Settings

JOB = "0d01aaa2-47cc-45d2-9f97-458eb353c998"
HEAD = "[2026-11-29 23:20:04,936: INFO/MainProcess] "
LATE = Settings("at-least-once", "late")
EARLY = Settings("at-most-once", "early", mend="set task_acks_late=True")


@pytest.mark.parametrize(
    ("line", "how"),
    [
        (f"Task shop.charge[{JOB}] succeeded in 0.02s: None", "succeeded"),
        (f"Task shop.charge[{JOB}] raised unexpected: ValueError('no')", "failed: raised unexpected: ValueError('no')"),
        (f"Task shop.charge[{JOB}] retry: Retry in 1s: ValueError('no')", "retrying"),
        (f"Task shop.charge[{JOB}] reject requeue=False: missing", "failed: reject requeue=False: missing"),
    ],
)
def test_the_end_of_a_job_is_read_with_its_id(line: str, how: str) -> None:
    assert Celery("shop:app").ended(HEAD + line) == (JOB, how)


def test_a_message_of_an_unknown_task_is_thrown_away_and_told_by_its_headers() -> None:
    line = f"{{'lang': 'py', 'task': 'shop.book', 'id': '{JOB}', 'shadow': None, 'eta': None}}"
    assert Celery("shop:app").ended(line) == (JOB, "thrown away: unregistered task shop.book")


def test_a_received_job_has_not_ended() -> None:
    assert Celery("shop:app").ended(f"{HEAD}Task shop.charge[{JOB}] received") is None


@pytest.mark.parametrize(
    ("kind", "passed", "settings", "layer"),
    [
        ("redis", [], LATE, "transport"),
        ("redis", ["delivery"], LATE, "transport"),
        ("redis", ["delivery", "reserve"], LATE, "transport"),
        ("redis", ["delivery", "reserve", "ack"], LATE, "handler"),
        ("redis", ["delivery", "reserve", "ack"], EARLY, "settings"),
        ("rabbitmq", ["delivery", "ack"], LATE, "handler"),
        ("rabbitmq", ["delivery", "ack"], EARLY, "settings"),
        ("rabbitmq", ["delivery"], LATE, "transport"),
    ],
)
def test_a_loss_is_laid_where_it_can_be_mended(kind: str, passed: list[str], settings: Settings, layer: str) -> None:
    assert Celery("shop:app").on(kind).blame_loss(passed, "", settings).layer == layer


def test_a_publish_that_nobody_confirms_is_the_settings() -> None:
    """RabbitMQ answers a publish only where it is asked to; Redis always does."""
    confirmed = replace(LATE, values={"confirm_publish": True})
    blame = Celery("shop:app").on("rabbitmq").blame_publish(LATE)
    assert (blame.layer, "'confirm_publish': True" in blame.advice) == ("settings", True)
    assert Celery("shop:app").on("rabbitmq").blame_publish(confirmed).layer == "handler"
    assert Celery("shop:app").on("redis").blame_publish(LATE).layer == "handler"
