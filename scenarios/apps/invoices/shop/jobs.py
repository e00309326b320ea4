"""From a new invoice to the books, as a chain of small jobs:

    invoice.created -> render_invoice_pdf -> charge_card -> send_invoice_email -> sync_invoice_to_accounting

Every job may run any number of times. Each one claims the marker of its own effect, named after the invoice, and
causes the effect inside the same transaction; where the other system knows idempotency keys, it is given the same
name. The next job is enqueued after the commit, and again by every repetition: what comes twice stops at its marker.
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


def create_invoice(customer: str, amount_cents: int) -> int:
    """Stores an invoice, then announces it. Returns its id."""
    with db.transaction() as tx:
        invoice_id = db.add_invoice(tx, customer, amount_cents)
    invoice_created(invoice_id)
    return invoice_id


def invoice_created(invoice_id: int) -> None:
    """The event that starts the chain."""
    render_invoice_pdf.delay(invoice_id)


@app.task(**RETRIES)
def render_invoice_pdf(invoice_id: int) -> None:
    with db.transaction() as tx:
        if db.claim(tx, f"invoice-pdf:{invoice_id}"):
            pdf.write(db.invoice(tx, invoice_id))
    charge_card.delay(invoice_id)


@app.task(**RETRIES)
def charge_card(invoice_id: int) -> None:
    key = f"charge:{invoice_id}"
    with db.transaction() as tx:
        if db.claim(tx, key):
            provider_id = providers.charge(db.invoice(tx, invoice_id), key)
            db.add_charge(tx, invoice_id, provider_id)
            db.set_status(tx, invoice_id, "paid")
    send_invoice_email.delay(invoice_id)


@app.task(**RETRIES)
def send_invoice_email(invoice_id: int) -> None:
    with db.transaction() as tx:
        if db.claim(tx, f"invoice-email:{invoice_id}"):
            providers.send_mail(db.invoice(tx, invoice_id))
    sync_invoice_to_accounting.delay(invoice_id)


@app.task(**RETRIES)
def sync_invoice_to_accounting(invoice_id: int) -> None:
    key = f"accounting:{invoice_id}"
    with db.transaction() as tx:
        if db.claim(tx, key):
            providers.book(db.invoice(tx, invoice_id), key)
