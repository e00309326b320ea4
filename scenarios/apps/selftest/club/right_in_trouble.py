"""The jobs of `wrong_in_trouble.py`, in the same order, as they should be: each outlasts what fails around it."""

import contextlib
import time

import requests

from . import db, world
from .app import KEEPS_TRYING, app
from .receipts import mail_receipt


@app.task(**KEEPS_TRYING)
def mails_in_the_database(member_id: int) -> None:
    """Leaves the mail for `send_mails` where its marker is."""
    with db.transaction() as tx:
        if db.claim(tx, f"welcome:{member_id}"):
            db.write_mail(tx, member_id)


PATIENT = {"max_retries": None, "interval_start": 0.1, "interval_step": 0}
"""How a job is enqueued by those that wait for the broker."""


@app.task(**KEEPS_TRYING)
def enqueue_until_it_is(member_id: int) -> None:
    """Tries until the follow-up job is enqueued."""
    with db.transaction() as tx:
        if db.claim(tx, f"receipt:{member_id}"):
            mail_receipt.apply_async((db.add_receipt(tx, member_id), member_id), retry_policy=PATIENT)


@app.task(**KEEPS_TRYING)
def read_only_reported(member_id: int) -> None:
    """An entry that cannot be made ends the run, and another run makes it."""
    with db.transaction() as tx:
        if db.claim(tx, f"entry:{member_id}"):
            db.add_entry(tx, member_id, 1)


@app.task(**KEEPS_TRYING)
def entry_insisted_on(member_id: int) -> None:
    """Without a second connection the run ends, and its marker is rolled back."""
    kept = db.kept_while_it_lives()
    with kept.transaction():
        if db.claim(kept, f"entry:{member_id}"):
            with db.transaction() as books:
                db.add_entry(books, member_id, 1)


@app.task(**{**KEEPS_TRYING, "max_retries": 8})
def connection_opened_anew(member_id: int) -> None:
    """Keeps its connection as long as that one lives."""
    kept = db.kept_while_it_lives()
    with kept.transaction():
        if db.claim(kept, f"entry:{member_id}"):
            db.add_entry(kept, member_id, 1)


@app.task(**KEEPS_TRYING)
def tries_that_raise(member_id: int) -> None:
    """Calls three times; without a good answer the run ends, and another one comes later."""
    with db.transaction() as tx:
        if db.claim(tx, f"dues:{member_id}"):
            for _ in range(3):
                with contextlib.suppress(requests.HTTPError):
                    world.charge(db.member(tx, member_id), key=f"dues:{member_id}")
                    return
                time.sleep(0.1)
            raise RuntimeError("three tries, and no good answer")


@app.task(**KEEPS_TRYING)
def waits_as_told(member_id: int) -> None:
    """Waits as long as the provider asks for."""
    with db.transaction() as tx:
        if db.claim(tx, f"dues:{member_id}"):
            while (reply := world.ask_for_charge(db.member(tx, member_id), key=f"dues:{member_id}")).status_code == 429:
                time.sleep(int(reply.headers["Retry-After"]))
            world.made(reply)


@app.task(**KEEPS_TRYING)
def answer_understood(member_id: int) -> None:
    """An answer that does not name the charge ends the run before its marker."""
    with db.transaction() as tx:
        if db.claim(tx, f"dues:{member_id}"):
            world.charge(db.member(tx, member_id), key=f"dues:{member_id}")


@app.task(**{**KEEPS_TRYING, "default_retry_delay": 0.5, "max_retries": 4})
def from_where_it_stopped(member_id: int) -> None:
    """Charges line by line, and the next run begins with the first line that is not charged."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        for line in range(db.lines_booked(tx, member_id), db.LINES):
            world.made(world.ask_for_charge(member, f"dues:{member_id}:{line}", line + 1))
            db.set_lines_booked(tx, member_id, line + 1)
            tx.commit()


@app.task(**KEEPS_TRYING)
def slow_is_not_sent(member_id: int) -> None:
    """A mail that was not taken in time ends the run before its marker."""
    with db.transaction() as tx:
        if not db.is_done(tx, f"welcome:{member_id}"):
            world.mail(db.member(tx, member_id), "Welcome", timeout=1)
            db.claim(tx, f"welcome:{member_id}")


@app.task(**KEEPS_TRYING)
def all_pieces_are_all(member_id: int) -> None:
    """Reads the answer to its end."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        if not db.is_done(tx, f"dues:{member_id}"):
            answer = b"".join(world.charge_by_hand(member, f"dues:{member_id}"))
            if not answer.startswith(b"HTTP/1.1 201"):
                raise RuntimeError("no good answer")
            if b'"id"' in answer:
                world.mail(member, "Your dues are paid")
            db.claim(tx, f"dues:{member_id}")


@app.task(**KEEPS_TRYING)
def second_try_looked_at(member_id: int) -> None:
    """Tries once more when the connection breaks; when that fails, too, the run ends before its marker."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        if db.claim(tx, f"dues:{member_id}"):
            try:
                world.charge(member, key=f"dues:{member_id}")
            except requests.ConnectionError:
                world.charge(member, key=f"dues:{member_id}")
