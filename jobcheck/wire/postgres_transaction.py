"""What a PostgreSQL connection has written and not committed yet.

The same bookkeeping serves twice: for the guess, fed with requests as if they all succeeded, and for the server's
truth, fed with command tags and transaction status.
"""

from __future__ import annotations

from .postgres_messages import tag_count
from .sql_statement import Statement
from .unit import Change

MAX_PENDING = 1000
"""Writes of one transaction that are remembered by label."""

_QUIET_TAG_LIST = """
SET SHOW RESET DISCARD LISTEN UNLISTEN PREPARE DEALLOCATE DECLARE FETCH MOVE CLOSE LOCK EXPLAIN CHECKPOINT LOAD SELECT
BEGIN START
"""
_QUIET_TAGS = frozenset(_QUIET_TAG_LIST.split())
_COUNTING_TAGS = frozenset(["INSERT", "UPDATE", "DELETE", "MERGE"])


def change_of(statement: Statement | None, tag: str) -> Change:
    """What one carried-out statement did, by its text where it is known and by its command tag."""
    word = tag.partition(" ")[0]
    count = tag_count(tag)
    if statement is None:
        if word in _COUNTING_TAGS or word == "COPY":
            return Change.YES if count else Change.NO
        return Change.NO if word in _QUIET_TAGS else Change.YES
    if statement.change is Change.NO:
        # A rule or an EXECUTE can make more of a statement than its text shows.
        return Change.YES if word in _COUNTING_TAGS and count > 0 else Change.NO
    if count == 0 and statement.counted:
        return Change.NO
    if statement.change is Change.MAYBE:
        return Change.MAYBE if count == 0 else Change.YES
    return Change.YES


class Transaction:
    """The writes of the present transaction, and what the present batch did."""

    def __init__(self) -> None:
        self.explicit = False
        """Inside BEGIN ... COMMIT (or in a failed one)."""
        self.pending: list[tuple[str, Change]] = []
        self._savepoints: list[tuple[str, int]] = []
        self.begin_batch()

    def begin_batch(self) -> None:
        """A new batch: nothing done by it yet."""
        self.done = Change.NO
        """What the batch made true."""
        self.wrote = False
        """The batch added to `pending`."""
        self.committed: list[str] = []
        """Labels of the writes that the batch made true by a commit."""

    def run(self, statement: Statement | None, change: Change, label: str, tag: str = "") -> None:
        """One statement was carried out. `tag` is the server's, empty when it is not known."""
        verb = statement.verb if statement else tag
        if tag == "ROLLBACK" and verb == "COMMIT":
            verb = "ROLLBACK"  # of a failed transaction
        if verb == "BEGIN" or verb.startswith("START "):
            self.explicit = True
        elif verb == "COMMIT":
            self._commit()
        elif verb == "ROLLBACK":
            self._forget()
        elif verb == "SAVEPOINT":
            self._savepoints.append((statement.name if statement else "", len(self.pending)))
        elif verb == "ROLLBACK TO":
            self._rollback_to(statement.name if statement else "")
        elif verb == "PREPARE TRANSACTION":
            self._commit()
        elif change is not Change.NO:
            if statement is not None and statement.lasting:
                self._made(change)
            elif len(self.pending) < MAX_PENDING:
                self.pending.append((label, change))
            self.wrote = True

    def settle(self, status: str = "", *, failed: bool = False) -> Change:
        """The batch ended at a ReadyForQuery with this status (empty: as guessed); answers with what it did."""
        if status:
            self.explicit = status != "I"
        if not self.explicit:
            if failed:
                self._forget()
            else:
                self._commit()
        if self.done is not Change.NO:
            return self.done
        return Change.PENDING if self.wrote and status != "E" and self.explicit else Change.NO

    def pause(self) -> Change:
        """The batch ended at a Flush: what is written becomes true at a later Sync."""
        if self.done is not Change.NO:
            return self.done
        return Change.PENDING if self.wrote else Change.NO

    def copy_from(self, other: Transaction) -> None:
        """Takes over what the other one knows of the transaction."""
        self.explicit = other.explicit
        self.pending = list(other.pending)
        self._savepoints = list(other._savepoints)

    def labels(self) -> tuple[str, ...]:
        """The committed writes, each label once."""
        return tuple(dict.fromkeys(self.committed))[:10]

    def _made(self, change: Change) -> None:
        if self.done is not Change.YES:
            self.done = change

    def _commit(self) -> None:
        for label, change in self.pending:
            self._made(change)
            self.committed.append(label)
        self._forget()

    def _forget(self) -> None:
        self.explicit = False
        self.pending.clear()
        self._savepoints.clear()

    def _rollback_to(self, name: str) -> None:
        for index in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[index][0] == name:
                del self.pending[self._savepoints[index][1] :]
                del self._savepoints[index + 1 :]
                return
