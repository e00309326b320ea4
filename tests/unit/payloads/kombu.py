"""Messages as Celery 5 puts them on Redis, made by hand."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any


def message(
    task: str = "shop.charge", args: Any = (17,), kwargs: Any = None, *, body: bytes | None = None, **changes: Any
) -> str:
    """A message of protocol 2; `changes` go to its headers."""
    embed = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
    content_type = changes.pop("content_type", "application/json")
    data = body if body is not None else json.dumps([list(args), kwargs or {}, embed]).encode()
    if changes.get("compression"):
        data = zlib.compress(data)
    headers = {"task": task, "id": "old-id", "root_id": "old-id", "eta": None, "expires": None, "retries": 0}
    headers |= {"argsrepr": repr(tuple(args)), "kwargsrepr": repr(kwargs or {})}
    properties = {"correlation_id": "old-id", "delivery_tag": "old-tag", "body_encoding": "base64"}
    return json.dumps(
        {
            "body": base64.b64encode(data).decode(),
            "content-type": content_type,
            "content-encoding": "utf-8",
            "headers": {**headers, **changes},
            "properties": properties,
        }
    )


def first_protocol(task: str = "shop.charge", args: Any = (17,)) -> str:
    """A message of protocol 1, as Celery 3 wrote it and workers still read it."""
    body = {"task": task, "id": "old-id", "args": list(args), "kwargs": {}, "eta": None, "retries": 0}
    return json.dumps(
        {
            "body": base64.b64encode(json.dumps(body).encode()).decode(),
            "content-type": "application/json",
            "headers": {},
            "properties": {"delivery_tag": "old-tag", "body_encoding": "base64"},
        }
    )
