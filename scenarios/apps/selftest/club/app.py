"""The Celery application: `celery -A club.app worker`. Safe settings: a job is settled when it is done."""

from celery import Celery

from . import settings

KINDS = [f"club.{kind}{about}" for kind in ("wrong", "right") for about in ("", "_around", "_in_trouble")]

app = Celery("club", broker=settings.BROKER_URL, include=[*KINDS, "club.bookings"])
app.conf.update(
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)

KEEPS_TRYING = {"autoretry_for": (Exception,), "default_retry_delay": 0.25, "max_retries": 20}
"""For jobs that outlast what is around them: a run that raises is made again a quarter of a second later."""
