"""What an upstream that is out of order does instead of answering as always, as data.

Reply()                                          nobody gets a connection
Reply(503)                                       every call is answered 503, and nothing happens
Reply(429, route="POST /charges", first=2)       the first two calls of a route, then it works
Reply(answer="lost")                             the call counts, and its answer never comes
Reply(slow=3.0)                                  the right answer, three seconds late
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .routes import EVERYTHING

Answering = Literal["", "hang", "garbage", "cut", "lost", "refused"]
HANG: Answering = "hang"
GARBAGE: Answering = "garbage"
CUT: Answering = "cut"
LOST: Answering = "lost"
REFUSED: Answering = "refused"
ANSWERS: dict[Answering, str] = {
    HANG: "takes the call and never answers",
    GARBAGE: "answers with bytes that nobody can read",
    CUT: "closes the connection instead of answering",
    LOST: "does what was asked, and closes the connection instead of answering",
    REFUSED: "accepts no connection",
}
"""What else than a status; only after `garbage` and `lost` has happened what was asked for."""

ALL_TOGETHER, CASE, KEY = "", "case", "key"
EACH = (CASE, KEY)
"""Of what the first ones are counted, one by one."""
Beyond = int | Literal["slow"]
SLOW = "slow"
"""Beyond its capacity a provider makes everybody wait, however long."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much a provider can do: so many calls a second, one after the other; the others wait."""

    rate: float
    """Calls per second."""
    queue: int | None = None
    """Calls that may wait; None: any number."""
    beyond: Beyond = 503
    """The status for those beyond the queue; `slow`: they wait as well."""
    retry_after: float | None = None
    """Seconds that a refused one is told to wait."""

    @property
    def text(self) -> str:
        if self.queue is None or self.beyond == SLOW:
            return f"{self.rate:g} calls a second, the others wait"
        return f"{self.rate:g} calls a second, {self.queue} wait, {self.beyond} beyond"


@dataclass(frozen=True, slots=True)
class Reply:
    """One way of being out of order. Without anything, connections are refused."""

    status: int | None = None
    answer: Answering = ""
    route: str = ""
    """Only these calls; empty: all."""
    retry_after: float | None = None
    """Seconds, as `Retry-After`."""
    slow: float = 0.0
    """Seconds between the call and its answer."""
    content_type: str = ""
    """Under which the answer comes."""
    counts: bool | None = None
    """Whether what was asked for happens all the same. None: as the answer says."""
    first: int = 0
    """Only the first so many; 0: all while it lasts."""
    each: str = ALL_TOGETHER
    """`case` or `key`: the first ones of each; empty: of all together."""
    capacity: Capacity | None = None
    """The provider works, and can do no more than this."""

    @property
    def refused(self) -> bool:
        """Nobody gets a connection."""
        said = self.status or self.slow or self.content_type or self.capacity
        return self.answer == REFUSED or not (said or self.answer)

    @property
    def happens(self) -> bool:
        """What was asked for happens, whatever the answer says."""
        if self.counts is not None:
            return self.counts
        return self.status is None and self.answer not in (HANG, CUT)

    @property
    def text(self) -> str:
        """Without the refusal of connections, which goes without saying: `503 to POST /charges`."""
        if self.capacity is not None:
            return self.capacity.text
        parts = [str(self.status)] if self.status else []
        parts += [self.answer] if self.answer and self.answer != REFUSED else []
        parts += [f"{self.slow:g} s late"] if self.slow else []
        parts += [f"as {self.content_type}"] if self.content_type else []
        parts += [f"retry after {self.retry_after:g} s"] if self.retry_after is not None else []
        said = " ".join(parts)
        said += f" to {self.route}" if self.route and self.route != EVERYTHING else ""
        if self.first:
            said += f", the first {self.first}" + (f" of each {self.each}" if self.each else "")
        usual = self.status is None and self.answer not in (HANG, CUT)
        if said and self.counts is not None and self.counts is not usual:
            said += ", and it counts" if self.counts else ", and it does not count"
        return said


NO_CONNECTION = Reply()
"""The simplest one."""
