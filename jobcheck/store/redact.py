"""Taking secrets out where the journal is written. Equal secrets of one run stay comparable: each becomes
`<redacted:1a2b3c4d>`, a keyed hash of it.

It runs on every recorded message, so a text without anything suspicious costs a few substring searches, and every
pattern is linear in the text.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .redact_apart import HARMLESS, apart

_WORDS = (
    "password",
    "passwd",
    "passphrase",
    "password_hash",
    "secret",
    "token",
    "api_key",
    "secret_key",
    "access_key",
    "private_key",
    "credentials",
    "card_number",
    "security_code",
    "authorization",
    "cookie",
)
"""A field is sensitive when its name ends in one of these: `user_password`, `accessToken`, `stripe-api-key`."""
_EXACT = ("cvv", "cvc", "cvv2", "cvc2", "pan", "pin", "otp", "ssn", "pwd", "auth")
"""A field is sensitive when its whole name is one of these."""

_TOKEN_STARTS = (
    *("eyJ", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "AKIA", "ASIA", "AIza", "SG."),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "npm_", "pypi-", "xox", "sk-"),
)
_TOKENS = re.compile(
    r"""
    (?<![0-9A-Za-z])(?:
      eyJ[\w-]{8,2000}\.[\w-]{2,4000}(?:\.[\w-]{0,2000})?
    | (?:sk|rk)_(?:live|test)_[0-9A-Za-z]{8,}
    | whsec_[0-9A-Za-z+/=]{8,}
    | (?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])
    | AIza[\w-]{30,}
    | SG\.[\w-]{10,}\.[\w-]{10,}
    | gh[pousr]_[0-9A-Za-z]{20,}
    | github_pat_\w{20,}
    | (?:glpat|pypi)-[\w-]{16,}
    | npm_[0-9A-Za-z]{20,}
    | xox[abeoprs]-[0-9A-Za-z-]{10,}
    | sk-[\w-]{20,}
    )
    """,
    re.VERBOSE,
)
_SCHEME = re.compile(r"\b(Bearer|Basic|Digest)( +)([\w.~+/=-]{6,})", re.IGNORECASE)
_SCHEME_HEADER = re.compile(r"([A-Za-z][\w-]{0,30})( +)(\S.*)", re.DOTALL)
_LOGIN = re.compile(r"://([^\s/:@?#]*):([^\s/@?#]+)(@|…$)")
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{24,}={0,2}")
"""Long enough to hold a secret in Base64, as the bodies of Celery's messages do."""
_CARD = re.compile(r"[2-6](?<![\d.][2-6])(?:[ -]?\d){12,18}(?!\d)")
_CUT_NUMBER = re.compile(r"[2-6](?<!\d[2-6])(?:[ -]?\d){7,18}(?=…$)")
"""What may be the first part of a card number, where a text was cut."""
_NOT_ALNUM = re.compile(r"[^0-9a-z]")
_SECRET_HEADERS = frozenset({"authorization", "proxyauthorization", "cookie", "setcookie"})
_MOST_DEPTH = 40
_LEAST_KNOWN = 6
"""Characters of a variable's value from which on it is looked for: `test` would be found in every second word."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """What the user says about it."""

    fields: tuple[str, ...] = ()
    """Further field names whose values are secret."""
    keep_bodies: bool = False
    """Field values and numbers in texts and JSON are left alone; headers, tokens and passwords in URLs are not."""


USUAL = Redaction()


class Redactor:
    """Redacts with one salt. `count` is the number of secrets taken out so far."""

    def __init__(self, salt: bytes, redaction: Redaction = USUAL) -> None:
        self.count = 0
        self._salt = hashlib.sha256(salt).digest()
        self._keep_bodies = redaction.keep_bodies
        self._known: set[str] = set()
        words = (*_WORDS, *(name for name in redaction.fields if _squash(name)))
        self._exact = frozenset(map(_squash, _EXACT))
        self._endings = tuple(map(_squash, words))
        self._hints = tuple(sorted({_hint(word) for word in (*words, *_EXACT)}))
        self._fields = _field_pattern(words, _EXACT)

    def know(self, variables: Mapping[str, str]) -> None:
        """Values of environment variables with sensitive names are secret wherever they occur; very short ones not."""
        for name, value in variables.items():
            if len(value) >= _LEAST_KNOWN and value.lower() not in HARMLESS and self._sensitive(_squash(name)):
                self._known.add(value)

    def text(self, text: str) -> str:
        """The text without secrets: tokens, logins in URLs, values of sensitive fields, card numbers."""
        text = self._tokens(text)
        if "://" in text and ("@" in text or text.endswith("…")):
            text = _LOGIN.sub(lambda match: f"://{match[1]}:{self._hide(match[2])}{match[3]}", text)
        if len(text) >= 24:
            text = _ENCODED.sub(self._encoded, text)
        if self._keep_bodies:
            return text
        lower = text.lower()
        if any(hint in lower for hint in self._hints):
            text = self._fields.sub(self._field, text)
            text = apart(text, lower, self._named, self._hide)
        if len(text) >= 13:
            text = _CARD.sub(self._card, text)
            if text.endswith("…"):
                text = _CUT_NUMBER.sub(lambda match: self._hide(match[0]), text)
        return text

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers with credentials taken out; a scheme such as `Bearer` stays."""
        return {name: self._header(name, value) for name, value in headers.items()}

    def key(self, key: str) -> str:
        """An idempotency key: it stays, since it is compared and shown, unless it is a token itself."""
        return self._tokens(key)

    def json(self, value: Any) -> Any:
        """The JSON value with the values of sensitive fields, tokens and card numbers taken out."""
        return self._json(value, 0)

    def _header(self, name: str, value: str) -> str:
        plain = _squash(name)
        if plain in _SECRET_HEADERS or self._sensitive(plain):
            scheme = _SCHEME_HEADER.fullmatch(value) if plain.endswith("authorization") else None
            return f"{scheme[1]}{scheme[2]}{self._hide(scheme[3])}" if scheme else self._hide(value)
        return self.key(value) if "idempotency" in plain else self.text(value)

    def _json(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            if depth > _MOST_DEPTH:
                return self._hide(repr(value))
            return {name: self._member(str(name), item, depth) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return self._hide(repr(value)) if depth > _MOST_DEPTH else [self._json(item, depth + 1) for item in value]
        if isinstance(value, int) and not isinstance(value, bool) and value >= 10**12 and not self._keep_bodies:
            text = str(value)
            hidden = _CARD.sub(self._card, text)
            return value if hidden == text else hidden
        return value

    def _member(self, name: str, value: Any, depth: int) -> Any:
        plain = _squash(name)
        if "idempotency" in plain and isinstance(value, str):
            return self.key(value)
        if plain == "headers" and isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
            return self.headers(value)
        if self._keep_bodies or not self._sensitive(plain) or value is None or isinstance(value, bool):
            return self._json(value, depth + 1)
        if isinstance(value, dict | list):
            return self._every_leaf(value, depth + 1)
        return self._hide(str(value)) if str(value).lower() not in HARMLESS else value

    def _every_leaf(self, value: Any, depth: int) -> Any:
        """A nested value of a sensitive field: its names stay, everything else goes."""
        if isinstance(value, dict) and depth <= _MOST_DEPTH:
            return {name: self._every_leaf(item, depth + 1) for name, item in value.items()}
        if isinstance(value, list | tuple) and depth <= _MOST_DEPTH:
            return [self._every_leaf(item, depth + 1) for item in value]
        return value if value is None or isinstance(value, bool) else self._hide(str(value))

    def _sensitive(self, plain: str) -> bool:
        return plain in self._exact or (plain.endswith(self._endings) and "idempotency" not in plain)

    def _named(self, name: str) -> bool:
        return self._sensitive(_squash(name))

    def _tokens(self, text: str) -> str:
        for secret in self._known:
            if secret in text:
                text = text.replace(secret, self._hide(secret))
        if any(start in text for start in _TOKEN_STARTS):
            text = _TOKENS.sub(lambda match: self._hide(match[0]), text)
        if "earer " in text or "asic " in text or "igest " in text or "EARER " in text or "ASIC " in text:
            text = _SCHEME.sub(lambda match: f"{match[1]}{match[2]}{self._hide(match[3])}", text)
        return text

    def _encoded(self, match: re.Match[str]) -> str:
        """Base64 stays when what it says holds no secret; else it goes as a whole. It may have been cut."""
        whole = match[0].rstrip("=")
        try:
            said = base64.b64decode(whole[: len(whole) & ~3]).decode("utf-8", "strict" if len(whole) < 40 else "ignore")
        except ValueError:
            return match[0]
        return match[0] if self.text(said) == said else self._hide(match[0])

    def _field(self, match: re.Match[str]) -> str:
        value = match["text"] or match["escaped"] or match["single"] or match["bare"] or ""
        if value.lower() in HARMLESS or value.startswith(("<redacted:", "$", "%", "?", "{")):
            return match[0]
        return match[0][: match.start("value") - match.start()] + match["value"].replace(value, self._hide(value))

    def _card(self, match: re.Match[str]) -> str:
        digits = match[0].replace(" ", "").replace("-", "")
        return self._hide(digits) if _is_card(digits) else match[0]

    def _hide(self, secret: str) -> str:
        if secret.startswith("<redacted:"):
            return secret
        self.count += 1
        digest = hashlib.blake2b(secret.encode("utf-8", "surrogatepass"), key=self._salt, digest_size=4)
        return f"<redacted:{digest.hexdigest()}>"


def _squash(name: str) -> str:
    return _NOT_ALNUM.sub("", name.lower())


def _hint(word: str) -> str:
    """The longest piece of a field name that every spelling of it contains."""
    return max(re.split(r"[^0-9a-z]", word.lower()), key=len)


def _field_pattern(words: Iterable[str], exact: Iterable[str]) -> re.Pattern[str]:
    """`name: value` and `name=value` in JSON, forms, query strings, SQL and prose."""

    def spelling(word: str) -> str:
        return "[-_ ]?".join(map(re.escape, re.split(r"[-_ ]", word)))

    ends, whole = ("|".join(sorted(map(spelling, group), key=len, reverse=True)) for group in (words, exact))
    return re.compile(
        rf"""
        (?:(?:{ends})|(?<![0-9A-Za-z])(?:{whole}))
        \\{{0,3}}["']?[ ]{{0,8}}[:=][ ]{{0,8}}
        (?P<value>
            "(?P<text>(?:[^"\\]|\\.)*)(?:"|\\?$)
          | \\{{1,3}}"(?P<escaped>[^"\\]*)
          | '(?P<single>[^'\\]*)(?:'|$)
          | (?P<bare>[^\s,;&"'\\}}\])]+)
        )
        """,
        re.VERBOSE | re.IGNORECASE,
    )


def _is_card(digits: str) -> bool:
    """Whether the digits are a payment card's: a known first part and length, and a right check digit (Luhn)."""
    size = len(digits)
    lead = int(digits[:4])
    known = (
        (digits[0] == "4" and size in (13, 16, 19))
        or (size == 16 and (5100 <= lead <= 5599 or 2221 <= lead <= 2720))
        or (size == 15 and digits[:2] in ("34", "37"))
        or (size == 14 and digits[:2] in ("30", "36", "38", "39"))
        or (16 <= size <= 19 and (digits[:2] in ("35", "65", "62") or digits[:4] == "6011" or 6440 <= lead <= 6499))
    )
    if not known:
        return False
    total = 0
    for index, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + index % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0
