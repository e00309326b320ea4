"""Bugs that show when a server, a provider or the network fails as a whole, and what is right in their place: each pair
runs in one scenario of the app's folder `faults`, and the wrong one alone turns it red. That no strike of `explore`
shows them is a test (`tests/quality/test_only_this_scenario.py`)."""

from __future__ import annotations

from ..checks.contracts import Contract, at_least_once
from .kinds import (
    BOOKED,
    CHARGE,
    CHARGED,
    COMMIT,
    ENQUEUE,
    ENTRIES,
    MAIL,
    MAILED,
    RIGHT,
    SCENARIO_MODE,
    WRONG,
    Bad,
    Planted,
    second,
)

CHARGES_ONCE = f"exactly once: {CHARGE}"
MAILS = "at least once: mail"
ENTRIES_ONCE = f"exactly once: {ENTRIES}"
RUNS_AGAIN = "a job enqueued after the recovery runs"
FAILED = "failed visibly"


def _found(verdict: str, effect: str, layer: str = "handler") -> Bad:
    return Bad("", verdict, effect, layer, modes=(SCENARIO_MODE,))


def _pair(
    scenario: str,
    trouble: str,
    wrong: tuple[str, str, tuple[str, ...]],
    right: tuple[str, str, tuple[str, ...]],
    contract: Contract,
    bad: tuple[Bad, ...],
    breaks: tuple[str, ...],
) -> tuple[Planted, Planted]:
    """Each of the two as name, reasoning and steps."""
    name, why, steps = wrong
    other, because, others = right
    modes = (SCENARIO_MODE,)
    return (
        Planted(name, WRONG, why, steps, (contract,), bad, modes, scenario=scenario, trouble=trouble, breaks=breaks),
        Planted(other, RIGHT, because, others, (contract,), modes=modes, scenario=scenario, trouble=trouble),
    )


PAIRS = (
    _pair(
        "broker-wiped",
        "broker wiped",
        (
            "mails_in_the_queue",
            "what a worker leaves in the queue's storage outlives it",
            ("broker RPUSH mails", COMMIT),
        ),
        ("mails_in_the_database", "the mail waits where its marker is", (COMMIT,)),
        MAILED,
        (_found("lost", "mail"),),
        (MAILS,),
    ),
    _pair(
        "broker-killed",
        "broker killed",
        (
            "enqueue_given_up",
            "the client tries once more, at once, which is enough for one broken connection",
            (ENQUEUE, COMMIT),
        ),
        ("enqueue_until_it_is", "the job waits for the broker, and its marker with it", (ENQUEUE, COMMIT)),
        MAILED,
        (_found("lost", "mail"),),
        (MAILS,),
    ),
    _pair(
        "db-read-only",
        "database read-only",
        ("read_only_passed_over", "only that error is passed over, any other one ends the run", (COMMIT,)),
        ("read_only_reported", "the error ends the run before its marker", (COMMIT,)),
        BOOKED,
        (_found("lost", ENTRIES),),
        (ENTRIES_ONCE,),
    ),
    _pair(
        "db-exhausted",
        "no connections left",
        (
            "entry_left_out",
            "the kept connection works and a second one is refused, which nothing but a full server does: when the "
            "server is gone or a connection breaks, the commit on the kept one fails, too",
            (COMMIT, second(COMMIT)),
        ),
        ("entry_insisted_on", "the refusal ends the run, and the marker is rolled back", (COMMIT, second(COMMIT))),
        at_least_once(ENTRIES),
        (_found("lost", ENTRIES),),
        (f"at least once: {ENTRIES}",),
    ),
    _pair(
        "db-killed",
        "database killed",
        (
            "connection_kept_for_good",
            "a run on a broken connection fails, and so does every later one of this worker. A worker that died has "
            "another one in its place, with a connection of its own",
            (COMMIT,),
        ),
        ("connection_opened_anew", "the next run opens another connection", (COMMIT,)),
        BOOKED,
        (_found(FAILED, ENTRIES), _found(FAILED, ENTRIES, "")),
        (ENTRIES_ONCE, RUNS_AGAIN),
    ),
    _pair(
        "payments-down",
        "provider answers 503",
        ("tries_that_run_out", "two errors in a row are survived, and a broken connection raises", (CHARGE, COMMIT)),
        ("tries_that_raise", "three errors in a row end the run before its marker", (CHARGE, COMMIT)),
        CHARGED,
        (_found("lost", CHARGE),),
        (CHARGES_ONCE,),
    ),
    _pair(
        "payments-busy",
        "provider asks to wait",
        ("told_to_wait", "every charge is made, and once: only the waits are too short", (CHARGE, COMMIT)),
        ("waits_as_told", "the waits are as long as the provider says", (CHARGE, COMMIT)),
        CHARGED,
        (),
        ("backoff at payments",),
    ),
    _pair(
        "payments-garbage",
        "200 with garbage",
        ("any_answer_is_good", "an error raises by its status; this one has a good one", (CHARGE, COMMIT)),
        ("answer_understood", "the answer has no id, and that ends the run before its marker", (CHARGE, COMMIT)),
        CHARGED,
        (_found("lost", CHARGE),),
        (CHARGES_ONCE,),
    ),
    _pair(
        "payments-narrow",
        "provider over capacity",
        (
            "always_from_the_start",
            "each run spends what the provider can do on the first line, and is refused at the second. When the "
            "provider works, or is down and then works, all lines go through in one run",
            (CHARGE, second(CHARGE), second(CHARGE, 3), COMMIT),
        ),
        (
            "from_where_it_stopped",
            "each run gets one line further",
            (CHARGE, COMMIT, second(CHARGE), second(COMMIT), second(CHARGE, 3), second(COMMIT, 3)),
        ),
        CHARGED,
        (_found(FAILED, CHARGE, ""),),
        ("counts: failed_visibly = 0",),
    ),
    _pair(
        "mail-slow",
        "mail server slow",
        ("slow_is_sent", "a mail server that is gone, or says no, raises something else", (MAIL, COMMIT)),
        ("slow_is_not_sent", "what was not taken in time ends the run before its marker", (MAIL, COMMIT)),
        MAILED,
        (_found("lost", "mail"),),
        (MAILS,),
    ),
    _pair(
        "payments-in-pieces",
        "answers in pieces",
        (
            "first_piece_is_all",
            "no answer, an error and a broken connection raise; half of a good answer has its status and no id",
            (CHARGE, MAIL, COMMIT),
        ),
        ("all_pieces_are_all", "what comes is put together before it is read", (CHARGE, MAIL, COMMIT)),
        MAILED,
        (_found("lost", "mail"),),
        (MAILS,),
    ),
    _pair(
        "payments-cut-twice",
        "two connections cut",
        ("one_second_try", "one broken connection is survived, and any other error raises", (CHARGE, COMMIT)),
        ("second_try_looked_at", "the second error ends the run before its marker", (CHARGE, COMMIT)),
        CHARGED,
        (_found("lost", CHARGE),),
        (CHARGES_ONCE,),
    ),
)

IN_TROUBLE = tuple(wrong for wrong, _ in PAIRS) + tuple(right for _, right in PAIRS)
"""By kind, in the order of the app's modules."""
