"""Secrets whose names stand apart from their values: columns of an INSERT, fields and keys of Redis commands."""

from __future__ import annotations

import re
from collections.abc import Callable

HARMLESS = frozenset({"", "null", "none", "true", "false", "nil", "undefined", "bearer", "basic", "digest"})
"""Values that give nothing away, and the schemes whose own value was taken out before."""
_INSERT = re.compile(r"\(([\w\s,\"`.]{1,2000})\)\s*VALUES\s*(\(.*)", re.IGNORECASE | re.DOTALL)
_SQL_ROW = re.compile(r"\(((?:[^()']|'(?:[^']|'')*(?:'|$)|\([^()]*\))*)")
_SQL_VALUE = re.compile(r"\s*(?:'((?:[^']|'')*)(?:'|$)|(?:[^,()]|\([^()]*\))+)")
_START = r"(?:^|(?<=; )|(?<=^EXEC ))"
"""Of a Redis command, as the summary of a message says it: alone, or one of a transaction."""
_BARE = r"(?:[^\s;]|;(?!\s|$))+"
_QUOTED = r'"(?:[^"\\]|\\.)*(?:"|$)'
_WORD = re.compile(rf" ({_QUOTED}|{_BARE})")
_HASH = re.compile(rf"{_START}(H(?:SET|MSET|SETNX) \S+)((?: (?:{_QUOTED}|{_BARE}))+)", re.IGNORECASE)
_SET = re.compile(rf"{_START}((?:SET|SETNX|GETSET|APPEND) (\S+) |P?SETEX (\S+) \d+ )({_BARE})", re.IGNORECASE)
_PARTS = re.compile(r"[:/.|]")

Named = Callable[[str], bool]
"""Whether a field of this name is secret."""
Hide = Callable[[str], str]


def apart(text: str, lower: str, named: Named, hide: Hide) -> str:
    """The text without such secrets; `lower` is the same in small letters."""
    if "values" in lower:
        text = _INSERT.sub(lambda match: _insert(match, named, hide), text)
    if "set" in lower or "append" in lower:
        text = _HASH.sub(lambda match: _hash(match, named, hide), text)
        text = _SET.sub(lambda match: _set(match, named, hide), text)
    return text


def _insert(match: re.Match[str], named: Named, hide: Hide) -> str:
    """`(name, password) VALUES ('a', 'secret'), ...`."""
    secret = [named(name) for name in match[1].split(",")]

    def row(found: re.Match[str]) -> str:
        out, at = "(", 0
        for hidden, value in zip(secret, _SQL_VALUE.finditer(found[1]), strict=False):
            if hidden and value[1]:
                out += found[1][at : value.start(1)] + hide(value[1])
                at = value.end(1)
        return out + found[1][at:]

    return match[0][: match.start(2) - match.start()] + _SQL_ROW.sub(row, match[2])


def _hash(match: re.Match[str], named: Named, hide: Hide) -> str:
    """`HSET user:1 name ann password hunter2`: a value follows its field's name."""
    out, name = match[1], ""
    for number, found in enumerate(_WORD.finditer(match[2])):
        word = found[1][1:].removesuffix('"') if found[1].startswith('"') else found[1]
        hidden = number % 2 and named(name) and word.lower() not in HARMLESS
        out += f" {hide(word)}" if hidden else found[0]
        name = word
    return out


def _set(match: re.Match[str], named: Named, hide: Hide) -> str:
    """`SET reset-token:7 abc`, `SETEX user:7:password 60 abc`: the key says what it is."""
    if match[4] in ("=", "TO") or not any(map(named, _PARTS.split(match[2] or match[3]))):
        return match[0]
    return match[1] + hide(match[4])
