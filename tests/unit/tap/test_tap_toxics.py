"""The stages of the embedded toxics by a clock that moves when it is told to: exact times, exact bytes."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcheck.errors import UsageError
from jobcheck.faults.toxics import (
    Bandwidth,
    Down,
    Latency,
    LimitData,
    ResetPeer,
    Slicer,
    SlowClose,
    Timeout,
    Toxic,
)
from jobcheck.seeds import Seeds
from jobcheck.tap.sight import OUT
from jobcheck.tap.toxic_pipeline import Pipeline
from jobcheck.tap.toxics import HELD, LATENCY_HELD, How, stage_for


class Timer:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Timers:
    """An event loop's timers, by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self._count = itertools.count()
        self._heap: list[tuple[float, int, Timer, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None], /) -> Timer:
        timer = Timer()
        heapq.heappush(self._heap, (when, next(self._count), timer, callback))
        return timer

    @property
    def pending(self) -> int:
        return sum(not timer.cancelled for _, _, timer, _ in self._heap)

    def advance(self, seconds: float) -> None:
        """Runs every timer that is due on the way, at its time."""
        end = self.now + seconds
        while self._heap and self._heap[0][0] <= end:
            when, _, timer, callback = heapq.heappop(self._heap)
            self.now = max(self.now, when)
            if not timer.cancelled:
                callback()
        self.now = end

    def jump(self, seconds: float) -> None:
        """The loop was busy: all timers that are due run late, now."""
        self.now += seconds
        self.advance(0.0)


class Line:
    """One direction of a connection with toxics, and what its receiver saw."""

    def __init__(self, *toxics: Toxic, seed: int = 1) -> None:
        self.timers = Timers()
        self.seen: list[tuple[float, bytes]] = []
        self.ends: list[tuple[float, How]] = []
        self.waits = False
        self.pipe = Pipeline(self, OUT, self.timers)
        self._chance = Seeds(seed).stream("toxics")
        for number, toxic in enumerate(toxics):
            self.add(str(number), toxic)

    def add(self, name: str, toxic: Toxic) -> None:
        self.pipe.add(name, stage_for(toxic, self.timers, self._chance))

    def deliver(self, way: str, data: bytes) -> None:
        assert way == OUT
        self.seen.append((round(self.timers.now, 6), data))

    def finished(self, way: str, how: How) -> None:
        self.ends.append((round(self.timers.now, 6), how))

    def throttle(self, way: str, on: bool) -> None:
        assert on is not self.waits
        self.waits = on

    @property
    def data(self) -> bytes:
        return b"".join(data for _, data in self.seen)


def test_latency_is_exact_and_late_timers_do_not_add_up() -> None:
    line = Line(Latency(100))
    line.pipe.feed(b"a")
    line.timers.advance(0.05)
    line.pipe.feed(b"b")
    line.timers.advance(1)
    assert line.seen == [(0.1, b"a"), (0.15, b"b")]
    late = Line(Latency(100), Latency(50))
    late.pipe.feed(b"a")
    late.timers.jump(0.12)
    late.timers.advance(1)
    assert late.seen == [(0.15, b"a")]


def test_jitter_varies_the_delay_within_its_bounds_and_keeps_the_order() -> None:
    line = Line(Latency(100, jitter=60))
    for number in range(200):
        line.pipe.feed(bytes([number]))
        line.timers.advance(0.5)
    delays = [at - 0.5 * number for number, (at, _) in enumerate(line.seen)]
    assert 0.04 <= min(delays) < 0.06
    assert 0.14 < max(delays) <= 0.16
    burst = Line(Latency(100, jitter=60))
    for number in range(200):
        burst.pipe.feed(bytes([number]))
    burst.timers.advance(1)
    assert burst.data == bytes(range(200))


def test_the_end_comes_behind_the_data_and_is_not_delayed_by_itself() -> None:
    line = Line(Latency(100))
    line.pipe.feed(b"a")
    line.timers.advance(0.05)
    line.pipe.finish(How.END)
    assert line.pipe.busy
    line.timers.advance(1)
    assert line.ends == [(0.1, How.END)]
    assert not line.pipe.busy
    idle = Line(Latency(100))
    idle.pipe.finish(How.END)
    assert idle.ends == [(0.0, How.END)]


