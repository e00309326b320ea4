"""AWS: moto's server behind the ledger, with what production has already - buckets, verified senders, queues.

A call's service and region stand in its signature, which nobody checks. What only reads is no effect, nor is a part of
an upload that is not complete yet; the same object put again with the same bytes is one effect.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html import unescape
from typing import Any
from urllib.parse import parse_qs, quote

from ..wire.http_head import AWS_READS
from .answers import Answer, Call
from .bodies import canonical
from .forward import Forward
from .mail import message_fields
from .paths import label

_SCOPE = re.compile(r"Credential=[^/]+/\d+/([^/]+)/([^/]+)/aws4_request")
_QUIET = ("ReceiveMessage", "ChangeMessageVisibility")
"""What takes work and makes none."""
_ADDRESS = re.compile(r"[^\s<>\",:]+@[^\s<>\",]+")


class Aws:
    """What the app sees of an account."""

    def __init__(self, moto: Forward) -> None:
        self._moto = moto
        self._buckets: set[str] = set()
        self._objects: dict[str, str] = {}
        """Digest of the bytes of each object, by path."""

    async def answer(self, call: Call) -> Answer:
        """moto's answer, and whether it is an effect."""
        service = service_of(call)
        if service == "s3":
            return await self._s3(call)
        answer = await self._moto.answer(call)
        if (answer.status or 0) >= 400 and await self._mend(
            service, call, (answer.raw or b"").decode("utf-8", "replace")
        ):
            answer = await self._moto.answer(call)
        verb = label(call.method, call.path, call.headers, call.json).partition(" ")[2].partition(" ")[2]
        if AWS_READS.match(verb) or verb in _QUIET:
            return replace(answer, silent=True)
        return replace(answer, says=_mail(call)) if service in ("ses", "email") else answer

    def conflict(self, status: int, why: str) -> Answer:
        return self._moto.conflict(status, why)

    # S3

    async def _s3(self, call: Call) -> Answer:
        path, _, query = call.path.partition("?")
        asked = parse_qs(query, keep_blank_values=True)
        host = call.headers.get("host", "")
        virtual = re.match(r"(.+)\.s3[.-]", host)
        bucket, _, key = (f"{virtual[1]}/{path.lstrip('/')}" if virtual else path.lstrip("/")).partition("/")
        if bucket and bucket not in self._buckets and (key or call.method != "PUT"):
            await self._make_bucket(bucket)
        self._buckets.add(bucket)
        answer = await self._moto.answer(call)
        done = (answer.status or 0) < 300
        if call.method == "POST" and "delete" in asked:
            self._objects.clear()
        if "uploads" in asked or "partNumber" in asked:
            return replace(answer, silent=True)
        if not key or not done or set(asked) - {"x-id"}:
            return answer
        where = f"{bucket}/{key}"
        if call.method == "DELETE":
            self._objects.pop(where, None)
        elif call.method == "PUT" and "x-amz-copy-source" not in call.headers:
            digest = hashlib.sha256(call.raw).hexdigest()
            if self._objects.get(where) == digest:
                return replace(answer, applied=False, note="the same object with the same bytes")
            self._objects[where] = digest
        return answer

    async def _make_bucket(self, name: str) -> None:
        await self._moto.ask("PUT", f"/{quote(name)}", {"host": "127.0.0.1", **_signed("s3", "us-east-1")}, b"")

    # What production has

    async def _mend(self, service: str, call: Call, said: str) -> bool:
        """Makes what the call lacks. False: it lacks nothing that production would have."""
        mine: dict[str, str] = {name: call.headers[name] for name in ("host", "authorization") if name in call.headers}
        if service in ("ses", "email") and "MessageRejected" in said and (found := _ADDRESS.search(unescape(said))):
            form = f"Action=VerifyEmailIdentity&EmailAddress={quote(found[0])}".encode()
            region = (_SCOPE.search(call.headers.get("authorization", "")) or ["", "us-east-1"])[1]
            headers = {
                "host": "127.0.0.1",
                **_signed("ses", region),
                "content-type": "application/x-www-form-urlencoded",
            }
            return (await self._moto.ask("POST", "/", headers, form)).status == 200
        if service == "sqs" and ("NonExistentQueue" in said or "QueueDoesNotExist" in said):
            fields = call.json if isinstance(call.json, dict) else {}
            name = fields.get("QueueName") or str(fields.get("QueueUrl", "")).rpartition("/")[2]
            body = json.dumps(
                {"QueueName": name, **({"Attributes": {"FifoQueue": "true"}} if name.endswith(".fifo") else {})}
            )
            headers = {**mine, "content-type": "application/x-amz-json-1.0", "x-amz-target": "AmazonSQS.CreateQueue"}
            return bool(name) and (await self._moto.ask("POST", "/", headers, body.encode())).status == 200
        return False


def service_of(call: Call) -> str:
    """`s3`, `ses` ... as the signature or the host says."""
    if found := _SCOPE.search(call.headers.get("authorization", "")):
        return found[2]
    if found := _SCOPE.search(call.path.replace("%2F", "/").replace("X-Amz-Credential=", "Credential=")):
        return found[2]
    return "s3" if "s3" in call.headers.get("host", "") or "x-amz-target" not in call.headers else ""


def _signed(service: str, region: str) -> dict[str, str]:
    scope = f"jobcheck/20260101/{region}/{service}/aws4_request"
    return {"authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"}


def _mail(call: Call) -> str:
    """A raw message told as our mail server tells it: its boundary, its date and its id are new each time."""
    value: Any = call.json if isinstance(call.json, dict) else {}
    raw = value.get("RawMessage.Data") or value.get("Content", {}).get("Raw", {}).get("Data") if value else None
    if not raw:
        return ""
    fields = message_fields(base64.b64decode(raw))
    return canonical({name: fields[name] for name in ("to", "subject", "text")})
