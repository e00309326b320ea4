"""Version 2 of the chain, the right way: `charge_card` takes `notify`, and nothing else is different.

The new argument has a default, so that jobs of version 1, which lack it, still run. No job of the chain sends it yet:
a worker of version 1 would refuse it. That is for the release after this one, when no old worker runs any more.
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
    charge_card.delay(invoice_id)


@app.task(**RETRIES)
def charge_card(invoice_id: int, notify: bool = True) -> None:
    """Charges the invoice. Without `notify` the customer gets no mail, but a statement at the end of the month."""
    key = f"charge:{invoice_id}"
    with db.transaction() as tx:
        if db.claim(tx, key):
            provider_id = providers.charge(db.invoice(tx, invoice_id), key)
            db.add_charge(tx, invoice_id, provider_id)
            db.set_status(tx, invoice_id, "paid")
    following = send_invoice_email if notify else sync_invoice_to_accounting
    following.delay(invoice_id)


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
