"""The shop of the delivery matrix under the settings of its cells. One rig each."""

from __future__ import annotations

from typing import Any

import jobcheck


def _rig(
    acks: str, broker: Any, *, db: bool = False, pool: str = "prefork", seconds: float = 1, **numbers: int
) -> jobcheck.Rig:
    return jobcheck.Rig(
        jobcheck.celery("shop:app", pool=pool),
        upstreams={
            "broker": broker,
            "payments": jobcheck.provider(),
            **({"db": jobcheck.postgres(setup="charged.sql")} if db else {}),
        },
        env={
            "BROKER_URL": "{broker.url}",
            "PAYMENTS_URL": "{payments.base}",
            **({"DATABASE_URL": "{db.url}"} if db else {}),
            "SHOP_ACKS": acks,
            "SHOP_SECONDS": f"{seconds:g}",
            "SHOP_NUMBERS": " ".join(f"{name}={number}" for name, number in numbers.items()),
        },
    )


SHORT = {"visibility_timeout": 3, "unacked_restore_interval": 1, "unacked_restore_throttle": 1}
redis_short = _rig("safe", jobcheck.redis(), **SHORT)
redis_short_solo = _rig("safe", jobcheck.redis(), pool="solo", **SHORT)
redis_five = _rig("safe", jobcheck.redis(), visibility_timeout=5)
redis_usual = _rig("safe", jobcheck.redis())
redis_marked = _rig("safe", jobcheck.redis(), db=True)
redis_early = _rig("default", jobcheck.redis())
redis_healthy = _rig("safe", jobcheck.redis(), seconds=9, **SHORT)
rabbit_short = _rig("safe", jobcheck.rabbitmq(), broker_heartbeat=2)
rabbit_usual = _rig("safe", jobcheck.rabbitmq())
rabbit_late = _rig("late", jobcheck.rabbitmq())
rabbit_early = _rig("default", jobcheck.rabbitmq())


def order_of(case: jobcheck.Case) -> str:
    order = f"order-{case.number}"
    case.owns(order=order)
    return order


def enqueue(case: jobcheck.Case) -> None:
    from shop import charge

    charge.delay(order_of(case))


def enqueue_once(case: jobcheck.Case) -> None:
    from shop import charge_once

    charge_once.delay(order_of(case))
