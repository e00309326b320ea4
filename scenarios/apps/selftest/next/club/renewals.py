"""The follow-up jobs of a renewal, with a language. Jobs that the version before enqueued have none."""

from . import db, world
from .app import app


@app.task
def mail_renewal(member_id: int, language: str) -> None:
    """Cannot read what the version before enqueued."""
    with db.transaction() as tx:
        if db.claim(tx, f"renewal-mail:{member_id}"):
            world.mail(db.member(tx, member_id), f"Renewed ({language})")


@app.task
def mail_renewal_in(member_id: int, language: str = "en") -> None:
    """Can."""
    with db.transaction() as tx:
        if db.claim(tx, f"renewal-mail:{member_id}"):
            world.mail(db.member(tx, member_id), f"Renewed ({language})")
