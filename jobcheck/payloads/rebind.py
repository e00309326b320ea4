"""Arguments that name rows of another day, made to name rows of this one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def rebind(value: Any, old: Mapping[str, str], new: Mapping[str, str]) -> Any:
    """`value` with the ids of an old case replaced by those of a new one, wherever they occur.

    Ids are paired by name. A number stays a number; in a text an id counts where it stands between other characters
    than letters and digits: `invoice:700001`.
    """
    pairs = {old[name]: new[name] for name in old if name in new and old[name]}
    if not pairs:
        return value
    longest_first = sorted(pairs, key=len, reverse=True)
    pattern = re.compile(rf"(?<![0-9A-Za-z])(?:{'|'.join(map(re.escape, longest_first))})(?![0-9A-Za-z])")
    return _rebound(value, pairs, pattern)


def _rebound(value: Any, pairs: Mapping[str, str], pattern: re.Pattern[str]) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        fresh = pairs.get(str(value), "")
        return int(fresh) if fresh.isdigit() else value
    if isinstance(value, str):
        return pattern.sub(lambda found: pairs[found[0]], value)
    if isinstance(value, Mapping):
        return {name: _rebound(item, pairs, pattern) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rebound(item, pairs, pattern) for item in value]
    return value


def occurs(value: Any, ids: Mapping[str, str]) -> bool:
    """Whether one of the ids occurs in the value."""
    text = repr(value)
    return any(re.search(rf"(?<![0-9A-Za-z]){re.escape(one)}(?![0-9A-Za-z])", text) for one in ids.values() if one)