def test_bandwidth_passes_each_piece_when_its_last_byte_would_be_through() -> None:
    line = Line(Bandwidth(10))
    line.pipe.feed(bytes(2500))
    line.timers.advance(1)
    assert [(at, len(data)) for at, data in line.seen] == [(0.1, 1000), (0.2, 1000), (0.25, 500)]
    line.pipe.feed(bytes(100))
    line.timers.advance(1)
    line.pipe.feed(bytes(100))
    line.pipe.feed(bytes(200))
    line.timers.advance(1)
    assert [(at, len(data)) for at, data in line.seen[3:]] == [(1.01, 100), (2.01, 100), (2.03, 200)]


def test_bandwidth_makes_the_sender_wait_when_it_is_full() -> None:
    line = Line(Bandwidth(100))
    line.pipe.feed(bytes(HELD + 1))
    assert line.waits
    line.timers.advance((HELD + 1) / 100_000)
    assert not line.waits
    assert len(line.data) == HELD + 1


def test_latency_holds_what_a_long_line_holds() -> None:
    line = Line(Latency(100))
    line.pipe.feed(bytes(LATENCY_HELD))
    assert not line.waits
    line.pipe.feed(b"x")
    assert line.waits
    line.pipe.remove("0")
    assert not line.waits


def test_a_bandwidth_of_zero_passes_nothing_and_keeps_everything() -> None:
    line = Line(Bandwidth(0))
    line.pipe.feed(b"a")
    line.pipe.finish(How.END)
    line.timers.advance(1e6)
    assert (line.seen, line.ends, line.timers.pending) == ([], [], 0)
    line.pipe.remove("0")
    assert (line.data, line.ends) == (b"a", [(1e6, How.END)])


def test_the_slicer_sends_slices_of_the_right_size_one_by_one() -> None:
    line = Line(Slicer(100, 30, 500))
    line.pipe.feed(bytes(5000))
    line.timers.advance(10)
    sizes = [len(data) for _, data in line.seen]
    assert sum(sizes) == 5000
    assert min(sizes) >= 1
    assert max(sizes) <= 130
    assert len(set(sizes)) > 3, "they vary"
    assert [at for at, _ in line.seen] == [round(number * 0.0005, 6) for number in range(len(sizes))]
    two = Line(Slicer(10, 0, 500))
    two.pipe.feed(b"a")
    two.pipe.feed(b"b")
    two.timers.advance(1)
    assert two.seen == [(0.0, b"a"), (0.0005, b"b")]
    even = Line(Slicer(1))
    even.pipe.feed(b"abc")
    assert [data for _, data in even.seen] == [b"a", b"b", b"c"]


def test_slow_close_delays_the_end_once_and_a_harder_end_wins() -> None:
    line = Line(SlowClose(200))
    line.pipe.feed(b"a")
    line.pipe.finish(How.END)
    line.timers.advance(0.1)
    line.pipe.finish(How.CLOSE)
    line.timers.advance(1)
    assert line.seen == [(0.0, b"a")]
    assert line.ends == [(0.2, How.CLOSE)]


def test_a_timeout_counts_from_the_last_data_and_swallows_it() -> None:
    line = Line(Timeout(300))
    line.timers.advance(0.2)
    line.pipe.feed(b"a")
    line.timers.advance(0.2)
    assert line.ends == []
    line.timers.advance(1)
    assert line.ends == [(0.5, How.CLOSE)]
    line.pipe.feed(b"b")
    assert (line.seen, line.timers.pending) == ([], 0)


def test_a_timeout_of_zero_closes_when_it_is_removed_and_not_before() -> None:
    line = Line(Timeout(0))
    line.pipe.feed(b"a")
    line.timers.advance(1e6)
    assert line.ends == []
    line.pipe.remove("0")
    assert (line.seen, line.ends) == ([], [(1e6, How.CLOSE)])


def test_reset_peer_waits_for_data_and_swallows_it() -> None:
    line = Line(ResetPeer(100))
    line.timers.advance(50)
    assert line.ends == []
    line.pipe.feed(b"a")
    line.timers.advance(0.05)
    line.pipe.feed(b"b")
    line.timers.advance(1)
    assert (line.seen, line.ends) == ([], [(50.1, How.RESET)])
    ended = Line(ResetPeer(0))
    ended.pipe.finish(How.END)
    assert ended.ends == [(0.0, How.RESET)]


def test_a_removed_reset_peer_resets_only_what_lost_data_already() -> None:
    line = Line(ResetPeer(10_000))
    line.pipe.remove("0")
    line.pipe.feed(b"a")
    assert (line.data, line.ends) == (b"a", [])
    hit = Line(ResetPeer(10_000))
    hit.pipe.feed(b"a")
    hit.pipe.remove("0")
    assert (hit.data, hit.ends, hit.timers.pending) == (b"", [(0.0, How.RESET)], 0)


