"""Jobs with one bug each. What is right in its place stands under `right.py`, in the same order."""

import contextlib
import signal
import uuid
from datetime import UTC, datetime

import requests
from celery import Task
from celery.signals import task_received
from celery.worker.request import Request
from celery.worker.state import revoked
from kombu.asynchronous import get_event_loop

from . import db, files, world
from .app import app
from .receipts import mail_receipt


@app.task
def no_key(member_id: int) -> None:
    """The marker stops a second run, and not one that died before it was set."""
    with db.transaction() as tx:
        if not db.is_done(tx, f"dues:{member_id}"):
            world.charge(db.member(tx, member_id))
            db.claim(tx, f"dues:{member_id}")


@app.task
def key_from_the_attempt(member_id: int) -> None:
    """A key that the next attempt does not know."""
    with db.transaction() as tx:
        if not db.is_done(tx, f"dues:{member_id}"):
            world.charge(db.member(tx, member_id), key=str(uuid.uuid4()))
            db.claim(tx, f"dues:{member_id}")


@app.task
def key_from_the_clock(member_id: int) -> None:
    """A key that is another one a moment later."""
    with db.transaction() as tx:
        if not db.is_done(tx, f"dues:{member_id}"):
            world.charge(db.member(tx, member_id), key=f"dues:{member_id}:{datetime.now(UTC).isoformat()}")
            db.claim(tx, f"dues:{member_id}")


@app.task(acks_late=False)
def ack_before_effect(member_id: int) -> None:
    """Settled when a worker takes it: who dies after that has charged nobody."""
    with db.transaction() as tx:
        if not db.is_done(tx, f"dues:{member_id}"):
            world.charge(db.member(tx, member_id), key=f"dues:{member_id}")
            db.claim(tx, f"dues:{member_id}")


@app.task
def marker_before(member_id: int) -> None:
    """Remembers the charge before it is made."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        if db.claim(tx, f"dues:{member_id}"):
            tx.commit()
            world.charge(member, key=f"dues:{member_id}")


@app.task
def marker_after(member_id: int) -> None:
    """One marker for two effects, after the first and before the second."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        if not db.is_done(tx, f"dues:{member_id}"):
            world.charge(member)
            db.claim(tx, f"dues:{member_id}")
            tx.commit()
            world.mail(member, "Your dues are paid")


@app.task
def marker_in_another_transaction(member_id: int) -> None:
    """The entry is there, and its marker not yet."""
    with db.transaction() as tx:
        if not db.is_done(tx, f"entry:{member_id}"):
            db.add_entry(tx, member_id, 1)
            tx.commit()
            db.claim(tx, f"entry:{member_id}")


class MailsWhenItIsOver(Request):
    """How the worker keeps a job of `effect_after_ack`. Runs in the worker's own process."""

    def acknowledge(self) -> None:
        super().acknowledge()
        get_event_loop().call_later(0, self.mail)

    def mail(self) -> None:
        with db.transaction() as tx:
            world.mail(db.member(tx, self.args[0]), "Your dues are paid")


@app.task(Request=MailsWhenItIsOver)
def effect_after_ack(member_id: int) -> None:
    """The charge is right. Its mail is sent by a hook of the worker, when nobody would send it again."""
    with db.transaction() as tx:
        if not db.is_done(tx, f"dues:{member_id}"):
            world.charge(db.member(tx, member_id), key=f"dues:{member_id}")
            db.claim(tx, f"dues:{member_id}")


@app.task
def mail_before_commit(member_id: int) -> None:
    """Tells the member of a change that may still be rolled back, and is made and told again."""
    with db.transaction() as tx:
        if db.claim(tx, f"welcome:{member_id}"):
            world.mail(db.member(tx, member_id), "Welcome")


@app.task
def enqueue_before_commit(member_id: int) -> None:
    """The follow-up job of a receipt that is rolled back runs all the same, beside that of the next receipt."""
    with db.transaction() as tx:
        mail_receipt.delay(db.add_receipt(tx, member_id), member_id)


@app.task
def commit_then_enqueue(member_id: int) -> None:
    """The receipt is there, so the second run takes the follow-up job for enqueued."""
    with db.transaction() as tx:
        if db.has_receipt(tx, member_id):
            return
        receipt_id = db.add_receipt(tx, member_id)
    mail_receipt.delay(receipt_id, member_id)


@app.task
def batch_without_checkpoint(member_id: int) -> None:
    """Books line by line, and begins with the first one again."""
    with db.transaction() as tx:
        if db.is_done(tx, f"batch:{member_id}"):
            return
        for line in range(db.LINES):
            db.add_entry(tx, member_id, line)
            tx.commit()
        db.claim(tx, f"batch:{member_id}")


@app.task
def delete_then_insert(member_id: int) -> None:
    """Between the two transactions the money is nowhere."""
    with db.transaction() as tx:
        taken = db.take_credits(tx, member_id)
        tx.commit()
        for cents in taken:
            db.add_payout(tx, member_id, cents)


