"""Celery's messages as kombu's virtual transports store them: read without running anything of the app, and made anew.

A message is JSON with a base64 `body`, `headers` and `properties`. Protocol 2 keeps the task's name in the headers and
`[args, kwargs, embed]` in the body, protocol 1 keeps everything in the body. A body that is not JSON (pickle, msgpack)
is left as it is: the harness never unpickles.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import json
import lzma
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

JSON = "application/json"
PICKLES = frozenset({"application/x-python-serialize"})
_PACK: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "application/x-gzip": (zlib.decompress, zlib.compress),
    "application/gzip": (zlib.decompress, zlib.compress),
    "application/x-bz2": (bz2.decompress, bz2.compress),
    "application/x-lzma": (lzma.decompress, lzma.compress),
}
"""Unpack and pack by kombu's name of a compression (its `gzip` is a bare zlib stream)."""


class NotAMessage(ValueError):
    """The text is no Celery message."""


@dataclass(frozen=True, slots=True)
class Message:
    """What one message on the broker says."""

    id: str
    task: str
    args: Sequence[Any] | None
    """None: the body is not JSON, see `content_type`."""
    kwargs: Mapping[str, Any] | None
    content_type: str
    size: int
    """Bytes of the body, unpacked."""
    retries: int = 0


def decode(raw: str) -> Message:
    """Reads a message. Raises NotAMessage."""
    whole = _whole(raw)
    headers = whole.get("headers") or {}
    body = _body(whole)
    content_type = str(whole.get("content-type") or "")
    job, task = str(headers.get("id") or ""), str(headers.get("task") or "")
    args: Sequence[Any] | None = None
    kwargs: Mapping[str, Any] | None = None
    retries = headers.get("retries") or 0
    if content_type == JSON and body is not None:
        told = _json(body)
        if isinstance(told, dict) and "task" in told:  # protocol 1
            job, task, args, kwargs = str(told.get("id")), str(told["task"]), told.get("args"), told.get("kwargs")
            retries = told.get("retries") or 0
        elif isinstance(told, list) and len(told) >= 2:
            args, kwargs = told[0], told[1]
    if not task:
        raise NotAMessage("expected the name of a task in the message's headers or body")
    size = len(body) if body is not None else len(raw)
    return Message(job, task, args, kwargs if args is not None else None, content_type, size, int(retries))


def renewed(
    raw: str,
    *,
    job: str,
    tag: str,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> str:
    """The same message as a new delivery: under its own id and delivery tag, due now, with other arguments if given.

    `args` and `kwargs` None leave the body byte by byte as it was (protocol 1 carries its id in the body, so there it
    is written anew). Raises NotAMessage.
    """
    whole = _whole(raw)
    headers = dict(whole.get("headers") or {})
    if headers.get("id"):
        if headers.get("root_id") == headers["id"]:
            headers["root_id"] = job
        headers.update(id=job, eta=None, expires=None, retries=0)
    properties = dict(whole.get("properties") or {})
    properties.update(correlation_id=job, delivery_tag=tag)
    whole.update(headers=headers, properties=properties)
    body = _body(whole)
    if body is not None and whole.get("content-type") == JSON:
        told = _json(body)
        if isinstance(told, dict):
            told = {**told, "id": job, "eta": None, "expires": None, "retries": 0}
            told.update({} if args is None else {"args": list(args), "kwargs": dict(kwargs or {})})
            _set_body(whole, told)
        elif args is not None:
            _set_body(whole, [list(args), dict(kwargs or {}), *told[2:]])
    if args is not None and "argsrepr" in headers:
        headers.update(argsrepr=repr(tuple(args)), kwargsrepr=repr(dict(kwargs or {})))
    return json.dumps(whole)


def _whole(raw: str) -> dict[str, Any]:
    try:
        whole = json.loads(raw)
    except ValueError:
        raise NotAMessage("expected JSON") from None
    if not isinstance(whole, dict) or "body" not in whole:
        raise NotAMessage("expected an object with a body")
    return whole


def _body(whole: Mapping[str, Any]) -> bytes | None:
    """The body's bytes; None where nobody here can unpack them."""
    text = str(whole.get("body", ""))
    try:
        data = base64.b64decode(text, validate=True) if _in_base64(whole) else text.encode()
        packed = (whole.get("headers") or {}).get("compression")
        if not packed:
            return data
        return _PACK[packed][0](data) if packed in _PACK else None
    except (binascii.Error, zlib.error, OSError, lzma.LZMAError, ValueError):
        return None


def _set_body(whole: dict[str, Any], value: Any) -> None:
    data = json.dumps(value).encode()
    if packed := (whole.get("headers") or {}).get("compression"):
        data = _PACK[packed][1](data)
    whole["body"] = base64.b64encode(data).decode() if _in_base64(whole) else data.decode()


def _in_base64(whole: Mapping[str, Any]) -> bool:
    return (whole.get("properties") or {}).get("body_encoding") == "base64"


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        raise NotAMessage("expected a JSON body, as the content type says") from None
