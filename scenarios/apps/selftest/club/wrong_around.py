"""Bugs around jobs: in the code that enqueues them, in what a provider calls back, in the next version, and in time.

The functions without `@app.task` are what a web request calls: they store a member and enqueue a job.
"""

from . import db, world
from .app import app
from .renewals import mail_renewal
from .welcomes import welcome


def row_then_job(email: str) -> int:
    """Dead in between, there is a member whom nobody welcomes."""
    with db.transaction() as tx:
        member_id = db.add_member(tx, email, "2026-05", 0)
    welcome.delay(member_id)
    return member_id


def job_then_row(email: str) -> int:
    """Dead in between, there is a job for a member who does not exist."""
    with db.transaction() as tx:
        member_id = db.add_member(tx, email, "2026-05", 0)
        welcome.delay(member_id)
    return member_id


@app.task
def entry_for_each_callback(member_id: int) -> None:
    """The provider calls the club's web server back, and each call is an entry."""
    world.order(member_id, "each call")


@app.task
def renewed_for_the_next_version(member_id: int) -> None:
    """The follow-up job cannot be read by the version that is deployed next."""
    mail_renewal.delay(member_id)


@app.task(**db.CLAIM_WAITS)
def claim_that_ends_too_early(member_id: int) -> None:
    """Nobody else charges while the claim lasts; the last retry comes when it is over."""
    with db.transaction() as tx:
        if db.is_done(tx, f"dues:{member_id}"):
            return
        db.claim_for_a_while(tx, member_id)
    with db.transaction() as tx:
        world.charge(db.member(tx, member_id))
        db.claim(tx, f"dues:{member_id}")
