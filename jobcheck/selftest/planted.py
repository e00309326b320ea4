"""What is planted in `scenarios/apps/selftest`, and where each bug must be found, worked out by hand.

A kill has N+1 outcomes for the N state changes of a job: it dies before one of them, or after the last. Then the whole
job runs again. So for each job: what is there already when it starts anew, and what does it do a second time, or not
at all? The answers stand here and not in a recorded run; where a run differs, one of the two is wrong, and the place
to find out which is the run.
"""

from __future__ import annotations

from ..checks.contracts import at_most_once, exactly_once
from ..explore.causes import SETTINGS
from .alive import ALIVE
from .around import AROUND
from .in_trouble import IN_TROUBLE
from .kinds import (
    BOOKED,
    CHARGE,
    CHARGED,
    COMMIT,
    END,
    ENQUEUE,
    ENTRIES,
    FOLLOWED_UP,
    HANDLER_MODE,
    MAIL,
    MAILED,
    PAYOUTS,
    POINTS,
    QUEUE_MODE,
    RIGHT,
    STATEMENTS,
    WRONG,
    Bad,
    Planted,
    second,
)
from .queued import QUEUED

_WRONG = (
    Planted(
        "no_key",
        WRONG,
        "the charge is made and nothing remembers it until the commit",
        (CHARGE, COMMIT),
        (CHARGED,),
        (Bad(COMMIT, "duplicated", CHARGE),),
    ),
    Planted(
        "key_from_the_attempt",
        WRONG,
        "the second attempt draws another key, so the provider takes it for another charge",
        (CHARGE, COMMIT),
        (CHARGED,),
        (Bad(COMMIT, "duplicated", CHARGE),),
    ),
    Planted(
        "key_from_the_clock",
        WRONG,
        "the second attempt comes at another time, so the provider takes it for another charge",
        (CHARGE, COMMIT),
        (CHARGED,),
        (Bad(COMMIT, "duplicated", CHARGE),),
    ),
    Planted(
        "ack_before_effect",
        WRONG,
        "settled when the worker took it: dead before the charge, nobody runs it again. A task option mends it, so it "
        "is laid at the settings. Dead before the ack, it is handed out again, and the key keeps the charge single",
        (CHARGE, COMMIT),
        (CHARGED,),
        (Bad(CHARGE, "lost", CHARGE, SETTINGS),),
        modes=(QUEUE_MODE,),
        acks_early=True,
    ),
    Planted(
        "marker_before",
        WRONG,
        "with the marker committed and the charge not sent, the second run takes it for done",
        (COMMIT, CHARGE),
        (CHARGED,),
        (Bad(CHARGE, "lost", CHARGE),),
    ),
    Planted(
        "marker_after",
        WRONG,
        "before the commit the charge is forgotten and made again; after it the second run returns without the mail",
        (CHARGE, COMMIT, MAIL),
        (CHARGED, MAILED),
        (Bad(COMMIT, "duplicated", CHARGE), Bad(MAIL, "lost", "mail")),
    ),
    Planted(
        "marker_in_another_transaction",
        WRONG,
        "between the two commits the entry is there without its marker, and is made again",
        (COMMIT, second(COMMIT)),
        (BOOKED,),
        (Bad(second(COMMIT), "duplicated", ENTRIES),),
    ),
    Planted(
        "effect_after_ack",
        WRONG,
        "the mail is sent when the job is settled: dead in between, nobody runs it again. No setting mends it, the "
        "ack is late already. Dead before the ack, the second run finds the marker and the mail follows its own ack",
        (CHARGE, COMMIT),
        (CHARGED, MAILED),
        (Bad(MAIL, "lost", "mail"),),
        modes=(QUEUE_MODE,),
        after_ack=(MAIL,),
    ),
    Planted(
        "mail_before_commit",
        WRONG,
        "the mail is out, its marker is rolled back, and it is sent again",
        (MAIL, COMMIT),
        (at_most_once("mail"),),
        (Bad(COMMIT, "duplicated", "mail"),),
    ),
    Planted(
        "enqueue_before_commit",
        WRONG,
        "the receipt is rolled back and its follow-up job is not: it mails a receipt that does not exist, and the "
        "second run's follow-up mails the next one. Dead after the commit, the second run finds the same receipt",
        (ENQUEUE, COMMIT),
        (FOLLOWED_UP,),
        (Bad(COMMIT, "duplicated", "mail"),),
        modes=(QUEUE_MODE,),
    ),
    Planted(
        "commit_then_enqueue",
        WRONG,
        "with the receipt committed, the second run takes the follow-up job for enqueued",
        (COMMIT, ENQUEUE),
        (FOLLOWED_UP,),
        (Bad(ENQUEUE, "lost", "mail"),),
        modes=(QUEUE_MODE,),
    ),
    Planted(
        "batch_without_checkpoint",
        WRONG,
        "whatever lines are booked when it dies are booked again, up to the marker of the whole batch",
        (COMMIT, second(COMMIT), second(COMMIT, 3), second(COMMIT, 4)),
        (BOOKED,),
        tuple(Bad(second(COMMIT, number), "duplicated", ENTRIES) for number in (2, 3, 4)),
    ),
    Planted(
        "delete_then_insert",
        WRONG,
        "the credit is gone and the payout not there: the second run finds nothing to pay out",
        (COMMIT, second(COMMIT)),
        (exactly_once(PAYOUTS),),
        (Bad(second(COMMIT), "lost", PAYOUTS),),
    ),
    Planted(
        "lock_without_key",
        WRONG,
        "the rollback frees the lock and takes back the marker, but not the charge",
        (CHARGE, COMMIT),
        (CHARGED,),
        (Bad(COMMIT, "duplicated", CHARGE),),
    ),
    Planted(
        "lock_that_outlives_its_holder",
        WRONG,
        "the dead worker's lock keeps the second run out; dead after the charge, that does no harm",
        ("cache SET dues-lock:*", CHARGE, "cache DEL dues-lock:*"),
        (CHARGED,),
        (Bad(CHARGE, "lost", CHARGE),),
    ),
    Planted(
        "counter_increment",
        WRONG,
        "nothing remembers that it was done: any second run does it again, also that of a job that was only not "
        "settled yet",
        (COMMIT,),
        (exactly_once(POINTS),),
        (Bad(END, "duplicated", POINTS),),
    ),
    Planted(
        "half_a_file",
        WRONG,
        "the second run takes the half file for whole. A file is no message: killed right after the charge it is half "
        "(handler mode), killed before the ack it is whole (queue mode)",
        (CHARGE,),
        (exactly_once(STATEMENTS, key="text"),),
        (
            Bad(CHARGE, "partial", STATEMENTS),
            Bad(END, "partial", STATEMENTS, modes=(HANDLER_MODE,)),
        ),
    ),
)

