"""Points: where a job changes state, learnt from a recording.

A request is a point when the server's own answer says that it changed state, or when nobody can tell. A delivery is a
point as well. Noise, polls, handshakes and pure reads are none, and what is written inside a transaction folds into
its commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..history.ids import short_id
from ..history.records import Operation, Point
from .search import Read

COUNTED = ("request", "opaque")
CHANGES = ("yes", "maybe")
NO_POINT = ("noise", "poll")
CONNECTIONS_OWN = tuple(
    f"postgres {word}" for word in ("BEGIN", "SET", "SHOW", "ROLLBACK", "DISCARD", "COMMIT", "RELEASE", "SAVEPOINT")
)
"""Shapes that talk about the connection: losing their reply loses nothing that a read does not lose too."""
PRODUCER = "producer"
"""The child that makes cases: what it sends is not the job's."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recording as points, with the connection that each came on."""

    points: tuple[Point, ...]
    links: tuple[int, ...]

    def sequences(self) -> Counter[tuple[Address, ...]]:
        """The points of each connection in order, connections without their numbers."""
        by_link: dict[int, list[Address]] = {}
        for point, link in zip(self.points, self.links, strict=True):
            by_link.setdefault(link, []).append(address(point))
        return Counter(tuple(sequence) for sequence in by_link.values())


Address = tuple[str, str, str, int]


def address(point: Point) -> Address:
    """What names a point: its job, where there are several, upstream, shape and number."""
    return point.job, point.upstream, point.shape, point.nth


def recorded(
    operations: Sequence[Operation],
    *,
    broker: str = "",
    job: str = "",
    worker: str = "",
    label: str = "",
    others: Sequence[str] = (),
    looks: bool = False,
) -> Recorded:
    """The points of one job in the order of sight.

    `broker` names the upstream that is the job system's own. With `job`, only what belongs to that job counts; with
    `worker`, only what that worker sent; what `others` sent never does. `label` is the job's name, where there are
    several. `looks`: the worker looks again and again whether there is something to do, so what changes nothing is not
    even counted.
    """
    seen: Counter[tuple[str, str, str]] = Counter()
    points: list[Point] = []
    links: list[int] = []
    for op, side, answer in _messages(operations, job, worker, others):
        if looks and side == "request" and op.change == "no":
            continue
        seen[op.upstream, op.shape, side] += 1
        if side == "request" and not _changed(op, answer):
            continue
        nth = seen[op.upstream, op.shape, side]
        points.append(
            Point(
                id=_id(label, op, nth, side),
                upstream=op.upstream,
                shape=op.shape,
                nth=nth,
                side=side,
                code=op.code,
                summary=op.summary,
                broker=op.upstream == broker,
                role=op.role,
                job=label,
            )
        )
        links.append(op.link)
    return Recorded(tuple(points), tuple(links))


def reads(
    operations: Sequence[Operation],
    *,
    broker: str = "",
    job: str = "",
    worker: str = "",
    label: str = "",
    others: Sequence[str] = (),
) -> list[Read]:
    """The first message of each distinct shape that changes nothing: what a lost reply strikes beside the points.

    Left out are the broker's own reads (the job system's, not the job's) and what stands inside a transaction for the
    connection only: BEGIN, SET, SHOW, ROLLBACK.
    """
    seen: Counter[tuple[str, str]] = Counter()
    found: list[Read] = []
    place = 0
    for op, side, answer in _messages(operations, job, worker, others):
        seen[op.upstream, op.shape] += 1
        if side == "delivery" or _changed(op, answer):
            place += 1
        elif answer is not None and _worth_reading(op, broker) and seen[op.upstream, op.shape] == 1:
            point = Point(_id(label, op, 1, side), op.upstream, op.shape, 1, side, op.code, op.summary, job=label)
            found.append(Read(point, place))
    return found


def point_id(upstream: str, shape: str, nth: int, side: str, label: str = "") -> str:
    """The same in every run, and the same as ever where there is one job only; `label` names it among several."""
    return short_id(*([label] if label else []), upstream, shape, nth, side)


def _id(label: str, op: Operation, nth: int, side: str) -> str:
    return point_id(op.upstream, op.shape, nth, side, label)


def _messages(
    operations: Sequence[Operation], job: str, worker: str, others: Sequence[str] = ()
) -> Iterator[tuple[Operation, str, Operation | None]]:
    """What may be struck of a job: its requests and deliveries, each with its side and its answer."""
    answers = {(op.link, op.number): op for op in operations if op.kind == "reply" and op.number}
    for op in operations:
        if op.worker == PRODUCER or op.worker in others or (job and op.job != job) or (worker and op.worker != worker):
            continue
        if side := _side(op):
            yield op, side, answers.get((op.link, op.number)) if side == "request" and op.number else None


def _worth_reading(op: Operation, broker: str) -> bool:
    """Whether somebody waits for what this says: statements of a transaction that only write are none either."""
    return op.upstream != broker and op.role not in NO_POINT and op.shape not in CONNECTIONS_OWN and op.change == "no"


def _side(op: Operation) -> str:
    if op.role == "delivery" and op.way == "in":
        return "delivery"
    if op.way == "out" and op.kind in COUNTED and op.role != "noise":
        return "request"
    return ""


def _changed(op: Operation, answer: Operation | None) -> bool:
    if op.role in NO_POINT:
        return False
    truth = answer.change if answer is not None else op.change
    return truth in CHANGES


def difference(first: Recorded, second: Recorded, *, any_order: bool = False) -> str:
    """Empty when two recordings agree as a partial order, else a sentence with the differing messages.

    With `any_order` it is enough that the same messages came.
    """
    one, two = Counter(map(address, first.points)), Counter(map(address, second.points))
    if first.sequences() == second.sequences() or (any_order and one == two):
        return ""
    parts = []
    if only := one - two:
        parts.append("only in the first: " + _listed(only))
    if only := two - one:
        parts.append("only in the second: " + _listed(only))
    if not parts:
        parts.append("the same messages in another order on a connection: " + _listed(one))
    return "two clean runs of this job differ; " + "; ".join(parts)


def _listed(points: Iterable[Address]) -> str:
    return ", ".join(
        (f"{job}: " if job else "") + f"{upstream} {_bare(shape)}" + (f" #{nth}" if nth > 1 else "")
        for job, upstream, shape, nth in points
    )


def _bare(shape: str) -> str:
    return shape.split(" ", 1)[-1]


def merged(first: Recorded, second: Recorded) -> tuple[Point, ...]:
    """The points of two recordings that agree; a point that came at another place in the second is unordered."""
    order = {address(point): place for place, point in enumerate(second.points)}
    out = []
    for place, point in enumerate(first.points):
        moved = any(
            (place < other) != (order[address(point)] < order[address(rival)])
            for other, rival in enumerate(first.points)
            if other != place
        )
        out.append(replace(point, ordered=False) if moved else point)
    return tuple(out)


def name(point: Point) -> str:
    """How a person reads a point: `payments POST /charges`, `db COMMIT #2`, `broker delivery`; where there are several
    jobs, `shop.jobs.charge: payments POST /charges`."""
    return (f"{point.job}: " if point.job else "") + bare_name(point)


def bare_name(point: Point) -> str:
    """The same without the name of the job."""
    bare = "delivery" if point.side == "delivery" else _bare(point.shape)
    if point.role.startswith("chord"):
        bare = point.role  # its shape names keys and scripts, which say nothing to a reader
    return f"{point.upstream} {bare}" + (f" #{point.nth}" if point.nth > 1 else "")
