"""One job, written six times: charge the customer's card, then mail the invoice. Four of them are wrong.

Each one changes the world in three steps: the charge (POST), the marker or ledger row (COMMIT) and the mail (MAIL).
They differ in the order of the steps and in whether the provider is given a key. Contracts: exactly one charge, at
least one mail. The worker is killed before each step, or after the last one, and the whole job runs again:

    variant            steps               killed before 1  before 2     before 3     after 3      bad
    naive              POST COMMIT MAIL    ok               charged x2   charged x2   charged x2   3
    marker_before      COMMIT POST MAIL    ok               both lost    mail lost    ok           2
    marker_after       POST COMMIT MAIL    ok               charged x2   mail lost    ok           2
    lock_without_key   POST MAIL COMMIT    ok               charged x2   charged x2   ok           2
    idempotent         POST MAIL COMMIT    ok               ok           mailed x2    ok           0
    locked             POST MAIL COMMIT    ok               ok           mailed x2    ok           0

A second mail is what "at least one mail" allows. `naive` also mails twice in its last column, and `lock_without_key`
before its third step.
"""

from . import db, providers
from .app import app


@app.task
def charge_and_mail_naive(invoice_id: int) -> None:
    """Works as long as nothing goes wrong."""
    with db.transaction() as tx:
        invoice = db.invoice(tx, invoice_id)
        charge_id = providers.charge(invoice)
        db.add_charge(tx, invoice_id, charge_id)
        tx.commit()
        providers.send_mail(invoice)


@app.task
def charge_and_mail_marker_before(invoice_id: int) -> None:
    """Remembers the work before it is done: a crash in between loses it."""
    key = f"charge-and-mail:{invoice_id}"
    with db.transaction() as tx:
        invoice = db.invoice(tx, invoice_id)
        if db.is_done(tx, key):
            return
        db.mark_done(tx, key)
        tx.commit()
        providers.charge(invoice)
        providers.send_mail(invoice)


@app.task
def charge_and_mail_marker_after(invoice_id: int) -> None:
    """Remembers the charge after it was made: a crash in between charges again, one after it loses the mail."""
    key = f"charge-and-mail:{invoice_id}"
    with db.transaction() as tx:
        invoice = db.invoice(tx, invoice_id)
        if db.is_done(tx, key):
            return
        providers.charge(invoice)
        db.mark_done(tx, key)
        tx.commit()
        providers.send_mail(invoice)


@app.task
def charge_and_mail_lock_without_key(invoice_id: int) -> None:
    """Nobody else works on the invoice meanwhile, but a rollback does not take the charge back."""
    key = f"charge-and-mail:{invoice_id}"
    with db.transaction() as tx:
        invoice = db.invoice(tx, invoice_id)
        if not db.claim(tx, key):
            return
        providers.charge(invoice)
        providers.send_mail(invoice)
        tx.commit()


@app.task
def charge_and_mail_idempotent(invoice_id: int) -> None:
    """The provider knows the charge by its key, and the marker comes last: right."""
    key = f"charge-and-mail:{invoice_id}"
    with db.transaction() as tx:
        invoice = db.invoice(tx, invoice_id)
        if db.is_done(tx, key):
            return
        providers.charge(invoice, key=f"charge:{invoice_id}")
        providers.send_mail(invoice)
        db.claim(tx, key)  # not mark_done: a second delivery of this job may have been faster
        tx.commit()


@app.task
def charge_and_mail_locked(invoice_id: int) -> None:
    """One at a time, and the provider knows the charge by its key: right."""
    key = f"charge-and-mail:{invoice_id}"
    with db.transaction() as tx:
        invoice = db.invoice(tx, invoice_id)
        if not db.claim(tx, key):
            return
        providers.charge(invoice, key=f"charge:{invoice_id}")
        providers.send_mail(invoice)
        tx.commit()
