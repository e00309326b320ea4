"""What a SQL text does by its first words, for texts that the parser does not take."""

from __future__ import annotations

import re

from .shapes import normalise
from .sql_functions import is_pure, is_transaction_lock
from .sql_statement import Statement
from .unit import Change

MAX_READ = 64 * 1024
"""Characters of a text that are looked at."""

_NAME = r"(?:only\s+)?((?:\"[^\"]+\"|[\w$]+)(?:\.(?:\"[^\"]+\"|[\w$]+))?)"
_MODIFY = (
    ("INSERT", re.compile(rf"insert\s+into\s+{_NAME}", re.I)),
    ("UPDATE", re.compile(rf"update\s+{_NAME}", re.I)),
    ("DELETE", re.compile(rf"delete\s+from\s+{_NAME}", re.I)),
    ("MERGE", re.compile(rf"merge\s+into\s+{_NAME}", re.I)),
)
_COPY_IN = re.compile(rf"copy\s+{_NAME}.{{0,4000}}?\bfrom\s+stdin\b", re.I | re.S)
_FROM = re.compile(rf"\bfrom\s+{_NAME}", re.I)
_FIRST = re.compile(r"\s*\(*\s*([a-z]+)(?:\s+([a-z]+))?", re.I)
_CALL = re.compile(r"\b([a-z_][a-z0-9_]{0,62})\s{0,8}\(", re.I)
_WRITES_INSIDE = re.compile(r"\b(insert\s+into|update\s+\S+\s+set|delete\s+from|merge\s+into)\b", re.I)
_LOCKING = re.compile(r"\bfor\s+(?:no\s+key\s+)?(?:update|share)\b", re.I)

_QUIET_WORDS = """
SET SHOW RESET DISCARD LISTEN UNLISTEN PREPARE EXECUTE DEALLOCATE DECLARE FETCH MOVE CLOSE LOCK EXPLAIN CHECKPOINT LOAD
"""
_QUIET = frozenset(_QUIET_WORDS.split())
_TRANSACTION = {
    "BEGIN": "BEGIN",
    "START": "BEGIN",
    "COMMIT": "COMMIT",
    "END": "COMMIT",
    "ROLLBACK": "ROLLBACK",
    "ABORT": "ROLLBACK",
    "SAVEPOINT": "SAVEPOINT",
    "RELEASE": "RELEASE",
}
_KEYWORD_LIST = """
in and or not values exists any all some as over filter within using on select from where case when then else by row
array coalesce nullif greatest least union except intersect lateral cast group with recursive materialized varchar
numeric set into limit offset distinct like between is
"""
_KEYWORDS = frozenset(_KEYWORD_LIST.split())


def read_words(text: str) -> tuple[Statement, ...]:
    """One statement for the whole text; none for an empty one."""
    text = text[:MAX_READ]
    match = _FIRST.match(text)
    if match is None:
        return (Statement("?", "?", Change.MAYBE, text=text),) if text.strip("; \t\r\n") else ()
    word = match.group(1).upper()
    for verb, pattern in _MODIFY:
        if word == verb and (found := pattern.search(text)):
            table = _table(found.group(1))
            return (Statement(verb, f"{verb} {table}", Change.YES, (table,), locks=True, counted=True, text=text),)
    if word == "COPY":
        found = _COPY_IN.match(text)
        table = _table(found.group(1)) if found else ""
        copy, change = ("in", Change.YES) if found else ("out", Change.NO)
        return (Statement("COPY", f"COPY {table}".rstrip(), change, copy=copy, counted=bool(found), text=text),)
    if word in ("SELECT", "WITH", "VALUES", "TABLE"):
        return (_select(text),)
    second = (match.group(2) or "").upper()
    if word in _TRANSACTION and second != "PREPARED":
        verb = "ROLLBACK TO" if word == "ROLLBACK" and second == "TO" else _TRANSACTION[word]
        return (Statement(verb, verb, text=text),)
    if word in _QUIET and second != "TRANSACTION":
        return (Statement(word, word, text=text),)
    verb = f"{word} {second}".rstrip() if word in ("CREATE", "ALTER", "DROP", "PREPARE", "COMMIT", "ROLLBACK") else word
    return (Statement(verb, verb, Change.YES, text=text),)


def _select(text: str) -> Statement:
    called = {name.lower() for name in _CALL.findall(text)} - _KEYWORDS
    unknown = sorted(name for name in called if not is_pure(name) and not is_transaction_lock(name))
    change = Change.YES if _WRITES_INSIDE.search(text) else Change.MAYBE if unknown else Change.NO
    found = _FROM.search(text)
    table = _table(found.group(1)) if found else ""
    tables = (table,) if table else ()
    label = f"SELECT {table}".rstrip()
    locks = bool(_LOCKING.search(text))
    return Statement("SELECT", label, change, tables, tuple(unknown), locks=locks, text=text)


def _table(name: str) -> str:
    return normalise(name.replace('"', "").removeprefix("public."))
