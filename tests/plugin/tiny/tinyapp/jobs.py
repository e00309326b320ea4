"""A small app for tests of the faces: Redis and marks only, so that an exploration takes a second."""

import os

import redis
from celery import Celery

from jobcheck import mark

app = Celery("tiny", broker=os.environ.get("BROKER_URL", "redis://127.0.0.1:1"))
app.conf.update(
    task_acks_late=os.environ.get("TINY_ACKS", "late") == "late",
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
)


def store() -> redis.Redis:
    return redis.Redis.from_url(os.environ["STORE_URL"])


@app.task
def naive(number: int) -> None:
    """Charges again whenever it runs again."""
    with store() as keys:
        mark("charge", str(number))
        keys.set(f"charged:{number}", 1)
        mark("mail", str(number))


@app.task
def right(number: int) -> None:
    """What it does may be done again."""
    with store() as keys:
        keys.set(f"seen:{number}", 1)
        mark("mail", str(number))


@app.task
def wobbly(number: int) -> None:
    """Takes another way every other time."""
    with store() as keys:
        if keys.incr("runs") % 2:
            keys.set(f"odd:{number}", 1)
        mark("mail", str(number))
