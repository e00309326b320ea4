"""Heads of HTTP/1.1 messages, and the labels that are made of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from .shapes import normalise, one_line
from .unit import Change, WireError

MAX_HEAD = 256 * 1024
READING = frozenset(("GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"))
"""Methods that change nothing (what goes through a tunnel is opaque, and may change anything)."""

_REQUEST = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([^\x00-\x20\x7f]+) HTTP/1\.([0-9])")
_METHOD_START = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}(?: [^\x00-\x1f\x7f]*)?")
_STATUS = re.compile(rb"HTTP/1\.([0-9]) ([1-9][0-9][0-9])(?: (.*))?", re.S)
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VERB = re.compile(r"[A-Za-z][\w.:-]{1,63}")
_OPERATION = re.compile(r"\b(query|mutation|subscription)\s+([A-Za-z_]\w*)")
AWS_READS = re.compile(r"(?:Get|List|Describe|BatchGet|Query|Scan|Head|Lookup)(?:[A-Z]|$)")
"""Verbs of AWS that change nothing."""
_OPERATION_KEYS = (b'"query"', b'"operationName"', b'"jsonrpc"')
_TEXTS = ("json", "form-url", "text", "xml", "graphql")
_JSON_LIMIT = 64 * 1024


@dataclass(slots=True)
class RequestHead:
    """The first line and the headers of a request."""

    method: str
    target: str
    path: str
    """Without scheme, host and query."""
    query: str
    headers: dict[str, str]
    """By lower-case name; repeated ones are joined with a comma."""


@dataclass(slots=True)
class ReplyHead:
    """The status line and the headers of a reply."""

    status: int
    reason: str
    headers: dict[str, str]


def may_begin_request(start: bytes) -> bool:
    """Whether an unfinished first line can still become one of a request."""
    start = start.rstrip(b"\r")
    return not start or _METHOD_START.fullmatch(start) is not None


def read_request(lines: list[bytes]) -> RequestHead:
    """The head in these lines. Raises WireError."""
    match = _REQUEST.fullmatch(lines[0])
    if match is None:
        raise WireError(f"expected a request, got {lines[0][:40]!r}")
    method = match.group(1).decode()
    target = match.group(2).decode("latin-1")
    path, _, query = target.partition("?")
    if "://" in path:  # sent to a proxy
        path = "/" + path.partition("://")[2].partition("/")[2]
    return RequestHead(method, target, path.partition("#")[0], query.partition("#")[0], _headers(lines[1:]))


def read_reply(lines: list[bytes]) -> ReplyHead:
    """The head in these lines. Raises WireError."""
    match = _STATUS.fullmatch(lines[0])
    if match is None:
        raise WireError(f"expected a reply, got {lines[0][:40]!r}")
    reason = (match.group(3) or b"").decode("latin-1").strip()
    return ReplyHead(int(match.group(2)), reason, _headers(lines[1:]))


def _headers(lines: Iterable[bytes]) -> dict[str, str]:
    found: dict[str, str] = {}
    last = ""
    for line in lines:
        if line[:1] in (b" ", b"\t"):  # a folded line
            if not last:
                raise WireError("the headers begin with a folded line")
            found[last] += " " + line.strip().decode("latin-1")
            continue
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.fullmatch(name):
            raise WireError(f"expected a header, got {line[:40]!r}")
        last = name.decode().lower()
        text = value.strip().decode("latin-1")
        found[last] = f"{found[last]}, {text}" if last in found else text
    return found


@dataclass(slots=True)
class Labels:
    """What a request is called, and what it does."""

    shape: str
    change: Change
    summary: str


def request_labels(head: RequestHead, body: bytes) -> Labels:
    """Method, templated path, and the verb that some APIs put elsewhere."""
    verb, reads = _verb(head, body)
    path = head.path.rpartition(":")[0] or head.path if head.method == "CONNECT" else head.path
    template = normalise(unquote(path) if "%" in path else path)
    words = [head.method, template, *([normalise(verb)] if verb else [])]
    change = Change.NO if head.method in READING or reads else Change.YES
    summary = f"{head.method} {head.target} {readable(head.headers, body)}".rstrip()
    return Labels("http " + " ".join(words), change, one_line(summary))


def readable(headers: dict[str, str], body: bytes) -> str:
    """The body as text for a person, or its size."""
    if not body:
        return ""
    kind = headers.get("content-type", "")
    if "content-encoding" in headers or not any(
        word in kind for word in ("json", "form-url", "text", "xml", "graphql")
    ):
        start = body[:200]
        if not (start.isascii() and start.decode().isprintable()):
            return f"<{len(body)} bytes>"
    return body[:400].decode("utf-8", "replace")


def _verb(head: RequestHead, body: bytes) -> tuple[str, bool]:
    """The verb outside of method and path, and whether it only reads."""
    if target := head.headers.get("x-amz-target"):
        verb = target.rpartition(".")[2]
        return verb, bool(AWS_READS.match(verb))
    if head.method == "POST":
        if operation := _graphql_or_rpc(body):
            return operation
        if soap := head.headers.get("soapaction", "").strip('" '):
            return soap.rstrip("/").rpartition("/")[2].rpartition(":")[2], False
    fields = head.query
    if "form-urlencoded" in head.headers.get("content-type", ""):
        fields += "&" + body[:_JSON_LIMIT].decode("latin-1")
    if "Action=" in fields:
        try:
            found = dict(parse_qsl(fields, max_num_fields=500)).get("Action", "")
        except ValueError:  # too many fields
            found = ""
        if _VERB.fullmatch(found):
            return found, bool(AWS_READS.match(found))
    return "", False


def _graphql_or_rpc(body: bytes) -> tuple[str, bool] | None:
    """The operation of a GraphQL or JSON-RPC request."""
    start = body[:_JSON_LIMIT]
    if start.lstrip()[:1] != b"{" or not any(word in start for word in _OPERATION_KEYS):
        return None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    if "jsonrpc" in found and isinstance(found.get("method"), str) and _VERB.fullmatch(found["method"]):
        return found["method"], False
    name, query = found.get("operationName"), found.get("query")
    if not isinstance(query, str):
        query = ""
    operations = _OPERATION.findall(query[:_JSON_LIMIT])
    if not (isinstance(name, str) and _VERB.fullmatch(name)):
        if not operations:
            return None
        name = operations[0][1]
    kinds = {kind for kind, own in operations if own == name}
    return name, kinds == {"query"}