_RIGHT = (
    Planted("key_from_the_event", RIGHT, "the provider knows the second call by its key", (CHARGE,), (CHARGED,)),
    Planted(
        "key_stored_first",
        RIGHT,
        "every attempt reads the one key that was committed first",
        (COMMIT, CHARGE, second(COMMIT)),
        (CHARGED,),
    ),
    Planted("key_from_the_period", RIGHT, "the period is the bill's", (CHARGE, COMMIT), (CHARGED,)),
    Planted(
        "ack_after_effect",
        RIGHT,
        "not settled, it is handed out again, and the key keeps the charge single",
        (CHARGE, COMMIT),
        (CHARGED,),
    ),
    Planted("marker_last", RIGHT, "the key before the marker, the marker at the end", (CHARGE, COMMIT), (CHARGED,)),
    Planted(
        "marker_for_each_effect",
        RIGHT,
        "before its own marker the mail is sent again, which at least once allows",
        (CHARGE, COMMIT, MAIL, second(COMMIT)),
        (CHARGED, MAILED),
    ),
    Planted("marker_in_the_same_transaction", RIGHT, "both are there or neither", (COMMIT,), (BOOKED,)),
    Planted(
        "effect_before_ack",
        RIGHT,
        "the charge has its marker; the mail is sent by each run, which at least once allows",
        (CHARGE, COMMIT, MAIL),
        (CHARGED, MAILED),
    ),
    Planted(
        "commit_before_mail",
        RIGHT,
        "dead before the mail, it is never sent, which at most once allows",
        (COMMIT, MAIL),
        (at_most_once("mail"),),
    ),
    Planted(
        "enqueue_after_commit",
        RIGHT,
        "each run enqueues the follow-up of the same receipt, and its marker stops the second one",
        (COMMIT, ENQUEUE),
        (FOLLOWED_UP,),
        modes=(QUEUE_MODE,),
    ),
    Planted(
        "outbox",
        RIGHT,
        "what waits in the outbox is enqueued by the second run; enqueued twice, it stops at its marker",
        (COMMIT, ENQUEUE, second(COMMIT)),
        (FOLLOWED_UP,),
        modes=(QUEUE_MODE,),
    ),
    Planted(
        "checkpoint_for_each_line",
        RIGHT,
        "the second run begins where the last commit stands",
        (COMMIT, second(COMMIT), second(COMMIT, 3)),
        (BOOKED,),
    ),
    Planted("delete_and_insert", RIGHT, "one transaction", (COMMIT,), (exactly_once(PAYOUTS),)),
    Planted("lock_with_key", RIGHT, "the key makes the repetition harmless", (CHARGE, COMMIT), (CHARGED,)),
    Planted(
        "lock_that_dies_with_its_holder",
        RIGHT,
        "the database frees the lock of a dead connection",
        (CHARGE, "cache SET billed:*"),
        (CHARGED,),
    ),
    Planted("counter_increment_once", RIGHT, "the marker is in the transaction", (COMMIT,), (exactly_once(POINTS),)),
    Planted(
        "whole_file",
        RIGHT,
        "the file has its name when it is whole; a draft that was left behind is overwritten",
        (CHARGE,),
        (exactly_once(STATEMENTS, key="text"),),
    ),
)

PLANTED = _WRONG + _RIGHT + ALIVE + QUEUED + AROUND + IN_TROUBLE
