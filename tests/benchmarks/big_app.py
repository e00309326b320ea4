"""Writes an app of a size that is met at work: a Django project with 50 models, each with the usual fields and links.

`write(folder)` gives the path of its rig. With `pool`, it opens two connections to the database when it is imported, as
apps with a pool of their own do: such an app must not be forked.
"""

from __future__ import annotations

import sys
from pathlib import Path

MODELS = 50

SETTINGS = """
import os
from urllib.parse import urlsplit

SECRET_KEY = "not secret"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "big"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
url = urlsplit(os.environ["DATABASE_URL"])
DATABASES = {"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": url.path[1:], "USER": url.username or "",
    "PASSWORD": url.password or "", "HOST": url.hostname, "PORT": url.port, "CONN_MAX_AGE": 60,
}}
EMAIL_HOST, EMAIL_PORT = os.environ["SMTP_HOST"], int(os.environ["SMTP_PORT"])
"""

MODEL = """
class Thing{n}(models.Model):
    name = models.CharField(max_length=200)
    slug = models.SlugField(unique=True)
    amount = models.DecimalField(max_digits=12, decimal_places=2, default=0)
    state = models.CharField(max_length=20, choices=[("open", "Open"), ("paid", "Paid")], default="open")
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    {link}

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["state", "created_at"])]
"""

ORDERS = """
class Order(models.Model):
    email = models.EmailField()
    amount = models.IntegerField()

    class Meta:
        db_table = "orders"


class Marker(models.Model):
    key = models.CharField(max_length=100, primary_key=True)
"""

CELERY = """
import os
from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_settings")
app = Celery("big", broker=os.environ["BROKER_URL"])
app.conf.update(task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1,
                task_ignore_result=True, broker_connection_retry_on_startup=True)
app.autodiscover_tasks(["big"])
"""

TASKS = """
import os
import requests
from django.core.mail import send_mail
from django.db import transaction
from big.models import Marker, Order
from big_celery import app


@app.task
def charge(order_id):
    with transaction.atomic():
        order = Order.objects.select_for_update().get(pk=order_id)
        _, new = Marker.objects.get_or_create(key=f"charge:{order_id}")
        if not new:
            return
        requests.post(os.environ["PAYMENTS_URL"] + "/charges", json={"order": order.id, "amount": order.amount},
                      headers={"Idempotency-Key": f"charge:{order_id}"}, timeout=10).raise_for_status()
        send_mail("Your order", f"Order {order.id}", "shop@example.com", [order.email])
"""

POOL = """
import os
import psycopg
POOL = [psycopg.connect(os.environ["DATABASE_URL"]) for _ in range(2)]
"""

RIG = """
import jobcheck

shop = jobcheck.Rig(
    jobcheck.celery("big_celery:app"),
    upstreams={{
        "broker": jobcheck.redis(),
        "db": jobcheck.postgres(setup="{python} manage.py migrate --run-syncdb -v 0"),
        "payments": jobcheck.provider(idempotency="Idempotency-Key"),
        "mail": jobcheck.smtp(),
    }},
    env={{
        "BROKER_URL": "{{broker.url}}", "DATABASE_URL": "{{db.url}}", "PAYMENTS_URL": "{{payments.base}}",
        "SMTP_HOST": "{{mail.host}}", "SMTP_PORT": "{{mail.port}}",
    }},
    settings=jobcheck.django("site_settings", override={{}}),
)


def order(case):
    import big_celery
    from big.models import Order

    row = Order.objects.create(id=700000 + case.number, email=f"customer-{{case.number}}@example.com", amount=4990)
    case.owns(order=row.id)
    return row.id


def new_order(case):
    from big.tasks import charge

    charge.delay(order(case))
"""

MANAGE = """
import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""


def write(folder: Path, *, pool: bool = False) -> Path:
    """Writes the project; gives the path of its rig, `shop`, with the case functions `order` and `new_order`."""
    big = folder / "big"
    big.mkdir(parents=True)
    (big / "__init__.py").write_text("")
    models = []
    for number in range(MODELS - 2):
        target = f"models.ForeignKey('Thing{number - 1}', models.CASCADE, null=True, related_name='things{number}')"
        models.append(MODEL.format(n=number, link=f"parent = {target}" if number else ""))
    (big / "models.py").write_text("from django.db import models\n" + "".join(models) + ORDERS)
    (big / "tasks.py").write_text(TASKS)
    (folder / "site_settings.py").write_text(SETTINGS)
    (folder / "big_celery.py").write_text(CELERY + ("import big_pool\n" if pool else ""))
    if pool:
        (folder / "big_pool.py").write_text(POOL)
    (folder / "manage.py").write_text(MANAGE)
    rig = folder / "rig.py"
    rig.write_text(RIG.format(python=sys.executable))
    return rig
