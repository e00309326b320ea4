"""The gate of one worker of a scenario: writes down what passes, strikes at named points, holds a doubled job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from ...faults.model import NamedPoint
from ...tap.gate import COUNTED
from ...tap.link import Link
from ...tap.sight import IN, OUT, Sight
from ...wire.unit import Change, Kind
from .ailments import NOT_KEPT, Ailment, is_at
from .book import Book, Message


@dataclass(slots=True, eq=False)
class Arm:
    """A strike that waits for its point; shared by the gates of all workers that it may hit."""

    point: NamedPoint
    word: str = "killed"
    """What the story says of it."""
    count: int = 0
    fired: bool = False
    _awaited: Sight | None = None

    def hits(self, sight: Sight) -> bool:
        """Whether the worker is to be struck now; the unit is held then."""
        if self.fired:
            return False
        if self._awaited is not None and sight.request is self._awaited:
            return self._fire()
        if not is_at(sight, self.point.name):
            return False
        self.count += 1
        if self.count < self.point.nth or self._awaited is not None:
            return False
        if self.point.when == "before" or sight.way == IN or not sight.link.answers(sight.unit):
            return self._fire()
        self._awaited = sight
        return False

    def _fire(self) -> bool:
        self.fired = True
        return True

    def missed(self) -> None:
        """The answer that it waited for will not come: the worker died of something else."""
        self._awaited = None


class PostGate:
    """Asked about each unit of one worker."""

    def __init__(self, book: Book, worker: str, broker: str, strike: Callable[[str, Arm, Sight], None]) -> None:
        self._book = book
        self._worker = worker
        self._broker = broker
        self._strike = strike
        self.arms: list[Arm] = []
        self.ailments: list[Ailment] = []
        self.traffic: Counter[str] = Counter()
        """Messages of jobs by upstream."""
        self.detained = ""
        """The job whose next change waits until its copy has begun elsewhere."""
        self._held: list[Link] = []
        self._closed = False
        self._asking: list[Link] = []

    def close(self) -> None:
        """From now on the worker asks for no job."""
        self._closed = True

    def open(self) -> None:
        """It may ask again."""
        self._closed = False
        asking, self._asking = self._asking, []
        for link in asking:
            link.release(OUT)

    def holds(self, sight: Sight) -> bool:
        self._note(sight)
        if self._closed and sight.role == "poll" and sight.way == OUT:
            self._asking.append(sight.link)
            return True
        for arm in self.arms:
            if arm.hits(sight):
                sight.fate = "struck"
                self._say(sight, "strike", f"{arm.word} {arm.point.text}")
                self._strike(self._worker, arm, sight)
                return True
        for ailment in self.ailments:
            ailment.meets(sight)
        if self.detained and sight.job == self.detained and self._changes(sight):
            self._held.append(sight.link)
            return True
        return False

    def let_go(self) -> None:
        """The doubled job goes on."""
        self.detained = ""
        held, self._held = self._held, []
        for link in held:
            link.release(OUT)

    def _changes(self, sight: Sight) -> bool:
        return (
            sight.way == OUT
            and sight.upstream != self._broker
            and sight.unit.kind in COUNTED
            and sight.unit.change in (Change.YES, Change.MAYBE, Change.PENDING)
        )

    def _note(self, sight: Sight) -> None:
        if sight.role in NOT_KEPT or not sight.job:
            return
        self.traffic[sight.upstream] += 1
        if sight.unit.kind in (Kind.CONTROL, Kind.PART):
            return
        job = self._book.jobs.get(sight.job)
        if job is None:
            return
        if sight.role == "delivery" and job.last is not None and job.last.link is None:
            job.last.link = sight.link
        for key, seconds in sight.unit.info.get("ttl", ()):
            job.lives.append((sight.upstream, key if isinstance(key, bytes) else str(key).encode(), float(seconds)))
        if (sight.way == OUT and sight.unit.change is not Change.NO) or sight.unit.failed:
            self._say(sight, "message", sight.unit.summary or sight.unit.shape)

    def _say(self, sight: Sight, kind: str, text: str) -> None:
        self._book.say(sight.job, Message(self._book.now(), self._worker, sight.upstream, sight.way, text, kind))