@app.task
def lock_without_key(member_id: int) -> None:
    """Nobody else bills the member meanwhile, but a rollback does not take the charge back."""
    with db.transaction() as tx:
        if db.claim(tx, f"dues:{member_id}"):
            world.charge(db.member(tx, member_id))


@app.task
def lock_that_outlives_its_holder(member_id: int) -> None:
    """The lock of a worker that died keeps everybody out for good."""
    with db.transaction() as tx, world.cache() as cache:
        if cache.set(f"dues-lock:{member_id}", "taken", nx=True):
            world.charge(db.member(tx, member_id), key=f"dues:{member_id}")
            cache.delete(f"dues-lock:{member_id}")


@app.task
def counter_increment(member_id: int) -> None:
    """One more, each time it runs."""
    with db.transaction() as tx:
        db.add_points(tx, member_id)


@app.task
def half_a_file(member_id: int) -> None:
    """A file that is there is taken for whole."""
    path = files.statement_of(member_id)
    if path.exists():
        return
    with path.open("w") as file, db.transaction() as tx:
        file.write(f"Statement of member {member_id}\n")
        world.charge(db.member(tx, member_id), key=f"statement:{member_id}")
        file.write("Charged: 19.90\n")


@app.task
def swallowed_error(member_id: int) -> None:
    """Takes a call that failed for one that was made."""
    with db.transaction() as tx:
        if not db.is_done(tx, f"dues:{member_id}"):
            with contextlib.suppress(requests.RequestException):
                world.charge(db.member(tx, member_id), key=f"dues:{member_id}")
            db.claim(tx, f"dues:{member_id}")


@app.task
def reply_ignored(member_id: int) -> None:
    """Does not look at what the provider answers."""
    with db.transaction() as tx:
        if not db.is_done(tx, f"dues:{member_id}"):
            world.ask_for_charge(db.member(tx, member_id), key=f"dues:{member_id}")
            db.claim(tx, f"dues:{member_id}")


@app.task
def retry_without_key(member_id: int) -> None:
    """Tries again when the connection breaks, without a key by which the provider could tell."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        if not db.claim(tx, f"dues:{member_id}"):
            return
    world.charge_stubbornly(member)


@app.task
def check_then_act(member_id: int) -> None:
    """Looks for a key, and stores one when there is none: two can look before one of them acts."""
    with db.transaction() as tx:
        member = db.member(tx, member_id)
        key = db.stored_key(tx, member_id)
        if key is None:
            key = str(uuid.uuid4())
            db.store_key(tx, member_id, key)
    world.charge(member, key=key)


@app.task
def version_read_too_late(member_id: int) -> None:
    """Looks at the dues, and then at their version: what changed in between fits the version and not the look."""
    with db.transaction() as tx:
        if db.dues(tx, member_id) == "open" and db.pay_dues(tx, member_id, db.version(tx, member_id)):
            tx.commit()
            world.charge(db.member(tx, member_id))


seen: set[str] = set()


@task_received.connect
def only_once(request: Request, **_: object) -> None:
    """Runs in the worker's own process, for jobs of `worker_that_remembers`."""
    if request.name.endswith(".worker_that_remembers"):
        if request.id in seen:
            revoked.add(request.id)
        seen.add(request.id)


@app.task
def worker_that_remembers(member_id: int) -> None:
    """Drops what the worker has seen before: also what it gets back because its child process died."""
    with db.transaction() as tx:
        if db.claim(tx, f"entry:{member_id}"):
            db.add_entry(tx, member_id, 1)


@app.task
def batch_cut_short(member_id: int) -> None:
    """Ends quickly when it is told to end, after the line at hand; and a job that returns is done."""
    told = []
    before = signal.signal(signal.SIGTERM, lambda *_: told.append("to end"))
    with db.transaction() as tx:
        for line in range(db.FEW):
            if told:
                break
            if db.claim(tx, f"entry:{member_id}:{line}"):
                db.add_entry(tx, member_id, line)
            tx.commit()
    signal.signal(signal.SIGTERM, before)


@app.task(bind=True)
def redelivered_alone(self: Task, member_id: int) -> None:
    """Looks for its marker when the broker says that the message comes again; a message that was sent twice is new."""
    with db.transaction() as tx:
        db.lock_member(tx, member_id)
        if self.request.delivery_info.get("redelivered") and db.is_done(tx, f"entry:{member_id}"):
            return
        db.add_entry(tx, member_id, 1)
        db.claim(tx, f"entry:{member_id}")


@app.task(bind=True)
def lease_without_fence(self: Task, member_id: int) -> None:
    """Trusts a lock that runs out: who was paused for longer goes on, and does not know it."""
    with db.transaction() as tx, world.cache() as cache:
        if world.leased(cache, f"entry-lease:{member_id}", self.request.hostname):
            if not db.has_entry(tx, member_id):
                db.add_entry(tx, member_id, 1)
                tx.commit()
            cache.delete(f"entry-lease:{member_id}")


@app.task
def last_one_wins(member_id: int, dues: str, version: int) -> None:
    """Writes what it is told, also when that is older than what is there."""
    with db.transaction() as tx:
        db.set_dues(tx, member_id, dues)
