"""To which case an effect belongs: the one whose owned ids occur in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from ..history.records import CaseRecord, Effect
from .normalise import Ids, owned, shorten

_TRANSPORT_HEADERS = frozenset(
    {
        "accept",
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "connection",
        "content-length",
        "content-transfer-encoding",
        "content-type",
        "date",
        "expect",
        "host",
        "keep-alive",
        "message-id",
        "mime-version",
        "received",
        "server",
        "te",
        "traceparent",
        "tracestate",
        "transfer-encoding",
        "user-agent",
    }
)
"""Headers that the client's library makes: a number in them is not a business id."""
_SKIPPED_FIELDS = frozenset({"retry_after", "json", "row", "id", "message_id", "method", "size", "sha256"})
"""Parts that repeat the body, or that the sender did not choose."""
_SHORTEST_MADE = 6
"""Characters of an id that a provider gave out, from which on it is told from a plain number."""


def assign(effects: Sequence[Effect], cases: Sequence[CaseRecord]) -> tuple[list[Effect], list[str]]:
    """The effects with their `case` filled in, and a sentence for each that has no owner or two.

    An id that a provider gave out for an effect of a case (`fields["id"]`) belongs to that case too, so that a refund
    which names only the charge finds its owner. A single case that owns no ids owns everything. Calls without effect
    may stay without an owner.
    """
    if len(cases) == 1 and not any(cases[0].ids.values()):
        return [replace(effect, case=cases[0].id) for effect in effects], []
    index = owned((case.id, case.ids) for case in cases)
    made = _Made()
    out, problems = [], []
    for effect in effects:
        owners = _owners(effect, index) or made.owners(effect)
        if len(owners) == 1:
            (case,) = owners
            made.add(case, effect)
            out.append(replace(effect, case=case))
            continue
        out.append(effect)
        if effect.applied or owners:
            problems.append(_problem(effect, owners))
    return out, problems


class _Made:
    """Ids that providers gave out, by the case that they were given to; one given to two cases says nothing."""

    def __init__(self) -> None:
        self._cases: dict[str, str] = {}
        self._index = Ids()

    def add(self, case: str, effect: Effect) -> None:
        made = str(effect.fields.get("id", ""))
        if len(made) < _SHORTEST_MADE:
            return
        if made not in self._cases:
            self._index.add("", made, made)
        if self._cases.setdefault(made, case) != case:
            self._cases[made] = ""

    def owners(self, effect: Effect) -> dict[str, str]:
        found: dict[str, str] = {}
        for text in texts(effect):
            for hit in self._index.find(text):
                if case := self._cases[hit.name]:
                    found.setdefault(case, f"id {hit.name}")
        return found


def texts(effect: Effect) -> Iterator[str]:
    """Every text of an effect in which a business id may occur: body, key, path, headers of the app's own."""
    yield effect.body
    if effect.key:
        yield effect.key
    for name, value in effect.fields.items():
        if name not in _SKIPPED_FIELDS:
            yield from _leaves(value, name == "headers")


def _leaves(value: Any, headers: bool = False) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            if not (headers and str(name).lower() in _TRANSPORT_HEADERS):
                yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        text = str(value)
        yield unquote(text) if "%" in text else text


def _owners(effect: Effect, index: Ids) -> dict[str, str]:
    """Owning cases, each with the id by which it was found."""
    found: dict[str, str] = {}
    for text in texts(effect):
        for hit in index.find(text):
            found.setdefault(hit.owner, f"{hit.name} {hit.value}")
    return found


def _problem(effect: Effect, owners: dict[str, str]) -> str:
    body = shorten(effect.body, 200) or "(empty body)"
    if not owners:
        return f"{effect.name} belongs to no case, none of their ids occurs in it: {body}"
    by = " and ".join(f"{case} by {found}" for case, found in owners.items())
    return f"{effect.name} belongs to {len(owners)} cases, {by}: {body}"
