"""One SQL statement, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from .unit import Change


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement."""

    verb: str
    """`INSERT`, `SELECT`, `COMMIT`, `ROLLBACK TO`, `CREATE TABLE`. Empty for an empty statement."""
    label: str
    """Verb and tables (or functions) without ids: `INSERT job_effects`, `SELECT pg_advisory_xact_lock()`."""
    change: Change = Change.NO
    """What it does to state by itself, whatever the transaction around it: NO, YES, or MAYBE (unknown functions)."""
    tables: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    """Functions that are not known to be free of side effects."""
    name: str = ""
    """Savepoint, prepared statement or cursor that it is about."""
    copy: str = ""
    """`in` or `out` when it is a COPY over the connection."""
    lasting: bool = False
    """It takes effect at once, and no rollback undoes it."""
    locks: bool = False
    """It takes row, table or advisory locks that end with the transaction."""
    counted: bool = False
    """The number in its command tag tells whether it changed anything."""
    clock: tuple[str, ...] = ()
    """What of the server's clock is compared with something: `now()`, `CURRENT_TIMESTAMP`. Sorted."""
    text: str = ""
    inner: tuple[Statement, ...] = ()
    """What a PREPARE prepares."""
