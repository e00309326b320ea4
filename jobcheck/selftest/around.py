"""Bugs around a job, and what is right in their place: in what enqueues it, in what a provider calls back, in the next
version of the app, and in time. Each is put under the one fault that shows it: a producer that dies, another callback,
a deploy, a clock that goes far enough. That no other one shows it is a test (`tests/quality/test_only_around.py`).
"""

from __future__ import annotations

from ..checks.contracts import exactly_once
from .kinds import (
    BOOKED,
    CHARGE,
    CHARGED,
    COMMIT,
    DELIVERY,
    ENQUEUE,
    ENTRIES,
    FOLLOWED_UP,
    PRODUCER_MODE,
    QUEUE_MODE,
    RIGHT,
    WRONG,
    Bad,
    Planted,
    second,
)

WITH_OTHERS, PATIENT = "club_with_others", "club_with_patience"
"""Rigs of the club: with its web server and relay, and with long timeouts."""
ORDER = "payments POST /orders"
WELCOME = "job club.welcomes.welcome"
NEXT = "next"
"""The folder of the club's next version."""
FAST = 100.0
_PRODUCERS = (PRODUCER_MODE,)
_QUEUE = (QUEUE_MODE,)
_REFUSED = "error-reply 40001"

AROUND = (
    Planted(
        "row_then_job",
        WRONG,
        "dead between the two, there is a member and no job, and nobody calls again",
        (COMMIT, ENQUEUE),
        (),
        (Bad(ENQUEUE, "lost", WELCOME, modes=_PRODUCERS),),
        modes=_PRODUCERS,
        rig=WITH_OTHERS,
    ),
    Planted(
        "job_then_row",
        WRONG,
        "dead between the two, the member is rolled back and its job is not",
        (ENQUEUE, COMMIT),
        (),
        (Bad(COMMIT, "unexpected", WELCOME, modes=_PRODUCERS),),
        modes=_PRODUCERS,
        rig=WITH_OTHERS,
    ),
    Planted(
        "entry_for_each_callback",
        WRONG,
        "a provider that is not sure calls back again, and the second call is another entry. The order has a key, so "
        "whatever happens to the job itself makes one order, and one callback",
        (ORDER,),
        (BOOKED, exactly_once(ORDER)),
        (Bad(DELIVERY, "duplicated", ENTRIES, fault="webhook twice"),),
        modes=_QUEUE,
        faults=("webhook",),
        rig=WITH_OTHERS,
    ),
    Planted(
        "renewed_for_the_next_version",
        WRONG,
        "the old worker finishes what it has begun, and so enqueues a follow-up that the next version cannot read: it "
        "wants a language",
        (ENQUEUE,),
        (FOLLOWED_UP,),
        (Bad(ENQUEUE, "lost", "mail", fault="deploy"),),
        modes=_QUEUE,
        faults=("deploy",),
        strikes=1,
        rig=WITH_OTHERS,
        deploy=NEXT,
        only=("deploy", ENQUEUE),
    ),
    Planted(
        "claim_that_ends_too_early",
        WRONG,
        "the charge was made and its marker was refused: the retry after 60 s finds the claim, and the one at 180 s "
        "finds that it ran out at 150 s",
        (COMMIT, CHARGE, second(COMMIT)),
        (CHARGED,),
        (Bad(second(COMMIT), "duplicated", CHARGE, fault=_REFUSED),),
        modes=_QUEUE,
        faults=("reset",),
        strikes=1,
        rig=PATIENT,
        speed=FAST,
        only=(_REFUSED, second(COMMIT)),
    ),
    Planted(
        "wish_with_the_row",
        RIGHT,
        "the wish is there if and only if the member is, and the relay comes again and again",
        (COMMIT,),
        (),
        modes=_PRODUCERS,
        rig=WITH_OTHERS,
    ),
    Planted(
        "wish_and_relay",
        RIGHT,
        "dead between the job and its mark, the relay enqueues it a second time, which its marker bears",
        (COMMIT, ENQUEUE, second(COMMIT)),
        (),
        modes=_PRODUCERS,
        rig=WITH_OTHERS,
    ),
    Planted(
        "entry_for_each_event",
        RIGHT,
        "the entry has the event's marker in its transaction",
        (ORDER,),
        (BOOKED, exactly_once(ORDER)),
        modes=_QUEUE,
        faults=("webhook",),
        rig=WITH_OTHERS,
    ),
    Planted(
        "renewed_for_both_versions",
        RIGHT,
        "what is new in the follow-up has a default",
        (ENQUEUE,),
        (FOLLOWED_UP,),
        modes=_QUEUE,
        faults=("deploy",),
        strikes=1,
        rig=WITH_OTHERS,
        deploy=NEXT,
        only=("deploy", ENQUEUE),
    ),
    Planted(
        "claim_with_key",
        RIGHT,
        "the provider knows the second charge by its key, however late it comes",
        (COMMIT, CHARGE, second(COMMIT)),
        (CHARGED,),
        modes=_QUEUE,
        faults=("reset",),
        strikes=1,
        rig=PATIENT,
        speed=FAST,
        only=(_REFUSED, second(COMMIT)),
    ),
)
"""In the order of the app's modules."""
