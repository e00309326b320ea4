"""The follow-up job of those that make receipts. It may come any number of times for one receipt."""

from . import db, world
from .app import app


@app.task
def mail_receipt(receipt_id: int, member_id: int) -> None:
    with db.transaction() as tx:
        if db.claim(tx, f"receipt-mail:{receipt_id}"):
            world.mail(db.member(tx, member_id), f"Receipt {receipt_id}")
