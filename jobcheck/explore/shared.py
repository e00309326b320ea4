"""Which messages of two deliveries are about state that both can see. Pure.

A message is a step of a race when it changes state, takes a lock, ends a transaction that wrote, or reads what the job
was seen to write: a table, a key, or the whole of an upstream whose protocol says no more. All other messages are
passed on at once, for nothing that the other delivery does can change their answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..wire.resp_commands import command_of, keys_of
from ..wire.shapes import normalise
from ..wire.unit import Change, Kind, Unit

WHOLE = "*"
"""In place of a table or key: all of the upstream."""
CHANGES = (Change.YES, Change.MAYBE, Change.PENDING)
_ISOLATED = ("REPEATABLE READ", "SERIALIZABLE")


def places(unit: Unit) -> frozenset[str]:
    """Tables or keys (without their ids) that a request names; `*` where it does not say."""
    protocol = unit.shape.partition(" ")[0]
    if protocol == "postgres":
        named = set(unit.info.get("tables", ()))
        # What a COMMIT makes true was named by the statements before it.
        unsure = bool(unit.info.get("functions")) or not (named or unit.shape == "postgres COMMIT")
    elif protocol == "redis":
        ops = [list(op) for op in unit.info.get("ops", ()) if op]
        keys = [key for op in ops for key in keys_of(command_of(op), op)]
        named = {normalise(key.decode("utf-8", "replace")) for key in keys}
        unsure = not named
    else:
        return frozenset({WHOLE})
    return frozenset(named | {WHOLE} if unsure and _writes(unit) else named)


def _writes(unit: Unit) -> bool:
    return unit.change in CHANGES or bool(unit.info.get("writes"))


@dataclass(slots=True)
class Shared:
    """What the job writes, as far as it was seen; while `open`, everything counts as written."""

    written: set[tuple[str, str]] = field(default_factory=set)
    open: bool = True
    _dirty: set[int] = field(default_factory=set)
    """Connections inside a transaction that wrote."""
    _isolated: set[int] = field(default_factory=set)
    """Connections whose next statement takes the snapshot of a whole transaction."""

    def learn(self, requests: Iterable[tuple[str, Unit]]) -> None:
        """Takes these requests (with their upstreams) as all that the job writes."""
        for upstream, unit in requests:
            if _writes(unit):
                self.written.update((upstream, place) for place in places(unit))
        self.open = False

    def counts(self, upstream: str, link: int, unit: Unit) -> bool:
        """Whether this request is a step. To be asked of every request once, in order: it keeps transactions."""
        if unit.kind not in (Kind.REQUEST, Kind.OPAQUE) or unit.info.get("queued"):
            return False  # what Redis queues up to an EXEC is seen by nobody before it
        ends = unit.shape in ("postgres COMMIT", "postgres ROLLBACK")
        dirty, isolated = link in self._dirty, link in self._isolated
        self._follow(link, unit, ends)
        if unit.kind is Kind.OPAQUE or unit.change in CHANGES or unit.info.get("locks") or (ends and dirty):
            return True
        touched = places(unit)
        return bool(touched) and (isolated or self._reads(upstream, touched))

    def changes(self, unit: Unit) -> bool:
        """Whether a step does more than to look."""
        return unit.kind is Kind.OPAQUE or unit.change in CHANGES or bool(unit.info.get("locks"))

    def _reads(self, upstream: str, touched: frozenset[str]) -> bool:
        if self.open:
            return True
        mine = {place for where, place in self.written if where == upstream}
        return bool(mine and (touched & mine or WHOLE in mine or WHOLE in touched))

    def _follow(self, link: int, unit: Unit, ends: bool) -> None:
        if not unit.shape.startswith("postgres"):
            return
        begins = unit.shape.startswith(("postgres BEGIN", "postgres SET", "postgres START"))
        if begins and any(word in sql.upper() for sql in unit.info.get("sql", ()) for word in _ISOLATED):
            self._isolated.add(link)
        elif not begins:
            self._isolated.discard(link)
        if ends:
            self._dirty.discard(link)
        elif unit.change is Change.PENDING:
            self._dirty.add(link)