def test_limit_data_counts_over_many_pieces_and_closes_behind_the_last_byte() -> None:
    line = Line(LimitData(5), Latency(100))
    for piece in (b"abc", b"defg", b"h"):
        line.pipe.feed(piece)
    line.timers.advance(1)
    assert line.data == b"abcde"
    assert line.ends == [(0.1, How.CLOSE)]


def test_a_flush_passes_every_stage_and_leaves_them_in_place() -> None:
    line = Line(Latency(1000), Bandwidth(0), Slicer(2, 0, 1_000_000), SlowClose(1000))
    line.pipe.feed(b"abcdef")
    line.pipe.finish(How.END)
    line.pipe.flush()
    assert line.data == b"abcdef"
    assert line.ends == [(0.0, How.END)]
    assert not line.pipe.empty
    assert line.timers.pending == 0
    for toxic, due in ((Bandwidth(1), 0.1), (Slicer(10, 0, 1_000_000), 0.0), (Latency(300), 0.3)):
        again = Line(toxic)
        again.pipe.feed(bytes(100_000))
        again.pipe.flush()
        again.pipe.feed(b"x" * 100)
        again.timers.advance(0.0)
        again.timers.advance(0.3)
        first = next(at for at, data in again.seen if b"x" in data)
        assert first == due, "what was flushed delays nothing"


def test_a_discarded_pipeline_forgets_everything_and_takes_nothing_more() -> None:
    line = Line(Latency(1000), SlowClose(1000), Timeout(1000))
    line.pipe.feed(b"abc")
    line.pipe.finish(How.END)
    line.pipe.discard()
    line.pipe.feed(b"def")
    line.pipe.finish(How.CLOSE)
    line.add("late", Timeout(5))
    line.timers.advance(1e6)
    assert (line.seen, line.ends, line.timers.pending) == ([], [], 0)
    assert not line.pipe.busy


def test_down_is_no_stage() -> None:
    with pytest.raises(UsageError, match="acts on connections"):
        Line(Down())


LOSSLESS: st.SearchStrategy[Toxic] = st.one_of(
    st.builds(Latency, st.integers(0, 500), st.integers(0, 600)),
    st.builds(Bandwidth, st.sampled_from([0, 1, 3, 50])),
    st.builds(SlowClose, st.integers(0, 2000)),
    st.integers(1, 40).flatmap(
        lambda size: st.builds(Slicer, st.just(size), st.integers(0, size - 1), st.integers(0, 50_000))
    ),
    st.builds(LimitData, st.just(10**9)),
)
STEPS = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=400),
        st.floats(0, 2).map(lambda seconds: round(seconds, 4)),
        st.tuples(st.just("add"), LOSSLESS),
        st.tuples(st.just("remove"), st.integers(0, 3)),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(st.lists(LOSSLESS, max_size=4), STEPS, st.booleans(), st.integers(0, 5))
def test_no_toxic_that_loses_nothing_changes_a_byte_however_it_comes_and_goes(
    toxics: list[Toxic], steps: list[object], late: bool, seed: int
) -> None:
    """Whatever the chunks, the times, and the toxics that come and go on the way."""
    line = Line(*toxics, seed=seed)
    names = [str(number) for number in range(len(toxics))]
    fresh = itertools.count(len(names))
    sent = b""
    for step in steps:
        if isinstance(step, bytes):
            sent += step
            line.pipe.feed(step)
        elif isinstance(step, float):
            (line.timers.jump if late else line.timers.advance)(step)
        elif isinstance(step, tuple) and isinstance(step[1], Toxic):
            names.append(str(next(fresh)))
            line.add(names[-1], step[1])
        elif isinstance(step, tuple) and names:
            line.pipe.remove(names.pop(step[1] % len(names)))
        assert sent.startswith(line.data)
    line.pipe.finish(How.END)
    for name in names:
        line.pipe.remove(name)
    assert line.data == sent
    assert [how for _, how in line.ends] == [How.END]
    assert line.timers.pending == 0
    assert not line.waits
    assert line.pipe.empty
    assert not line.pipe.busy


@settings(deadline=None)
@given(st.integers(0, 3))
def test_the_same_seed_gives_the_same_times_and_slices(seed: int) -> None:
    def once() -> list[tuple[float, bytes]]:
        line = Line(Latency(100, 50), Slicer(50, 20, 100), seed=seed)
        for number in range(5):
            line.pipe.feed(bytes([number]) * 300)
            line.timers.advance(0.01)
        line.timers.advance(10)
        return line.seen

    assert once() == once()
