"""What the web process of the club enqueues when the provider calls back."""

from . import db
from .app import app


@app.task
def book(member_id: int) -> None:
    """An entry for each call."""
    with db.transaction() as tx:
        db.add_entry(tx, member_id, 1)


@app.task
def book_event(member_id: int, event: str) -> None:
    """An entry for each event."""
    with db.transaction() as tx:
        if db.claim(tx, f"event:{event}"):
            db.add_entry(tx, member_id, 1)
