"""Labels without ids: what makes the k-th `http POST /charges/*` of one run the k-th of the next one.

Ids, times, uuids and random tokens become `*` *before* anything is cut short: a uuid cut at 14 characters is a
different label in every run.
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_LABEL = 96
"""Characters of one normalised name in a label."""
MAX_SUMMARY = 200

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_TIME = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:?\d\d(?::?\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
_ADDRESS = r"\d{1,3}(?:\.\d{1,3}){3}"
_FLOAT = r"\d+\.\d+(?:[eE][+-]?\d+)?"
_WHOLE = re.compile(rf"(?<![0-9A-Za-z])(?:{_UUID}|{_TIME}|{_ADDRESS}|{_FLOAT})(?![0-9A-Za-z])")
_TOKEN = re.compile(r"[^\W_]+")
_DIGITS = re.compile(r"\d+")
_LONG_DIGITS = re.compile(r"\d{3,}")
_HEX = re.compile(r"[0-9a-fA-F]+")
_CASE_TURN = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[a-z])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def _token(match: re.Match[str]) -> str:
    """One run of letters and digits: a word stays, an id becomes `*`, a word with a long number keeps the word."""
    text = match.group()
    size = len(text)
    runs = _DIGITS.findall(text)
    digits = sum(map(len, runs))
    if digits == size:
        return "*"
    if _HEX.fullmatch(text) and size >= 8 and (digits or size >= 16):
        return "*"
    if digits >= 3 and len(runs) > 1:
        return "*"
    mixed = text != text.lower() and text != text.upper()
    if digits and mixed and size >= 10:
        return "*"
    if digits >= 2 and size >= 20:
        return "*"
    if mixed and size >= 16 and len(_CASE_TURN.findall(text)) * 3 >= size:
        return "*"
    return _LONG_DIGITS.sub("*", text) if digits >= 3 else text


@lru_cache(maxsize=8192)
def normalise(text: str) -> str:
    """`celery-task-meta-0b9c...` -> `celery-task-meta-*`, `/charges/17/refunds` -> `/charges/*/refunds`.

    Control characters become one middle dot. The result has at most `MAX_LABEL` characters.
    """
    if not text.isprintable():
        text = _CONTROL.sub("·", text)
    if not text.isalpha():
        text = _WHOLE.sub("*", text)
    text = _TOKEN.sub(_token, text)
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"


def one_line(text: str, limit: int = MAX_SUMMARY) -> str:
    """The text on one line, control characters shown as a middle dot, cut to `limit` characters."""
    if len(text) > 4 * limit:
        text = text[: 4 * limit]
    if not text.isprintable():
        text = " ".join(text.split())
        if not text.isprintable():
            text = _CONTROL.sub("·", text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def join_labels(labels: list[str], most: int = 6) -> str:
    """Labels joined by `+`; a label that repeats the one before it is said once, and a long list is cut."""
    unlike = [label for index, label in enumerate(labels) if index == 0 or label != labels[index - 1]]
    if len(unlike) > most:
        unlike = [*unlike[:most], "…"]
    return "+".join(unlike)
