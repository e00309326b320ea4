"""The failure database: what was found, with all that is needed to run it again.

One JSON file, `.jobcheck/failures.json` beside `pyproject.toml`. Several processes may write at once (xdist).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from jobcheck.errors import UsageError
from jobcheck.history.codec import from_json, to_json
from jobcheck.history.records import Point, Strike

from .files import locked, refused, write_whole

FOLDER = ".jobcheck"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Failure:
    """One finding as it is remembered."""

    id: str
    subject: str
    mode: str
    """`handler` or `queue`."""
    rig: str = ""
    """How the rig is named: `tests/rig.py:shop`; empty for a bare handler."""
    function: str = ""
    """What makes the case: `tests.rig:new_invoice`."""
    handler: str = ""
    """The job function of handler mode: `shop.jobs:charge_card`."""
    points: tuple[Point, ...] = ()
    """The points of its strikes, first the one to replay."""
    strikes: tuple[Strike, ...] = ()
    contracts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """What else the run was told: `--assume at-least-once`."""
    node: str = ""
    """The pytest node id, where it came from a test."""
    seed: int = 0
    command: str = ""
    """The exact command that runs it again."""
    layer: str = ""
    effect: str = ""
    verdict: str = ""
    title: str = ""
    code: str = ""
    found: str = ""
    """When it was last seen, ISO 8601."""


class Failures:
    """The failure database of a project. Nothing is kept in memory: each call reads the file again."""

    def __init__(self, project: Path) -> None:
        """`project` is the folder with `pyproject.toml`. Nothing is written before something is remembered."""
        self.path = project / FOLDER / "failures.json"

    def all(self) -> list[Failure]:
        """Everything remembered, by id. Raises UsageError when the file is damaged."""
        return list(self._read().values())

    def remember(self, findings: Iterable[Failure]) -> None:
        """Adds findings; the same id again replaces the older one."""
        fresh = {item.id: item for item in findings}
        if fresh:
            self._change(lambda known: known | fresh)

    def renew(
        self,
        subject: str,
        mode: str,
        findings: Iterable[Failure],
        tried: Callable[[Strike], bool] = lambda strike: True,
    ) -> list[Failure]:
        """Replaces what is known of a subject that was explored to its end; returns what is gone (fixed).

        What was found by strikes that were not `tried` this time stays.
        """
        fresh = {item.id: item for item in findings}
        gone: list[Failure] = []

        def change(known: dict[str, Failure]) -> dict[str, Failure]:
            kept = {}
            for item in known.values():
                if (item.subject, item.mode) != (subject, mode) or not any(map(tried, item.strikes)):
                    kept[item.id] = item
                elif item.id not in fresh:
                    gone.append(item)
            return kept | fresh

        if fresh or self.path.exists():
            self._change(change)
        return gone

    def lookup(self, id: str) -> Failure:  # noqa: A002 - the field's own name
        """The finding with this id, or with the one id that begins so.

        Raises UsageError when there is none (naming the closest) or when several begin so.
        """
        known = self._read()
        if id in known:
            return known[id]
        hits = [key for key in known if id and key.startswith(id.lower())]
        if len(hits) == 1:
            return known[hits[0]]
        if hits:
            raise UsageError(f"several findings begin with {id!r}: {', '.join(hits)}", hint="give more of the id")
        close = difflib.get_close_matches(id.lower(), known, n=1, cutoff=0.5)
        if close:
            item = known[close[0]]
            raise UsageError(f"no finding {id!r}; the closest is {item.id}: {item.title or item.effect}")
        seen = f"known: {', '.join(list(known)[:12])}" if known else "none is remembered yet"
        raise UsageError(f"no finding {id!r} in {self.path}; {seen}", hint="run `jobcheck explore` or the test first")

    def forget(self, id: str) -> bool:  # noqa: A002
        """Removes a finding that is fixed. False when it was not there."""
        there = id in self._read()
        if there:
            self._change(lambda known: {key: item for key, item in known.items() if key != id})
        return there

    def failing_points(self, subject: str, mode: str = "") -> list[str]:
        """Ids of the points that failed last time, without repeats: tried first next time. `mode=""`: of all modes."""
        return list(
            dict.fromkeys(
                strike.point
                for item in self._read().values()
                if item.subject == subject and mode in ("", item.mode)
                for strike in item.strikes
            )
        )

    def _read(self) -> dict[str, Failure]:
        try:
            data = json.loads(self.path.read_bytes())
            items = [from_json(Failure, item) for item in data["findings"]]
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise refused(self.path, error, "read") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"{self.path} is damaged: {error}", hint="delete it; the next run writes it anew"
            ) from error
        return {item.id: item for item in items}

    def _change(self, change: Callable[[dict[str, Failure]], dict[str, Failure]]) -> None:
        with locked(self.path.with_suffix(".lock")):
            ignore = self.path.parent / ".gitignore"
            if not ignore.exists():
                write_whole(ignore, "# What jobcheck remembers on this machine.\n*\n")
            known = change(self._read())
            items = [to_json(known[key]) for key in sorted(known)]
            write_whole(self.path, json.dumps({"format": _FORMAT, "findings": items}, indent=1) + "\n")
