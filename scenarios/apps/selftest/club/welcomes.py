"""The job that a new member brings about, whatever stored the member. It may come any number of times."""

from . import db, world
from .app import app


@app.task
def welcome(member_id: int) -> None:
    with db.transaction() as tx:
        if db.claim(tx, f"welcome-mail:{member_id}"):
            world.mail(db.member(tx, member_id), "Welcome")
