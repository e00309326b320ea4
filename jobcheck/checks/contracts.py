"""Contracts: how often an effect may happen, by name and key."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from ..history.records import Effect

EXACTLY, AT_LEAST, AT_MOST = "exactly once", "at least once", "at most once"
KINDS = (EXACTLY, AT_LEAST, AT_MOST)
WORDS = tuple(kind.replace(" ", "_") for kind in KINDS)
_PLAIN_KEYS = ("path", "to", "from", "subject", "text", "message_id", "key", "body", "method")
_LED_KEYS = ("json", "header", "row")
_KEYS = "json:order_id, json:a.b, header:x-id, row:column, " + ", ".join(_PLAIN_KEYS)


@dataclass(frozen=True, slots=True)
class Contract:
    """How often an effect happens, compared with the clean run. Made by `exactly_once` and its siblings."""

    kind: str
    """`exactly once`, `at least once` or `at most once`."""
    effect: str
    """An effect's whole name (`payments POST /charges`), or an upstream alone (`mail`), which stands for all of it."""
    key: str = ""
    """Which part tells one effect from another of the same name; empty: the normalised body."""

    @property
    def text(self) -> str:
        """`exactly once: payments POST /charges`, and `, by json:order_id` where a key is named."""
        return f"{self.kind}: {self.effect}" + (f", by {self.key}" if self.key else "")

    @property
    def call(self) -> str:
        """The Python call that makes it: `exactly_once("payments POST /charges")`."""
        key = f", key={json.dumps(self.key)}" if self.key else ""
        return f"{self.kind.replace(' ', '_')}({json.dumps(self.effect, ensure_ascii=False)}{key})"

    def matches(self, name: str) -> bool:
        """Whether the contract speaks of effects of this name: the same name, or any shape of its upstream."""
        return name == self.effect or name.startswith(self.effect + " ")

    def key_of(self, effect: Effect) -> str | None:
        """The raw text that tells this effect from others of its name; None when it lacks the named key."""
        if not self.key:
            path = effect.fields.get("path", "") if "method" in effect.fields else ""
            return f"{path} {effect.body}" if path else effect.body
        if self.key == "body":
            return effect.body
        if self.key == "key":
            return effect.key or None
        lead, _, rest = self.key.partition(":")
        if lead == "header":
            return _text(dict(effect.fields.get("headers") or {}).get(rest.lower()))
        if lead in ("json", "row") and rest:
            return _text(_dig(effect.fields.get(lead), rest))
        return _text(effect.fields.get(self.key))


def exactly_once(effect: str, key: str | None = None) -> Contract:
    """The effect happens as often as in the clean run, by key: not more, not less. Raises UsageError."""
    return _contract(EXACTLY, effect, key)


def at_least_once(effect: str, key: str | None = None) -> Contract:
    """The effect may be repeated and is never missing. Raises UsageError."""
    return _contract(AT_LEAST, effect, key)


def at_most_once(effect: str, key: str | None = None) -> Contract:
    """The effect may be missing and is never repeated. Raises UsageError."""
    return _contract(AT_MOST, effect, key)


def parse_contract(value: object, where: str = "") -> Contract:
    """A contract from a scenario file: `{"exactly_once": "mail"}`, `{"exactly_once": {"effect": ..., "key": ...}}`, or
    the text `exactly once: mail, by subject`. Raises UsageError with the nearest right word; `where` leads it."""
    lead = f"{where}: " if where else ""
    if isinstance(value, Contract):
        return value
    if isinstance(value, str):
        word, colon, rest = value.partition(":")
        if not colon:
            raise UsageError(
                f"{lead}expected a contract such as 'exactly once: payments POST /charges', got {value!r}",
                hint="say how often: exactly_once, at_least_once or at_most_once",
            )
        effect, _, key = rest.partition(", by ")
        return _contract(_known(word, lead), effect, key or None)
    if not isinstance(value, Mapping):
        raise UsageError(f"{lead}expected a contract such as {{exactly_once: mail}}, got {value!r}")
    return _from_mapping(value, lead)


def _from_mapping(value: Mapping[Any, Any], lead: str) -> Contract:
    fields = {str(name): item for name, item in value.items()}
    key = fields.pop("key", None)
    if len(fields) != 1:
        raise UsageError(f"{lead}expected one of {', '.join(WORDS)}, got {', '.join(fields) or 'nothing'}")
    ((word, effect),) = fields.items()
    kind = _known(word, lead)
    if isinstance(effect, Mapping):
        if unknown := sorted(set(map(str, effect)) - {"effect", "key"}):
            raise UsageError(f"{lead}{word} has 'effect' and 'key', got {', '.join(map(repr, unknown))}")
        effect, key = effect.get("effect", ""), effect.get("key", key)
    if not isinstance(effect, str) or not isinstance(key, str | None):
        raise UsageError(f"{lead}{word}: expected the name of an effect, got {effect!r}")
    return _contract(kind, effect, key)


def _kind(word: str) -> str | None:
    spaced = re.sub(r"[_\-\s]+", " ", word.strip().lower())
    return spaced if spaced in KINDS else None


def _known(word: str, lead: str) -> str:
    kind = _kind(word)
    if kind is not None:
        return kind
    near = difflib.get_close_matches(re.sub(r"[\-\s]+", "_", word.strip().lower()), WORDS, n=1, cutoff=0.4)
    raise UsageError(
        f"{lead}expected one of {', '.join(WORDS)}, got {word.strip()!r}",
        hint=f"did you mean {near[0]}?" if near else "",
    )


def _contract(kind: str, effect: object, key: str | None) -> Contract:
    if not isinstance(effect, str) or not effect.strip():
        raise UsageError(
            f"{kind}: expected the name of an effect, got {effect!r}",
            hint="an effect is named 'upstream METHOD /path', 'mail', 'rows <name>' or 'mark <kind>'",
        )
    key = (key or "").strip()
    led, _, rest = key.partition(":")
    if key and key not in _PLAIN_KEYS and not (led in _LED_KEYS and rest):
        near = difflib.get_close_matches(led, [*_PLAIN_KEYS, *_LED_KEYS], n=1)
        hint = f"did you mean {near[0]}{':' + (rest or 'name') if near[0] in _LED_KEYS else ''}?" if near else ""
        raise UsageError(f"{kind}: {effect}: expected a key such as {_KEYS}, got {key!r}", hint=hint)
    return Contract(kind, " ".join(effect.split()), key)


def _dig(value: Any, path: str) -> Any:
    """The value at `a.b.0` within nested objects and lists; None when there is none."""
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
