"""The follow-up jobs of a renewal, at the present version. `next/club/renewals.py` is what is deployed after it."""

from . import db, world
from .app import app


@app.task
def mail_renewal(member_id: int) -> None:
    with db.transaction() as tx:
        if db.claim(tx, f"renewal-mail:{member_id}"):
            world.mail(db.member(tx, member_id), "Renewed")


@app.task
def mail_renewal_in(member_id: int) -> None:
    with db.transaction() as tx:
        if db.claim(tx, f"renewal-mail:{member_id}"):
            world.mail(db.member(tx, member_id), "Renewed")
