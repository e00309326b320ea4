"""Bugs that need a worker that lives, and what is right in their place: put under the strikes that can show them."""

from __future__ import annotations

from ..checks.contracts import at_most_once
from .kinds import CHARGE, CHARGED, COMMIT, HANDLER_MODE, RIGHT, WRONG, Bad, Planted, second

ALIVE = (
    Planted(
        "swallowed_error",
        WRONG,
        "a call that fails is taken for done: the marker is set, and nobody calls again. A kill raises nothing in it",
        (CHARGE, COMMIT),
        (CHARGED,),
        (
            Bad(CHARGE, "lost", CHARGE, fault="lose-request"),
            Bad(CHARGE, "lost", CHARGE, fault="error-reply 500"),
        ),
        modes=(HANDLER_MODE,),
        faults=("kill", "reset"),
    ),
    Planted(
        "reply_ignored",
        WRONG,
        "the status of the answer is not looked at. A connection that breaks raises by itself, and the key helps then",
        (CHARGE, COMMIT),
        (CHARGED,),
        (Bad(CHARGE, "lost", CHARGE, fault="error-reply 500"),),
        modes=(HANDLER_MODE,),
        faults=("kill", "reset"),
    ),
    Planted(
        "retry_without_key",
        WRONG,
        "the marker comes first, so no second run charges again; the loop inside does, when the answer was lost",
        (COMMIT, CHARGE),
        (at_most_once(CHARGE),),
        (Bad(CHARGE, "duplicated", CHARGE, fault="lose-reply"),),
        modes=(HANDLER_MODE,),
        faults=("kill", "reset"),
    ),
    Planted(
        "check_then_act",
        WRONG,
        "a key is stored when none is there: who was paused between the look and the act stores a second one",
        (COMMIT, CHARGE),
        (at_most_once(CHARGE),),
        (Bad(COMMIT, "duplicated", CHARGE, fault="zombie"),),
        modes=(HANDLER_MODE,),
        faults=("kill", "zombie"),
    ),
    Planted(
        "version_read_too_late",
        WRONG,
        "who is held between its look and the version takes the other one's version for its own. A pause at a message "
        "that changes something comes too early or too late: the version is then the one of the look, or old",
        (COMMIT, CHARGE),
        (at_most_once(CHARGE),),
        (Bad(second("db SELECT members"), "duplicated", CHARGE, fault="race"),),
        modes=(HANDLER_MODE,),
        faults=("kill", "zombie", "race"),
    ),
    Planted(
        "error_reported",
        RIGHT,
        "a call that fails ends the run before the marker",
        (CHARGE, COMMIT),
        (CHARGED,),
        modes=(HANDLER_MODE,),
        faults=("kill", "reset", "zombie", "duplicate", "race"),
    ),
    Planted(
        "reply_checked",
        RIGHT,
        "any answer but a good one ends the run before the marker",
        (CHARGE, COMMIT),
        (CHARGED,),
        modes=(HANDLER_MODE,),
        faults=("kill", "reset"),
    ),
    Planted(
        "retry_with_key",
        RIGHT,
        "the loop sends the same key, and the provider answers as the first time",
        (COMMIT, CHARGE),
        (at_most_once(CHARGE),),
        modes=(HANDLER_MODE,),
        faults=("kill", "reset"),
    ),
    Planted(
        "insert_then_act",
        RIGHT,
        "the key is inserted or read in one step, so whoever comes second uses that of the first",
        (COMMIT, CHARGE),
        (at_most_once(CHARGE),),
        modes=(HANDLER_MODE,),
        faults=("kill", "zombie", "race"),
    ),
    Planted(
        "version_read_with_it",
        RIGHT,
        "the look and the version are of one moment, so whoever comes second finds another version",
        (COMMIT, CHARGE),
        (at_most_once(CHARGE),),
        modes=(HANDLER_MODE,),
        faults=("kill", "zombie", "race"),
    ),
)
"""By kind and name, in the order of the app's modules."""
