"""Schedules of two deliveries, on a model of programs with one shared store: no wire, no processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as some

from jobcheck.explore.races import (
    Director,
    Message,
    Schedule,
    Search,
    Step,
    Switch,
    parse,
    smaller,
    strike_of,
)

Store = dict[str, int]
Move = tuple[str, bool, Callable[[Store], object]]
"""Shape, whether it changes something, and what it does; a move that gives `WAIT` is blocked before it is done."""
WAIT = object()
Program = Callable[[Store], Iterator[Move]]


@dataclass
class Ran:
    """How a model ran."""

    director: Director
    store: Store
    moves: list[str] = field(default_factory=list)

    @property
    def order(self) -> str:
        return "".join(step.who for step in self.director.steps)


def play(program: Program, schedule: Schedule) -> Ran:
    """Runs the program twice under a schedule, as the driver does with real workers."""
    store: Store = {}
    ran = Ran(Director(schedule), store)
    sides = {who: program(store) for who in "AB"}
    seen: dict[tuple[str, str], int] = {}
    held: dict[str, Move] = {}
    waiting: dict[str, Move] = {}
    for who, side in sides.items():
        if (move := next(side, None)) is not None:
            held[who] = move
    while held or waiting:
        ready = {
            who: (Message("db", move[0], seen.get((who, move[0]), 0) + 1), move[1])
            for who, move in sorted(held.items())
            if who not in waiting
        }
        who = ran.director.next(ready)
        move = held.pop(who)
        seen[who, move[0]] = seen.get((who, move[0]), 0) + 1
        waiting[who] = move
        for one in sorted(waiting):  # who waits for a lock gets it as soon as it is free
            shape, _, action = waiting[one]
            if (did := action(store)) is WAIT:
                continue
            del waiting[one]
            ran.moves.append(f"{one} {shape}")
            if one == who:
                ran.director.answered(did is not False)
            if (move := next(sides[one], None)) is not None:
                held[one] = move
    return ran


def explored(program: Program, bound: int = 2, stop: Callable[[Ran], bool] = lambda ran: False) -> list[Ran]:
    """All runs of a search, up to the first that `stop` names."""
    search, runs = Search(bound), []
    while (schedule := search.propose()) is not None:
        ran = play(program, schedule)
        assert not ran.director.missed, schedule.words
        runs.append(ran)
        if stop(ran):
            break
        search.ran(schedule, ran.director.steps, ran.director.held)
    return runs


def steps(*shapes: str) -> Program:
    """A program of messages that change something and have nothing to do with each other."""

    def program(store: Store) -> Iterator[Move]:
        for shape in shapes:
            yield shape, True, lambda store: None

    return program


def check_then_act(store: Store) -> Iterator[Move]:
    box: list[int] = []
    yield "SELECT marker", False, lambda store: box.append(store.get("marker", 0))
    if box[0]:
        return
    yield "POST charge", True, lambda store: store.update(charges=store.get("charges", 0) + 1)
    yield "INSERT marker", True, lambda store: store.update(marker=1)


def locked(store: Store) -> Iterator[Move]:
    def lock(store: Store) -> object:
        return WAIT if store.get("lock") else store.update(lock=1)

    yield "LOCK", True, lock
    yield from check_then_act(store)
    yield "UNLOCK", True, lambda store: store.update(lock=0)


def polling_lock(store: Store) -> Iterator[Move]:
    """A lock that is asked for again and again, as on Redis."""
    got: list[bool] = [False]

    def ask(store: Store) -> object:
        got[0] = not store.get("lock")
        store["lock"] = 1
        return got[0]

    while not got[0]:
        yield "SET lock NX", True, ask
    yield from check_then_act(store)
    yield "DEL lock", True, lambda store: store.update(lock=0)


def charged_twice(ran: Ran) -> bool:
    return ran.store.get("charges", 0) > 1


def test_without_a_preemption_a_runs_to_its_end_and_then_b() -> None:
    assert [ran.order for ran in explored(steps("x", "y", "z"), bound=0)] == ["AAABBB"]


def test_one_preemption_holds_a_once_before_each_of_its_later_messages() -> None:
    orders = [ran.order for ran in explored(steps("x", "y", "z"), bound=1)]
    assert orders == ["AAABBB", "ABBBAA", "AABBBA"]


@given(some.integers(1, 4))
def test_without_a_bound_every_interleaving_that_begins_with_a_is_run_once(length: int) -> None:
    orders = [ran.order for ran in explored(steps(*"wxyz"[:length]), bound=99)]
    assert len(set(orders)) == len(orders) == comb(2 * length - 1, length)
    assert all(order.startswith("A") for order in orders)


def test_fewer_preemptions_come_first() -> None:
    search, counts = Search(2), []
    while (schedule := search.propose()) is not None:
        counts.append(schedule.preemptions)
        ran = play(steps("x", "y", "z"), schedule)
        search.ran(schedule, ran.director.steps, ran.director.held)
    assert counts == sorted(counts)
    assert counts.count(2) == 4


def test_check_then_act_is_found_by_the_second_schedule_with_one_preemption() -> None:
    runs = explored(check_then_act, stop=charged_twice)
    assert len(runs) == 2
    assert runs[-1].director.schedule.words == "A held before db charge"
    assert runs[-1].order == "ABBBAA"


def test_the_move_from_a_look_to_an_act_is_tried_before_others() -> None:
    def program(store: Store) -> Iterator[Move]:
        yield "INSERT log", True, lambda store: None
        yield "UPDATE log", True, lambda store: None
        yield from check_then_act(store)

    assert len(explored(program, stop=charged_twice)) == 2


def test_a_lock_holds_over_the_whole_bound_and_who_waits_for_it_costs_no_preemption() -> None:
    runs = explored(locked)
    assert not any(map(charged_twice, runs))
    assert any("A LOCK" in ran.moves and ran.moves.index("B LOCK") > ran.moves.index("A UNLOCK") for ran in runs)
    assert any(ran.order.startswith("AB") and len(ran.director.held) == 1 for ran in runs)


def test_who_asks_for_a_lock_again_and_again_lets_the_other_one_go_on() -> None:
    runs = explored(polling_lock)
    assert not any(map(charged_twice, runs))
    waits = [ran for ran in runs if ran.moves.count("B SET lock NX") > 1]
    assert waits
    assert max(ran.moves.count("B SET lock NX") for ran in waits) <= 9


def test_a_preemption_whose_message_never_comes_is_missed() -> None:
    switch = Switch("A", Message("db", "postgres COMMIT", 2))
    assert play(steps("x"), Schedule((switch,))).director.missed == (switch,)


def test_a_message_is_told_from_others_of_its_shape() -> None:
    orders = [ran.order for ran in explored(steps("x", "x", "x"), bound=1)]
    assert orders == ["AAABBB", "ABBBAA", "AABBBA"]


def test_a_step_knows_whether_the_other_one_could_have_gone_on() -> None:
    found = explored(steps("x", "y"), bound=0)[0].director.steps
    assert [step.free for step in found] == [True, True, False, False]
    assert found[0] == Step("A", Message("db", "x"), True, True)


SCHEDULES = some.builds(
    Schedule,
    some.lists(
        some.builds(
            Switch,
            some.sampled_from("AB"),
            some.builds(Message, some.text(min_size=1), some.text(min_size=1), some.integers(1, 99)),
        ),
        max_size=3,
    ).map(tuple),
)


@given(SCHEDULES)
def test_a_schedule_is_read_back_from_its_text(schedule: Schedule) -> None:
    assert parse(schedule.text) == schedule


@pytest.mark.parametrize("text", ["A", "[1]", '[["A","db"]]', '[["A","db","x","y"]]', "{}x"])
def test_what_is_no_schedule_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="expected a schedule"):
        parse(text)


def test_the_id_of_a_strike_is_that_of_its_schedule_and_its_point_is_the_first_message_held() -> None:
    one = Schedule((Switch("A", Message("db", "postgres COMMIT")),))
    first, again = strike_of("job/handler", one), strike_of("job/handler", parse(one.text))
    assert first == again
    assert first.point == one.switches[0].before.id
    assert strike_of("job/handler", Schedule(), "p1").point == "p1"
    assert len({first.id, strike_of("job/handler", Schedule()).id, strike_of("other/handler", one).id}) == 3


def test_a_failure_is_shrunk_to_its_parts() -> None:
    one, two = Switch("A", Message("db", "x")), Switch("B", Message("db", "y"))
    assert smaller(Schedule((one, two))) == [Schedule((two,)), Schedule((one,))]
    assert smaller(Schedule()) == []
