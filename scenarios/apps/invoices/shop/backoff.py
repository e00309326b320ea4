"""One job, written five times: charge the customer's card, and try again when the payment provider is out of order.

Each charges once, as the provider knows the charge by its key. They differ in how long they wait before they try again:

    variant          waits, in seconds                    wrong
    patient          0 to 1, 0 to 2, 0 to 4 ...
    polite           the same, or what the provider asks for
    impatient        none at all                          an outage becomes a flood, and all attempts are over at once
    stubborn         0 to 1 every time                    after an hour they come as often as in the first second
    in_step          1, 2, 4 ...                          everybody who failed together comes back together
"""

from celery.utils.time import get_exponential_backoff_interval

from . import db, providers
from .app import app

FULL_JITTER = {"autoretry_for": (providers.TryAgain,), "retry_backoff": 1, "retry_jitter": True, "max_retries": 8}


def _charge(invoice_id: int) -> None:
    key = f"charge:{invoice_id}"
    with db.transaction() as tx:
        if db.claim(tx, key):
            db.add_charge(tx, invoice_id, providers.charge(db.invoice(tx, invoice_id), key))


@app.task(**FULL_JITTER)
def charge_patient(invoice_id: int) -> None:
    """Waits twice as long each time, and somebody else another time: right."""
    _charge(invoice_id)


@app.task(bind=True, max_retries=8)
def charge_polite(self, invoice_id: int) -> None:
    """Waits as the patient one does, and as long as the provider asks for: right."""
    try:
        _charge(invoice_id)
    except providers.TryAgain as error:
        wait = get_exponential_backoff_interval(1, self.request.retries, maximum=300, full_jitter=True)
        raise self.retry(exc=error, countdown=max(wait, error.after)) from error


@app.task(**{**FULL_JITTER, "retry_backoff": False, "default_retry_delay": 0})
def charge_impatient(invoice_id: int) -> None:
    """Tries again at once."""
    _charge(invoice_id)


@app.task(**{**FULL_JITTER, "retry_backoff_max": 1})
def charge_stubborn(invoice_id: int) -> None:
    """Never waits longer than a second."""
    _charge(invoice_id)


@app.task(**{**FULL_JITTER, "retry_jitter": False})
def charge_in_step(invoice_id: int) -> None:
    """Waits the same time as everybody else."""
    _charge(invoice_id)
