"""One job, written twice: before it charges, it claims the invoice for ten minutes, so that nobody else charges it.

Whoever finds a claim comes again after 60, 120, 240 and 480 seconds. The clock alone shows what is wrong: at the
fourth retry the claim has run out, and what was charged under it is charged again, unless the provider knows the key.
"""

from . import db, providers
from .app import app

MINUTES = 10
WAITS = {"autoretry_for": (Exception,), "retry_backoff": 60, "retry_jitter": False, "max_retries": 4}


def _charge(invoice_id: int, key: str) -> None:
    with db.transaction() as tx:
        if db.is_done(tx, f"charge:{invoice_id}"):
            return
        if not db.claim_for(tx, invoice_id, MINUTES):
            raise providers.TryAgain(f"invoice {invoice_id} is somebody else's for now")
    with db.transaction() as tx:
        db.add_charge(tx, invoice_id, providers.charge(db.invoice(tx, invoice_id), key))
        db.mark_done(tx, f"charge:{invoice_id}")


@app.task(**WAITS)
def charge_claimed(invoice_id: int) -> None:
    """Relies on its claim: wrong, as the claim ends before the retries do."""
    _charge(invoice_id, "")


@app.task(**WAITS)
def charge_claimed_with_key(invoice_id: int) -> None:
    """The provider recognises the charge, whenever it comes: right."""
    _charge(invoice_id, f"charge:{invoice_id}")
