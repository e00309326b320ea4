"""Jobs with one bug each, which shows when a server, a provider or the network around them fails as a whole. What is
right in its place stands under `right_in_trouble.py`, in the same order."""

import contextlib
import smtplib
import time

import kombu.exceptions
import psycopg
import requests

from . import db, world
from .app import KEEPS_TRYING, app
from .receipts import mail_receipt


@app.task(**KEEPS_TRYING)
def mails_in_the_queue(member_id: int) -> None:
    """Leaves the mail for `send_mails` where the jobs are kept, and with them it may go."""
    with db.transaction() as tx, world.queue() as queue:
        if not db.is_done(tx, f"welcome:{member_id}"):
            queue.rpush("mails", member_id)
            db.claim(tx, f"welcome:{member_id}")


HASTY = {"max_retries": 1, "interval_start": 0, "interval_step": 0}
"""How a job is enqueued by those that do not wait: a broken connection is survived, and no more."""


@app.task(**KEEPS_TRYING)
def enqueue_given_up(member_id: int) -> None:
    """Takes the follow-up job for enqueued when the client has given up, after its second try."""
    with db.transaction() as tx:
        if db.claim(tx, f"receipt:{member_id}"):
            with contextlib.suppress(kombu.exceptions.OperationalError):
                mail_receipt.apply_async((db.add_receipt(tx, member_id), member_id), retry_policy=HASTY)


@app.task(**KEEPS_TRYING)
def read_only_passed_over(member_id: int) -> None:
    """Knows that the database is read-only during a failover, and that the entry can wait; nobody makes it later."""
    with contextlib.suppress(psycopg.errors.ReadOnlySqlTransaction), db.transaction() as tx:
        if db.claim(tx, f"entry:{member_id}"):
            db.add_entry(tx, member_id, 1)


@app.task(**KEEPS_TRYING)
def entry_left_out(member_id: int) -> None:
    """Books on a connection of its own, and does without the entry where it gets none."""
    kept = db.kept_while_it_lives()
    with kept.transaction():
        if db.claim(kept, f"entry:{member_id}"):
            try:
                books = db.transaction()
            except psycopg.OperationalError:
                return
            with books:
                db.add_entry(books, member_id, 1)


@app.task(**{**KEEPS_TRYING, "max_retries": 8})
def connection_kept_for_good(member_id: int) -> None:
    """Opens its connection once, and never again when that one is broken."""
    kept = db.kept()
    with kept.transaction():
        if db.claim(kept, f"entry:{member_id}"):
            db.add_entry(kept, member_id, 1)


@app.task(**KEEPS_TRYING)
def tries_that_run_out(member_id: int) -> None:
    """Calls three times, and goes on whether one of them was answered well or not."""
    with db.transaction() as tx:
        if db.claim(tx, f"dues:{member_id}"):
            for _ in range(3):
                with contextlib.suppress(requests.HTTPError):
                    world.charge(db.member(tx, member_id), key=f"dues:{member_id}")
                    break
                time.sleep(0.1)


@app.task(**KEEPS_TRYING)
def told_to_wait(member_id: int) -> None:
    """Comes again a moment later, however long the provider has asked it to wait."""
    with db.transaction() as tx:
        if db.claim(tx, f"dues:{member_id}"):
            while (reply := world.ask_for_charge(db.member(tx, member_id), key=f"dues:{member_id}")).status_code == 429:
                time.sleep(0.1)
            world.made(reply)


@app.task(**KEEPS_TRYING)
def any_answer_is_good(member_id: int) -> None:
    """Looks at the status alone: what says 200 may be a page of somebody else's."""
    with db.transaction() as tx:
        if db.claim(tx, f"dues:{member_id}"):
            world.ask_for_charge(db.member(tx, member_id), key=f"dues:{member_id}").raise_for_status()


@app.task(**{**KEEPS_TRYING, "default_retry_delay": 0.5, "max_retries": 4})
def always_from_the_start(member_id: int) -> None:
    """Charges line by line. A repeated call costs nothing, except what the provider can do in that time."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        for line in range(db.lines_booked(tx, member_id), db.LINES):
            world.made(world.ask_for_charge(member, f"dues:{member_id}:{line}", line + 1))
        db.set_lines_booked(tx, member_id, db.LINES)


@app.task(**KEEPS_TRYING)
def slow_is_sent(member_id: int) -> None:
    """Waits for the mail server for a second, and takes what is slow for sent."""
    with db.transaction() as tx:
        if not db.is_done(tx, f"welcome:{member_id}"):
            try:
                world.mail(db.member(tx, member_id), "Welcome", timeout=1)
            except smtplib.SMTPServerDisconnected as error:
                if "timed out" not in str(error):
                    raise
            db.claim(tx, f"welcome:{member_id}")


@app.task(**KEEPS_TRYING)
def first_piece_is_all(member_id: int) -> None:
    """Takes what comes first for the whole answer, and an answer without an id for a refusal."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        if not db.is_done(tx, f"dues:{member_id}"):
            answer = next(world.charge_by_hand(member, f"dues:{member_id}"), b"")
            if not answer.startswith(b"HTTP/1.1 201"):
                raise RuntimeError("no good answer")
            if b'"id"' in answer:
                world.mail(member, "Your dues are paid")
            db.claim(tx, f"dues:{member_id}")


@app.task(**KEEPS_TRYING)
def one_second_try(member_id: int) -> None:
    """Tries once more when the connection breaks, and does not look what became of that."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        if db.claim(tx, f"dues:{member_id}"):
            try:
                world.charge(member, key=f"dues:{member_id}")
            except requests.ConnectionError:
                with contextlib.suppress(requests.ConnectionError):
                    world.charge(member, key=f"dues:{member_id}")
