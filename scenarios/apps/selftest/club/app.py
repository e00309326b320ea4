"""The Celery application: `celery -A club.app worker`. Safe settings: a job is settled when it is done."""

from celery import Celery

from . import settings

app = Celery("club", broker=settings.BROKER_URL, include=["club.wrong", "club.right"])
app.conf.update(
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)
