"""What was asked for, as text that can be compared: canonical JSON where it is JSON or a form, else the text itself."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import parse_qsl


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces; values that JSON does not know become text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def read_body(raw: bytes, content_type: str) -> tuple[str, Any]:
    """The canonical text of a request body and its value (None where it has none).

    Forms become an object, with a list where a name occurs more than once. JSON is recognised without its content
    type too, because clients forget it. Bytes that are not UTF-8 become their length and SHA-256.
    """
    if not raw:
        return "", None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return f"{len(raw)} bytes sha256:{hashlib.sha256(raw).hexdigest()}", None
    if content_type.startswith("application/x-www-form-urlencoded"):
        form: dict[str, Any] = {}
        for name, value in parse_qsl(text, keep_blank_values=True):
            if name in form:
                earlier = form[name] if isinstance(form[name], list) else [form[name]]
                form[name] = [*earlier, value]
            else:
                form[name] = value
        return canonical(form), form
    if "json" in content_type or text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except ValueError:
            return text, None
        return canonical(value), value
    return text, None
