"""Rule 2: payloads carry ids, not records. What speaks against it, with the place and the evidence.

Everything here is a warning: a payload may be a record on purpose, and only a person can say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..store.redact import Redactor
from .messages import PICKLES

LARGE = 4096
"""Bytes of a body from which it is called large: ids and options of any job fit in far less."""
DEEP = 3
"""Levels of lists and objects inside one argument that are still no record."""
RECORD = 4
"""Named values in one object from which it looks like a row."""

_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}\b")
_PERSONAL = re.compile(
    r"(?:^|_)(?:e?mail|(?:first|last|full|sur|given|family)_?name|phone|mobile|street|address|zip|postcode|birth\w*"
    r"|dob|iban|ssn|passport)(?:$|_)"
)
_PICKLED = re.compile(r"gA[I-X][0-9A-Za-z+/]{8,}={0,2}")
"""The beginning of a pickle of protocol 2 to 5, in base64."""


@dataclass(frozen=True, slots=True)
class Concern:
    """One thing in a payload that should rather be read by id when the job runs."""

    kind: str
    """`large`, `deep`, `record`, `personal`, `secret`, `pickle` or `opaque`."""
    where: str
    """`args[0].customer.email`, or `body`."""
    evidence: str
    """What was seen there, itself masked."""


def concerns(
    args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None, content_type: str, size: int
) -> tuple[Concern, ...]:
    """Everything that speaks against this payload, at most one of a kind for each place."""
    found = []
    if content_type in PICKLES:
        found.append(Concern("pickle", "body", f"{content_type}: only code that knows these very classes can read it"))
    elif args is None:
        found.append(Concern("opaque", "body", f"{content_type}: not JSON, so nobody looked for records or secrets"))
    if size >= LARGE:
        found.append(Concern("large", "body", f"{size} bytes; ids and options need less than {LARGE}"))
    redactor = Redactor(salt=b"looking only")
    values = [(f"args[{number}]", "", value) for number, value in enumerate(args or ())]
    values += [(f"kwargs.{name}", name, value) for name, value in (kwargs or {}).items()]
    for where, name, value in values:
        if (depth := _depth(value)) > DEEP:
            found.append(Concern("deep", where, f"{depth} levels of lists and objects"))
        found += _inside(where, name, value, redactor)
    return tuple(found)


def _depth(value: Any) -> int:
    deepest = 0
    waiting = [(value, 1)]
    while waiting:
        item, level = waiting.pop()
        if isinstance(item, Mapping | list | tuple):
            deepest = max(deepest, level)
            waiting += [(one, level + 1) for one in (item.values() if isinstance(item, Mapping) else item)]
    return deepest


def _inside(where: str, name: str, value: Any, redactor: Redactor) -> Iterator[Concern]:
    """Depth first; the items of a list share one place, so that a hundred rows give one warning."""
    if isinstance(value, Mapping):
        named = [key for key, item in value.items() if not isinstance(item, Mapping | list | tuple)]
        if len(named) >= RECORD:
            yield Concern("record", where, f"an object with {', '.join(map(str, named[:6]))}")
        for key, item in value.items():
            yield from _inside(f"{where}.{key}", str(key), item, redactor)
    elif isinstance(value, list | tuple):
        seen = set()
        for item in value:
            for concern in _inside(f"{where}[]", name, item, redactor):
                if (concern.kind, concern.where) not in seen:
                    seen.add((concern.kind, concern.where))
                    yield concern
    else:
        yield from _scalar(where, name, value, redactor)


def _scalar(where: str, name: str, value: Any, redactor: Redactor) -> Iterator[Concern]:
    before = redactor.count
    redactor.json({name: value} if name else value)
    if redactor.count > before:
        yield Concern("secret", where, f"looks like a secret or a card number, {_type(value)}")
    elif isinstance(value, str):
        if found := _EMAIL.search(value):
            user, _, host = found[0].partition("@")
            yield Concern("personal", where, f"an e-mail address: {user[:1]}...@{host}")
        elif found := _IBAN.search(value):
            yield Concern("personal", where, f"a bank account: {found[0][:4]}...")
        elif _PICKLED.fullmatch(value):
            yield Concern("pickle", where, f"a pickle in base64: {value[:8]}...")
        elif value and _PERSONAL.search(_snake(name)):
            yield Concern("personal", where, f"a value named {name!r}: {value[:1]}..., {len(value)} characters")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[-. ]", "_", name).lower()


def _type(value: Any) -> str:
    return f"{len(value)} characters" if isinstance(value, str) else type(value).__name__
