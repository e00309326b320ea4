"""How jobcheck runs the tiny app."""

from __future__ import annotations

import jobcheck


def _rig(acks: str) -> jobcheck.Rig:
    return jobcheck.Rig(
        jobcheck.celery("tinyapp.jobs:app"),
        upstreams={"broker": jobcheck.redis(), "store": jobcheck.redis()},
        env={"BROKER_URL": "{broker.url}", "STORE_URL": "{store.url}", "TINY_ACKS": acks},
    )


tiny = _rig("late")
tiny_early_acks = _rig("early")


def number(case: jobcheck.Case) -> int:
    """What the job functions are called with."""
    case.owns(number=case.number)
    return case.number


def put_naive(case: jobcheck.Case) -> None:
    from tinyapp.jobs import naive

    naive.delay(number(case))


def put_right(case: jobcheck.Case) -> None:
    from tinyapp.jobs import right

    right.delay(number(case))
