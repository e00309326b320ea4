"""Which strikes cover the points of a job, and in which order they are tried.

A kill has N+1 distinct outcomes for N state changes of a sequential job (tap-notes 3.1): before each one, and after
the last. Unordered points are struck on both sides, and N+1 is not claimed for them. Where the worker lives on, its own
error handling runs, so outcomes do not collapse: each point has its own lost request, lost reply and error reply. A
lost reply strikes once per distinct read too, for failed reads are the commonest failure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ..faults import strikes as known
from ..history.ids import short_id
from ..history.records import Point, Strike

BROKERS_OWN = ("delivery", "reserve")
"""Roles of points at which a worker holds no lease yet: a paused worker loses nothing there."""

HARNESS = "mark "
"""Marks go to the harness, over no network that the app has: their connections do not break."""


@dataclass(frozen=True, slots=True)
class Read:
    """The first message of a shape that changes nothing, and how many points come before it."""

    point: Point
    place: int


@dataclass(frozen=True, slots=True)
class Space:
    """What can be struck in one job."""

    subject: str
    points: Sequence[Point]
    reads: Sequence[Read] = ()
    queue: bool = False
    """The job goes through a queue: there is a worker that can be told to end, and a broker that redelivers."""
    deploy: bool = False
    """There is a next version to go to."""
    jobs: int = 1
    """How many jobs a case enqueues: from two on, they can come in another order."""
    callbacks: int = 0
    """How many callbacks of providers a case causes; from two on, they can come in another order."""
    leased: bool = True
    """The broker gives a job that a worker holds to another one; not so where jobs are acknowledged early."""
    fast: bool = False
    """The app lives faster than we do: who is held while another worker does the job is held for minutes of its own."""

    def planned(self, families: Collection[str]) -> list[Strike]:
        """The strikes of these families (`faults.strikes.FAMILIES`), family by family, in the order of the job."""
        makers: dict[str, Callable[[], list[Strike]]] = {
            "kill": lambda: kills(self.subject, self.points),
            "kill-child": lambda: self._partial_kills(known.KILL_CHILD),
            "kill-parent": lambda: self._partial_kills(known.KILL_PARENT),
            "reset": self._resets,
            "zombie": self._zombies,
            "term": self._terms,
            "duplicate": self._duplicates,
            "order": self._orders,
            "webhook": self._webhooks,
        }
        found = [
            item
            for family, make in makers.items()
            if family in families and (self.queue or family not in known.WORKERS_ONLY)
            for item in make()
        ]
        return found + self._at_each(known.DEPLOY) if self.deploy else found

    def unstruck(self, families: Collection[str]) -> list[str]:
        """Why there is no strike of a family that was asked for by name, a sentence each; whoever asks for all of them
        asks for those that there are."""
        if set(families) >= set(known.FAMILIES):
            return []
        why = {
            **dict.fromkeys(known.WORKERS_ONLY, "" if self.queue else "it needs a worker, and a handler has none"),
            "zombie": "" if self.leased else "jobs are acknowledged early, so nobody else gets one that is held",
        }
        if self.queue and self.fast:
            why["duplicate"] = "while the job runs: held for the other worker, minutes of its own clock would go by"
        if self.queue and self.jobs < 2:
            why["order"] = "the case enqueues one job, and it takes two to come in another order"
        if self.queue and not self.callbacks:
            why["webhook"] = "no provider calls back in this case"
        return [f"no strike of {family}: {why[family]}" for family in families if why.get(family)]

    def _partial_kills(self, fault: str) -> list[Strike]:
        """A child is found by the connection of its message; what the main process sends is no child's."""
        points = [point for point in self.points if not (fault == known.KILL_CHILD and point.broker)]
        return [strike(self.subject, point, fault, "before") for point in points]

    def _resets(self) -> list[Strike]:
        out = []
        for point in self.points:
            if point.shape.startswith(HARNESS):
                continue
            if point.side == "delivery":
                out.append(strike(self.subject, point, known.LOSE_REPLY, "before"))
                continue
            out.append(strike(self.subject, point, known.LOSE_REQUEST, "before"))
            out.append(strike(self.subject, point, known.LOSE_REPLY, "after"))
            for how in known.REFUSALS.get(point.shape.partition(" ")[0], ()):
                out.append(strike(self.subject, point, f"{known.ERROR_REPLY} {how}", "before"))
        out += [strike(self.subject, read.point, known.LOSE_REPLY, "after", read.place) for read in self.reads]
        return out

    def _zombies(self) -> list[Strike]:
        if not self.leased:
            return []
        held = [point for point in self.points if not (self.queue and point.role in BROKERS_OWN)]
        return [strike(self.subject, point, known.ZOMBIE, "before") for point in held]

    def _terms(self) -> list[Strike]:
        return self._at_each(known.TERM) + self._at_each(known.TERM_GROUP)

    def _at_each(self, fault: str) -> list[Strike]:
        return [strike(self.subject, point, fault, "before") for point in self.points]

    def _duplicates(self) -> list[Strike]:
        jobs = dict.fromkeys(point.job for point in self.points)
        return [item for job in jobs for item in self._duplicates_of([one for one in self.points if one.job == job])]

    def _duplicates_of(self, points: Sequence[Point]) -> list[Strike]:
        """The message of one job again."""
        own = [point for point in points if not point.broker]
        if not own:
            return []
        out = [strike(self.subject, points[-1], f"{known.DUPLICATE} {known.AFTERWARDS}", "after")]
        if self.queue:
            if not self.fast:
                out.append(strike(self.subject, own[0], f"{known.DUPLICATE} {known.MEANWHILE}", "before"))
            first = points[0]
            if first.side == "delivery":
                out.append(strike(self.subject, first, f"{known.DUPLICATE} {known.BEFOREHAND}", "before"))
        return out

    def _orders(self) -> list[Strike]:
        """Each job after all others, but for the last one, which is; and all the other way round. Of two jobs these are
        the same."""
        if self.jobs < 2:
            return []
        ways = [f"{known.LATE} {number}" for number in range(1, self.jobs)]
        if self.jobs > 2:
            ways.append(known.REVERSED)
        return [strike(self.subject, self.points[0], f"{known.ORDER} {way}", "before") for way in ways]

    def _webhooks(self) -> list[Strike]:
        ways = [known.TWICE, known.EARLY, known.LATE] if self.callbacks else []
        ways += [known.SWAPPED] if self.callbacks > 1 else []
        return [strike(self.subject, self.points[0], f"{known.WEBHOOK} {way}", "before") for way in ways]


