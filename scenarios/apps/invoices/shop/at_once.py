"""The same job twice more: charge the customer's card, then mail the invoice. Both bear every crash.

    variant          steps                  killed anywhere   two workers at once
    check_then_act   COMMIT POST MAIL       ok                charged x2
    drawn_once       COMMIT POST MAIL       ok                ok

The key of the call is drawn at random and stored before the call, so that every attempt uses the same one. They differ
in what happens when two workers look for it at the same time.
"""

from uuid import uuid4

from . import db, providers
from .app import app


@app.task
def charge_and_mail_check_then_act(invoice_id: int) -> None:
    """Looks whether there is a key, and draws one if not. Two workers that look at once draw two."""
    with db.transaction() as tx:
        invoice = db.invoice(tx, invoice_id)
        key = db.charge_key(tx, invoice_id)
        if key is None:
            key = str(uuid4())
            db.set_charge_key(tx, invoice_id, key)
        tx.commit()
        providers.charge(invoice, key)
        providers.send_mail(invoice)


@app.task
def charge_and_mail_drawn_once(invoice_id: int) -> None:
    """Locks the invoice, looks, and stores a key unless there is one. Then uses what is stored."""
    with db.transaction() as tx:
        invoice = db.invoice(tx, invoice_id)
        db.draw_charge_key(tx, invoice_id, str(uuid4()))
        tx.commit()
        providers.charge(invoice, db.charge_key(tx, invoice_id))
        providers.send_mail(invoice)
