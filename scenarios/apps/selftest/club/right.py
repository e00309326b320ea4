"""The jobs of `wrong.py`, in the same order, as they should be: each may run any number of times."""

import signal
import uuid

from celery import Task
from celery.exceptions import Reject

from . import db, files, world
from .app import app
from .receipts import mail_receipt


@app.task
def key_from_the_event(member_id: int) -> None:
    """The provider charges once for one key. That alone is enough."""
    with db.transaction() as tx:
        world.charge(db.member(tx, member_id), key=f"dues:{member_id}")


@app.task
def key_stored_first(member_id: int) -> None:
    """A random key is fine when every attempt uses the same one."""
    with db.transaction() as tx:
        key = db.call_key(tx, f"dues:{member_id}")
        if not db.is_done(tx, f"dues:{member_id}"):
            world.charge(db.member(tx, member_id), key)
            db.claim(tx, f"dues:{member_id}")


@app.task
def key_from_the_period(member_id: int) -> None:
    """A date is fine in a key when it is the bill's and not the clock's."""
    with db.transaction() as tx:
        if not db.is_done(tx, f"dues:{member_id}"):
            member = db.member(tx, member_id)
            world.charge(member, key=f"dues:{member_id}:{member.period}")
            db.claim(tx, f"dues:{member_id}")


@app.task(acks_late=True)
def ack_after_effect(member_id: int) -> None:
    """Settled when it is done."""
    with db.transaction() as tx:
        if not db.is_done(tx, f"dues:{member_id}"):
            world.charge(db.member(tx, member_id), key=f"dues:{member_id}")
            db.claim(tx, f"dues:{member_id}")


@app.task
def marker_last(member_id: int) -> None:
    """One at a time, the key in the call, and the marker in the transaction around it."""
    with db.transaction() as tx:
        if db.claim(tx, f"dues:{member_id}"):
            world.charge(db.member(tx, member_id), key=f"dues:{member_id}")


@app.task
def marker_for_each_effect(member_id: int) -> None:
    """A second mail is harmless, a missing one is not: its marker comes after it."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        if db.claim(tx, f"dues:{member_id}"):
            world.charge(member, key=f"dues:{member_id}")
            tx.commit()
        if db.claim(tx, f"dues-mail:{member_id}"):
            world.mail(member, "Your dues are paid")


@app.task
def marker_in_the_same_transaction(member_id: int) -> None:
    """Both or neither."""
    with db.transaction() as tx:
        if db.claim(tx, f"entry:{member_id}"):
            db.add_entry(tx, member_id, 1)


@app.task
def effect_before_ack(member_id: int) -> None:
    """The mail is a part of the job: who dies before it is sent leaves the job to another worker."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        if db.claim(tx, f"dues:{member_id}"):
            world.charge(member, key=f"dues:{member_id}")
            tx.commit()
        world.mail(member, "Your dues are paid")


@app.task
def commit_before_mail(member_id: int) -> None:
    """A missing welcome is harmless, a second one is not: its marker comes before it."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        if db.claim(tx, f"welcome:{member_id}"):
            tx.commit()
            world.mail(member, "Welcome")


@app.task
def enqueue_after_commit(member_id: int) -> None:
    """Every run enqueues the follow-up of the one receipt; what comes twice stops at its marker."""
    with db.transaction() as tx:
        receipt_id = db.add_receipt(tx, member_id)
    mail_receipt.delay(receipt_id, member_id)


@app.task
def outbox(member_id: int) -> None:
    """The wish to enqueue is committed with the receipt; whoever comes next carries it out."""
    with db.transaction() as tx:
        if not db.has_receipt(tx, member_id):
            db.post(tx, db.add_receipt(tx, member_id))
            tx.commit()
        for receipt_id in db.waiting(tx, member_id):
            mail_receipt.delay(receipt_id, member_id)
            db.set_sent(tx, receipt_id)


@app.task
def checkpoint_for_each_line(member_id: int) -> None:
    """Each line is booked together with how far the batch is."""
    with db.transaction() as tx:
        for line in range(db.lines_booked(tx, member_id), db.LINES):
            db.add_entry(tx, member_id, line)
            db.set_lines_booked(tx, member_id, line + 1)
            tx.commit()


@app.task
def delete_and_insert(member_id: int) -> None:
    """The money changes its place in one transaction."""
    with db.transaction() as tx:
        for cents in db.take_credits(tx, member_id):
            db.add_payout(tx, member_id, cents)


@app.task
def lock_with_key(member_id: int) -> None:
    """The lock keeps others out, the key makes a repetition harmless."""
    with db.transaction() as tx:
        member = db.lock_member(tx, member_id)
        if not db.is_done(tx, f"dues:{member_id}"):
            world.charge(member, key=f"dues:{member_id}")
            db.claim(tx, f"dues:{member_id}")


@app.task
def lock_that_dies_with_its_holder(member_id: int) -> None:
    """The row's lock ends with the connection. The cache only remembers whom to leave alone for a while."""
    with db.transaction() as tx, world.cache() as cache:
        world.charge(db.lock_member(tx, member_id), key=f"dues:{member_id}")
        cache.set(f"billed:{member_id}", "yes", ex=86400)


