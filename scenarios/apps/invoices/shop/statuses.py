"""What becomes of an invoice is told by one job for each step: `sent`, then `paid`. They may come in another order.

    variant             in order     the other way round
    tell_blindly        paid         sent
    tell_by_version     paid         paid

Both bear every crash and every second delivery of one job alone. Contract: the status is that of the last step.
"""

from . import db
from .app import app


@app.task
def tell_blindly(invoice_id: int, status: str) -> None:
    """The last job wins, whatever it tells."""
    with db.transaction() as tx:
        db.set_status(tx, invoice_id, status)


@app.task
def tell_by_version(invoice_id: int, status: str, version: int) -> None:
    """What is older than the row is dropped: right."""
    with db.transaction() as tx:
        db.set_status_of_version(tx, invoice_id, status, version)
