"""Version 2 of the chain, the wrong way: two changes that are fine by themselves, and break every deploy.

`charge_card` requires `notify`: a job of version 1 lacks it and fails on a new worker; a job of version 2 has one
argument too many for an old one. `sync_invoice_to_accounting` is now called `book_invoice`: workers drop jobs whose
name they do not know, so what the other version has enqueued is lost.
"""

import smtplib

import psycopg

from . import db, pdf, providers
from .app import app

RETRIES = {
    "autoretry_for": (providers.TryAgain, psycopg.OperationalError, smtplib.SMTPException, ConnectionError),
    "retry_backoff": 1,
    "retry_backoff_max": 300,
    "retry_jitter": True,
    "max_retries": 8,
}


def invoice_created(invoice_id: int) -> None:
    """The event that starts the chain."""
    render_invoice_pdf.delay(invoice_id)


@app.task(**RETRIES)
def render_invoice_pdf(invoice_id: int) -> None:
    with db.transaction() as tx:
        if db.claim(tx, f"invoice-pdf:{invoice_id}"):
            pdf.write(db.invoice(tx, invoice_id))
    charge_card.delay(invoice_id, True)


@app.task(**RETRIES)
def charge_card(invoice_id: int, notify: bool) -> None:
    key = f"charge:{invoice_id}"
    with db.transaction() as tx:
        if db.claim(tx, key):
            provider_id = providers.charge(db.invoice(tx, invoice_id), key)
            db.add_charge(tx, invoice_id, provider_id)
            db.set_status(tx, invoice_id, "paid")
    following = send_invoice_email if notify else book_invoice
    following.delay(invoice_id)


@app.task(**RETRIES)
def send_invoice_email(invoice_id: int) -> None:
    with db.transaction() as tx:
        if db.claim(tx, f"invoice-email:{invoice_id}"):
            providers.send_mail(db.invoice(tx, invoice_id))
    book_invoice.delay(invoice_id)


@app.task(**RETRIES)
def book_invoice(invoice_id: int) -> None:
    key = f"accounting:{invoice_id}"
    with db.transaction() as tx:
        if db.claim(tx, key):
            providers.book(db.invoice(tx, invoice_id), key)
