"""Where a statement compares the server's clock with something: `expires_at < now()`, `now() - claimed_at > $1`.

Whoever moves a lease and not the clock does not see what such a statement says later.
"""

from __future__ import annotations

import re
from typing import Any

FUNCTIONS = frozenset(("now", "clock_timestamp", "statement_timestamp", "transaction_timestamp"))
_VALUES = re.compile(r"SVFOP_(CURRENT_DATE|CURRENT_TIME|CURRENT_TIMESTAMP|LOCALTIME|LOCALTIMESTAMP)(_N)?")
"""How libpg_query names the values that the standard writes without parentheses."""
_ARITHMETIC = frozenset(["+", "-", "*", "/", "%", "^", "||"])
"""Operators that give a value. All others ask something: `<`, `=`, `BETWEEN`, `@>`, `&&`."""
_WORDS = re.compile(r"now|timestamp|current_(date|time)|localtime|\bage\b", re.IGNORECASE)


def names_a_clock(text: str) -> bool:
    """Whether it is worth looking: most statements name no clock."""
    return bool(_WORDS.search(text))


def compared_clocks(tree: Any) -> tuple[str, ...]:
    """The clocks in the operands of a statement's comparisons, sorted. `SET until = now() + $1` compares nothing."""
    found: set[str] = set()
    stack: list[tuple[Any, bool]] = [(tree, False)]
    while stack:
        node, compared = stack.pop()
        if isinstance(node, list):
            stack.extend((child, compared) for child in node)
            continue
        if not isinstance(node, dict):
            continue
        for key, child in node.items():
            if compared and (name := _clock(key, child)):
                found.add(name)
            stack.append((child, compared or (key == "A_Expr" and _asks(child))))
    return tuple(sorted(found))


def _asks(expression: Any) -> bool:
    names = [part.get("String", {}).get("sval", "") for part in expression.get("name", [])]
    return bool(names) and names[-1] not in _ARITHMETIC


def _clock(kind: str, node: Any) -> str:
    """`now()` where this node reads the clock."""
    if kind == "SQLValueFunction" and (value := _VALUES.fullmatch(str(node.get("op", "")))):
        return value[1]
    if kind != "FuncCall":
        return ""
    names = [part.get("String", {}).get("sval", "") for part in node.get("funcname", [])]
    if len(names) > 1 and names[0] != "pg_catalog":
        return ""
    if names[-1:] == ["age"] and len(node.get("args", [])) == 1:
        return "age()"  # counts from today
    return f"{names[-1]}()" if names and names[-1] in FUNCTIONS else ""
