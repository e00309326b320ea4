"""The job systems that jobcheck knows, by the name that a rig uses."""

from __future__ import annotations

from .celery.adapter import Celery as celery  # noqa: N813 - a rig reads jobcheck.celery("shop.jobs:app")

__all__ = ["SYSTEMS", "celery"]

SYSTEMS = {"celery": celery}
