"""The systems that the shop calls: the payment provider, the accounting and the mail server."""

import smtplib
from email.message import EmailMessage

import requests

from . import settings
from .db import Invoice


class TryAgain(Exception):
    """The other system is down, busy or too slow for now."""

    after = 0
    """Seconds that it asked to wait."""


def charge(invoice: Invoice, key: str = "") -> str:
    """Charges the customer and returns the provider's id of the charge.

    With `key`, the provider answers a repeated call as it did the first time, and charges once.
    """
    order = {"invoice": invoice.id, "amount": invoice.amount_cents, "currency": "EUR"}
    return str(_post(f"{settings.PAYMENTS_URL}/charges", order, key)["id"])


def book(invoice: Invoice, key: str) -> None:
    """Enters the invoice in the accounting."""
    entry = {"invoice": invoice.id, "amount": invoice.amount_cents, "account": "8400"}
    _post(f"{settings.ACCOUNTING_URL}/entries", entry, key)


def send_mail(invoice: Invoice) -> None:
    """Mails the invoice to the customer."""
    mail = EmailMessage()
    mail["From"] = "billing@shop.example"
    mail["To"] = invoice.customer
    mail["Subject"] = f"Your invoice {invoice.id}"
    mail.set_content(f"We have charged {invoice.amount_cents / 100:.2f} EUR for invoice {invoice.id}. Thank you.\n")
    with smtplib.SMTP(settings.SMTP_HOST, settings.SMTP_PORT, "shop.example", settings.TIMEOUT) as server:
        server.send_message(mail)


def _post(url: str, body: dict, key: str) -> dict:
    headers = {"Idempotency-Key": key} if key else {}
    try:
        response = requests.post(url, json=body, headers=headers, timeout=settings.TIMEOUT)
    except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
        # The last one: the answer was cut off. The call may have counted; with its key it can be made again.
        raise TryAgain(str(error)) from error
    if response.status_code in (409, 429) or response.status_code >= 500:
        again = TryAgain(f"{response.status_code} from {url}")
        again.after = int(response.headers.get("Retry-After", 0))
        raise again
    response.raise_for_status()
    return response.json()