@app.task
def counter_increment_once(member_id: int) -> None:
    """The increment is tied to its event."""
    with db.transaction() as tx:
        if db.claim(tx, f"points:{member_id}"):
            db.add_points(tx, member_id)


@app.task
def whole_file(member_id: int) -> None:
    """Written under another name, and renamed when it is whole. A draft that was left behind is overwritten."""
    path = files.statement_of(member_id)
    if path.exists():
        return
    draft = path.with_suffix(".draft")
    with draft.open("w") as file, db.transaction() as tx:
        file.write(f"Statement of member {member_id}\n")
        world.charge(db.member(tx, member_id), key=f"statement:{member_id}")
        file.write("Charged: 19.90\n")
    draft.replace(path)


@app.task
def error_reported(member_id: int) -> None:
    """A call that fails ends the run, before the marker."""
    with db.transaction() as tx:
        if not db.is_done(tx, f"dues:{member_id}"):
            world.charge(db.member(tx, member_id), key=f"dues:{member_id}")
            db.claim(tx, f"dues:{member_id}")


@app.task
def reply_checked(member_id: int) -> None:
    """Anything but a good answer ends the run, before the marker."""
    with db.transaction() as tx:
        if not db.is_done(tx, f"dues:{member_id}"):
            world.ask_for_charge(db.member(tx, member_id), key=f"dues:{member_id}").raise_for_status()
            db.claim(tx, f"dues:{member_id}")


@app.task
def retry_with_key(member_id: int) -> None:
    """Tries again when the connection breaks, with the same key."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        if not db.claim(tx, f"dues:{member_id}"):
            return
    world.charge_stubbornly(member, key=f"dues:{member_id}")


@app.task
def insert_then_act(member_id: int) -> None:
    """Stores a key unless there is one, in one step, and uses the one that is there."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        key = db.key_once(tx, member_id, str(uuid.uuid4()))
    world.charge(member, key=key)


@app.task
def version_read_with_it(member_id: int) -> None:
    """The dues and their version are of one moment, so a change after it is noticed."""
    with db.transaction() as tx:
        dues, version = db.dues_and_version(tx, member_id)
        if dues == "open" and db.pay_dues(tx, member_id, version):
            tx.commit()
            world.charge(db.member(tx, member_id))


@app.task
def database_that_remembers(member_id: int) -> None:
    """What was done stands in the database, together with what it did."""
    with db.transaction() as tx:
        if db.claim(tx, f"entry:{member_id}"):
            db.add_entry(tx, member_id, 1)


@app.task
def batch_given_back(member_id: int) -> None:
    """Ends quickly when it is told to end, and gives back what is left."""
    told = []
    before = signal.signal(signal.SIGTERM, lambda *_: told.append("to end"))
    with db.transaction() as tx:
        for line in range(db.FEW):
            if told:
                raise Reject("told to end", requeue=True)
            if db.claim(tx, f"entry:{member_id}:{line}"):
                db.add_entry(tx, member_id, line)
            tx.commit()
    signal.signal(signal.SIGTERM, before)


@app.task
def redelivered_or_not(member_id: int) -> None:
    """Looks for its marker each time."""
    with db.transaction() as tx:
        db.lock_member(tx, member_id)
        if not db.is_done(tx, f"entry:{member_id}"):
            db.add_entry(tx, member_id, 1)
            db.claim(tx, f"entry:{member_id}")


@app.task(bind=True)
def lease_with_fence(self: Task, member_id: int) -> None:
    """The lock saves work. What decides is the marker, in the transaction of the entry."""
    with db.transaction() as tx, world.cache() as cache:
        if world.leased(cache, f"entry-lease:{member_id}", self.request.hostname):
            if db.claim(tx, f"entry:{member_id}"):
                db.add_entry(tx, member_id, 1)
                tx.commit()
            cache.delete(f"entry-lease:{member_id}")


@app.task
def newest_one_wins(member_id: int, dues: str, version: int) -> None:
    """Drops what is older than what is there."""
    with db.transaction() as tx:
        db.set_dues_of_version(tx, member_id, dues, version)
