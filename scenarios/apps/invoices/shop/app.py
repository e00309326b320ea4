"""The Celery application: `celery -A shop.app worker`."""

from celery import Celery

from . import settings

app = Celery(
    "shop",
    broker=settings.BROKER_URL,
    backend=settings.RESULT_URL,
    include=[
        "shop.jobs",
        "shop.variants",
        "shop.at_once",
        "shop.backoff",
        "shop.chains",
        "shop.statuses",
        "shop.claims",
    ],
)
app.conf.update(
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    broker_connection_retry_on_startup=True,
)

if settings.ACKS not in ("late", "early"):
    raise ValueError(f"SHOP_ACKS must be late or early, not {settings.ACKS!r}")
if settings.ACKS == "late":
    app.conf.update(
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
    )
