"""The job of the delivery matrix: it charges an order, works for a while, and says that it is done."""

from __future__ import annotations

import json
import os
import time
import urllib.request

import psycopg
from celery import Celery

SAFE = {"task_acks_late": True, "task_reject_on_worker_lost": True, "worker_prefetch_multiplier": 1}
ACKS = {"safe": SAFE, "late": {"task_acks_late": True}, "default": {}}

app = Celery("shop", broker=os.environ.get("BROKER_URL", "redis://127.0.0.1:1/0"))
app.conf.update(ACKS[os.environ.get("SHOP_ACKS", "safe")], broker_connection_retry_on_startup=True)
numbers = dict(pair.split("=") for pair in os.environ.get("SHOP_NUMBERS", "").split())
app.conf.broker_heartbeat = int(numbers.pop("broker_heartbeat", 120))
app.conf.broker_transport_options = {name: int(number) for name, number in numbers.items()}


def post(path: str, order: str) -> None:
    body = json.dumps({"order": order}).encode()
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(os.environ["PAYMENTS_URL"] + path, body, headers), timeout=3600):
        pass


@app.task(ignore_result=True)
def charge(order: str) -> None:
    post("/charge", order)
    work(order)


@app.task(ignore_result=True)
def charge_once(order: str) -> None:
    """Charges what it has not charged in the last ten minutes."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
        fresh = "select 1 from charged where order_id = %s and at > now() - interval '10 minutes'"
        if db.execute(fresh, [order]).fetchone() is None:
            post("/charge", order)
            db.execute("insert into charged (order_id) values (%s)", [order])
    work(order)


def work(order: str) -> None:
    time.sleep(float(os.environ.get("SHOP_SECONDS", "1")))
    post("/done", order)