def kills(subject: str, points: Sequence[Point]) -> list[Strike]:
    """Before each point, after the last, and after each unordered one."""
    out = []
    for place, point in enumerate(points):
        out.append(strike(subject, point, known.KILL, "before"))
        if place == len(points) - 1 or not point.ordered:
            out.append(strike(subject, point, known.KILL, "after"))
    return out


def strike(subject: str, point: Point, fault: str, when: str, place: int = -1) -> Strike:
    return Strike(id=short_id(subject, point.id, fault, when), point=point.id, fault=fault, when=when, place=place)


def ordered(strikes: Sequence[Strike], points: Sequence[Point], first: Collection[str] = ()) -> list[Strike]:
    """What failed last time first, then where effects and records meet, then the broker's own points."""
    broker = {point.id for point in points if point.broker}
    return sorted(strikes, key=lambda item: (item.id not in first, item.point in broker))


def sampled(strikes: Sequence[Strike], points: Sequence[Point], count: int) -> list[Strike]:
    """At most `count` of them, in their order, evenly by fault and shape: no shape gets a second strike of a kind
    before each has had its first."""
    if len(strikes) <= count:
        return list(strikes)
    shapes = {point.id: (point.upstream, point.shape) for point in points}
    turn: dict[tuple[str, tuple[str, str]], int] = {}
    ranked = []
    for at, item in enumerate(strikes):
        group = (known.kind_of(item.fault), shapes.get(item.point, ("", item.point)))
        turn[group] = turn.get(group, 0) + 1
        ranked.append((turn[group], at))
    chosen = sorted(at for _, at in sorted(ranked)[:count])
    return [strikes[at] for at in chosen]


def place_of(strike: Strike, points: Sequence[Point]) -> int:
    """How many points are through when the strike falls: the gap between two messages that it stands for."""
    if strike.place >= 0:
        return strike.place
    for place, point in enumerate(points):
        if point.id == strike.point:
            return place + (strike.when == "after")
    return -1
