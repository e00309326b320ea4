"""The job systems that jobcheck knows, by the name that a rig uses."""

from __future__ import annotations

from .celery.adapter import TRANSPORTS
from .celery.adapter import Celery as celery  # noqa: N813 - a rig reads jobcheck.celery("shop.jobs:app")
from .contract import System

__all__ = ["SYSTEMS", "celery", "on_each_broker"]

SYSTEMS = {"celery": celery}


def on_each_broker() -> list[System]:
    """Every job system on every broker that it is known on, of an app without a name."""
    return [celery("app").on(kind) for kind in TRANSPORTS]
