"""What is in `wrong_around.py`, in the same order, as it should be."""

from . import db, world
from .app import app
from .renewals import mail_renewal_in
from .welcomes import welcome


def wish_with_the_row(email: str) -> int:
    """The wish to enqueue is committed with the member; the relay, which a scheduler runs, carries it out."""
    with db.transaction() as tx:
        member_id = db.add_member(tx, email, "2026-05", 0)
        db.wish(tx, member_id)
    return member_id


def wish_and_relay(email: str) -> int:
    """The same, and the relay runs at once."""
    member_id = wish_with_the_row(email)
    run_relay()
    return member_id


def run_relay() -> None:
    """Enqueues what is wished for. It is marked after that, so a wish may come twice, and none is lost."""
    with db.transaction() as tx:
        for member_id in db.wished(tx):
            welcome.delay(member_id)
            db.set_fulfilled(tx, member_id)


@app.task
def entry_for_each_event(member_id: int) -> None:
    """The provider may tell the same event any number of times."""
    world.order(member_id, "each event")


@app.task
def renewed_for_both_versions(member_id: int) -> None:
    """What is new in the follow-up job has a default."""
    mail_renewal_in.delay(member_id)


@app.task(**db.CLAIM_WAITS)
def claim_with_key(member_id: int) -> None:
    """The claim saves calls; the key is what keeps the charge single."""
    with db.transaction() as tx:
        if db.is_done(tx, f"dues:{member_id}"):
            return
        db.claim_for_a_while(tx, member_id)
    with db.transaction() as tx:
        world.charge(db.member(tx, member_id), key=f"dues:{member_id}")
        db.claim(tx, f"dues:{member_id}")
