"""What a SQL text does, by PostgreSQL's own parser: verb, tables, functions that may have side effects.

`parse_sql` gives one `Statement` per statement. What cannot be parsed (another server's syntax, 64 KiB of values) is
read by its first words.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pgparse

from .shapes import normalise
from .sql_clock import compared_clocks, names_a_clock
from .sql_functions import is_known_change, is_lasting, is_pure, is_transaction_lock
from .sql_statement import Statement
from .sql_words import read_words
from .unit import Change

MAX_PARSED = 64 * 1024
"""Characters of SQL that are parsed; a longer text is read by its first words."""
MOST_TABLES = 3
"""Tables of one read that its label names."""

Node = dict[str, Any]
"""A node of the parse tree, as libpg_query gives it in JSON."""


def parse_sql(text: str) -> tuple[Statement, ...]:
    """The statements of a SQL text, cached. Comments around it do not count. Never raises."""
    return _parse(strip_comments(text))


@lru_cache(maxsize=512)
def _parse(text: str) -> tuple[Statement, ...]:
    if len(text) <= MAX_PARSED:
        try:
            trees = pgparse.parse(text)
            return tuple(
                replace(found, clock=compared_clocks(tree)) if names_a_clock(text) else found
                for found, tree in zip(_statements(text, trees), trees, strict=True)
            )
        except (pgparse.PGQueryError, RecursionError, ValueError, KeyError, TypeError, AttributeError):
            pass  # read by its first words instead
    return read_words(text)


def strip_comments(text: str) -> str:
    """The text without the comments before and after it, which tracing libraries fill with ids."""
    text = text.strip()
    while True:
        if text.startswith("/*") and (end := text.find("*/")) >= 0:
            text = text[end + 2 :].lstrip()
        elif text.startswith("--"):
            _, _, text = text.partition("\n")
            text = text.lstrip()
        else:
            break
    bare = text.rstrip("; \t\r\n")
    if bare.endswith("*/") and (start := bare.rfind("/*")) >= 0 and text.count("'", 0, start) % 2 == 0:
        return bare[:start].rstrip()
    return text


def _statements(text: str, trees: list[Node]) -> tuple[Statement, ...]:
    if len(trees) == 1:
        return (replace(_statement(trees[0]["stmt"]), text=text),)
    data = text.encode("utf-8", "surrogatepass")
    found = []
    for tree in trees:
        start = tree.get("stmt_location", 0)
        size = tree.get("stmt_len", 0) or len(data) - start
        own = strip_comments(data[start : start + size].decode("utf-8", "replace"))
        found.append(replace(_statement(tree["stmt"]), text=own))
    return tuple(found)


class _Facts:
    """What is found in a tree: relations, functions, data-modifying statements inside, locks."""

    def __init__(self, root: Node) -> None:
        self.relations: list[str] = []
        self.functions: list[str] = []
        self.unknown = False
        """A function whose effects are not known."""
        self.known = False
        """A function that changes state for certain."""
        self.lasting = False
        self.locks = False
        self.modifying: list[tuple[str, str]] = []
        """Verb and table of each INSERT, UPDATE, DELETE and MERGE."""
        ctes: set[str] = set()
        stack: list[Any] = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, list):
                stack.extend(reversed(node))
                continue
            for key, child in node.items():
                if key == "RangeVar" or (key in ("relation", "rel") and isinstance(child, dict) and "relname" in child):
                    self.relations.append(table_name(child))
                elif key in ("FuncCall", "funccall"):
                    self._function(child)
                elif key == "CommonTableExpr":
                    ctes.add(child.get("ctename", ""))
                elif key == "lockingClause":
                    self.locks = True
                elif verb := _MODIFYING.get(key):
                    self.modifying.append((verb, table_name(child.get("relation", {}))))
            # FROM before the rest, WITH last: the first relations are the ones that a reader would name.
            children = [(key, child) for key, child in node.items() if isinstance(child, dict | list)]
            children.sort(key=lambda item: _ORDER.get(item[0], 1))
            stack.extend(child for _, child in reversed(children))
        self.tables = tuple(dict.fromkeys(name for name in self.relations if name not in ctes))

    def _function(self, call: Node) -> None:
        parts = [part.get("String", {}).get("sval", "") for part in call.get("funcname", [])]
        name, schema = parts[-1], parts[-2] if len(parts) > 1 else ""
        if is_transaction_lock(name):
            self.locks = True
        elif is_pure(name, schema):
            return
        elif is_known_change(name):
            self.known = True
            self.lasting = self.lasting or is_lasting(name)
        else:
            self.unknown = True
        label = normalise(name if schema in ("", "public", "pg_catalog") else f"{schema}.{name}")
        if label not in self.functions:
            self.functions.append(label)

    @property
    def change(self) -> Change:
        if self.modifying or self.known:
            return Change.YES
        return Change.MAYBE if self.unknown else Change.NO


_MODIFYING = {"InsertStmt": "INSERT", "UpdateStmt": "UPDATE", "DeleteStmt": "DELETE", "MergeStmt": "MERGE"}
_ORDER = {"relation": 0, "fromClause": 0, "withClause": 2}


def table_name(relation: Node) -> str:
    """The name of a relation without ids, and without the schema where it is `public`."""
    name = relation.get("relname", "?")
    schema = relation.get("schemaname", "")
    return normalise(name if schema in ("", "public") else f"{schema}.{name}")


def _statement(node: Node) -> Statement:
    kind, body = next(iter(node.items()))
    if kind == "SelectStmt":
        return _select(node, body)
    if verb := _MODIFYING.get(kind):
        return _modify(node, body, verb)
    if kind == "TransactionStmt":
        return _transaction(body)
    if kind == "CopyStmt":
        return _copy(node, body)
    if kind in _QUIET:
        return _quiet(kind, body)
    if kind == "ExplainStmt":
        inner = _statement(body["query"])
        runs = any(option.get("DefElem", {}).get("defname") == "analyze" for option in body.get("options", []))
        change = inner.change if runs else Change.NO
        return Statement("EXPLAIN", f"EXPLAIN {inner.label}", change, inner.tables, inner.functions)
    facts = _Facts(node)
    if kind == "CallStmt":
        name = "+".join(facts.functions) or "?"
        return Statement("CALL", f"CALL {name}()", Change.YES, facts.tables, tuple(facts.functions))
    verb = _ddl_verb(kind, body)
    tables = facts.tables or _dropped(body)
    label = " ".join([verb, *tables[:1]])
    if kind == "NotifyStmt":
        label = f"NOTIFY {normalise(body.get('conditionname', '?'))}"
    relation = body.get("relation")
    temporary = kind == "CreateStmt" and isinstance(relation, dict) and relation.get("relpersistence") == "t"
    return Statement(verb, label, Change.NO if temporary else Change.YES, tables, tuple(facts.functions))


def _dropped(body: Node) -> tuple[str, ...]:
    """The names in a DROP, which are no relations yet."""
    names = []
    for item in body.get("objects", []):
        parts = [part.get("String", {}).get("sval", "") for part in item.get("List", {}).get("items", [])]
        if parts:
            names.append(normalise(".".join(part for part in parts if part != "public")))
    return tuple(names)


def _select(node: Node, body: Node) -> Statement:
    facts = _Facts(node)
    functions = tuple(facts.functions)
    if "intoClause" in body:
        label = f"SELECT INTO {table_name(body['intoClause'].get('rel', {}))}"
        return Statement("SELECT INTO", label, Change.YES, facts.tables, functions)
    words = ["SELECT"]
    if facts.modifying:
        words = ["WITH", *dict.fromkeys(f"{verb} {table}" for verb, table in facts.modifying), "SELECT"]
    elif facts.tables:
        words.append(",".join(facts.tables[:MOST_TABLES]))
    words += [f"{name}()" for name in functions[:MOST_TABLES]]
    if "lockingClause" in body:
        words.append("FOR UPDATE" if "FORUPDATE" in str(body["lockingClause"]) else "FOR SHARE")
    return Statement(
        "SELECT",
        " ".join(words),
        facts.change,
        facts.tables,
        functions,
        lasting=facts.lasting,
        locks=facts.locks,
        counted=_returns_all_it_changed(body, facts),
    )


def _returns_all_it_changed(body: Node, facts: _Facts) -> bool:
    """`WITH x AS (UPDATE ... RETURNING ...) SELECT ... FROM x`: no row means that nothing was changed."""
    if len(facts.modifying) != 1 or facts.known or facts.unknown:
        return False
    if any(key in body for key in ("whereClause", "groupClause", "havingClause", "limitCount", "limitOffset", "larg")):
        return False
    sources = body.get("fromClause", [])
    if len(sources) != 1 or "RangeVar" not in sources[0] or "FuncCall" in str(body.get("targetList", "")):
        return False
    for item in body.get("withClause", {}).get("ctes", []):
        cte = item.get("CommonTableExpr", {})
        if cte.get("ctename") == sources[0]["RangeVar"].get("relname"):
            return any(kind in _MODIFYING for kind in cte.get("ctequery", {}))
    return False


def _modify(node: Node, body: Node, verb: str) -> Statement:
    facts = _Facts(node)
    own = table_name(body.get("relation", {}))
    others = [f"{other} {table}" for other, table in facts.modifying if (other, table) != (verb, own)]
    label = f"{verb} {own}"
    if others:
        label = f"WITH {' '.join(dict.fromkeys(others))} {label}"
    counted = not others and not facts.known and not facts.unknown
    functions = tuple(facts.functions)
    return Statement(
        verb, label, Change.YES, facts.tables, functions, lasting=facts.lasting, locks=True, counted=counted
    )


_TRANSACTION = {
    "TRANS_STMT_BEGIN": "BEGIN",
    "TRANS_STMT_START": "BEGIN",
    "TRANS_STMT_COMMIT": "COMMIT",
    "TRANS_STMT_ROLLBACK": "ROLLBACK",
    "TRANS_STMT_SAVEPOINT": "SAVEPOINT",
    "TRANS_STMT_RELEASE": "RELEASE",
    "TRANS_STMT_ROLLBACK_TO": "ROLLBACK TO",
    "TRANS_STMT_PREPARE": "PREPARE TRANSACTION",
    "TRANS_STMT_COMMIT_PREPARED": "COMMIT PREPARED",
    "TRANS_STMT_ROLLBACK_PREPARED": "ROLLBACK PREPARED",
}


def _transaction(body: Node) -> Statement:
    verb = _TRANSACTION.get(body.get("kind", ""), "COMMIT")
    # Whether a COMMIT changes anything depends on the transaction; the two-phase commands do for certain.
    change = Change.YES if verb.endswith("PREPARED") else Change.NO
    return Statement(verb, verb, change, name=body.get("savepoint_name", ""), lasting=change is Change.YES)


def _copy(node: Node, body: Node) -> Statement:
    facts = _Facts(node)
    label = " ".join(["COPY", *facts.tables[:1]])
    over_wire = not body.get("filename") and not body.get("is_program")
    if body.get("is_from"):
        return Statement("COPY", label, Change.YES, facts.tables, copy="in" if over_wire else "", counted=True)
    change = facts.change if over_wire else Change.YES
    functions = tuple(facts.functions)
    return Statement("COPY", f"{label} TO", change, facts.tables, functions, copy="out" if over_wire else "")


_QUIET = {
    "VariableSetStmt": "SET",
    "VariableShowStmt": "SHOW",
    "DiscardStmt": "DISCARD",
    "ListenStmt": "LISTEN",
    "UnlistenStmt": "UNLISTEN",
    "PrepareStmt": "PREPARE",
    "ExecuteStmt": "EXECUTE",
    "DeallocateStmt": "DEALLOCATE",
    "DeclareCursorStmt": "DECLARE",
    "FetchStmt": "FETCH",
    "ClosePortalStmt": "CLOSE",
    "LockStmt": "LOCK",
    "CheckPointStmt": "CHECKPOINT",
    "LoadStmt": "LOAD",
    "ConstraintsSetStmt": "SET CONSTRAINTS",
}
"""Statements about the session. Each has a name at most."""


def _quiet(kind: str, body: Node) -> Statement:
    verb = _QUIET[kind]
    name = body.get("name") or body.get("portalname") or body.get("conditionname") or ""
    if kind == "PrepareStmt":
        inner = _statement(body["query"])
        return Statement(verb, f"PREPARE {inner.label}", name=name, inner=(inner,))
    if kind == "DeclareCursorStmt":
        inner = _statement(body["query"])
        return Statement(verb, f"DECLARE {inner.label}", inner.change, inner.tables, inner.functions, name=name)
    if kind == "LockStmt":
        tables = _Facts({"LockStmt": body}).tables
        return Statement(verb, f"LOCK {','.join(tables[:MOST_TABLES])}", tables=tables, locks=True)
    if kind in ("ListenStmt", "UnlistenStmt", "ExecuteStmt") and name:
        return Statement(verb, f"{verb} {normalise(name)}", name=name)
    return Statement(verb, verb, name=name)


_DDL = {
    "CreateStmt": "CREATE TABLE",
    "IndexStmt": "CREATE INDEX",
    "ViewStmt": "CREATE VIEW",
    "CreateSeqStmt": "CREATE SEQUENCE",
    "CreateTrigStmt": "CREATE TRIGGER",
    "CreateTableAsStmt": "CREATE TABLE AS",
    "RefreshMatViewStmt": "REFRESH",
    "TruncateStmt": "TRUNCATE",
    "RenameStmt": "ALTER RENAME",
    "DoStmt": "DO",
}


def _ddl_verb(kind: str, body: Node) -> str:
    if kind == "DropStmt":
        return "DROP " + str(body.get("removeType", "")).removeprefix("OBJECT_").replace("_", " ")
    return _DDL.get(kind) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.removesuffix("Stmt")).upper()
