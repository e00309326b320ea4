"""The event that starts the chain, written four times: store an invoice, and enqueue the first job for it.

    producer           steps                  dead before 1   before 2           before 3     after the last
    commit_then_push   COMMIT LPUSH           nothing         job lost                        ok
    push_then_commit   LPUSH COMMIT           nothing         job without row                 ok
    outbox             COMMIT                 nothing                                         ok
    outbox_and_relay   COMMIT LPUSH COMMIT    nothing         ok                 job twice    ok

With an outbox, the wish to enqueue is a row of the same transaction, and `run_relay` carries it out: at once where all
goes well, and again and again from a scheduler. It may enqueue a job twice and never loses one.
"""

from . import db, jobs


def commit_then_push(customer: str, amount_cents: int) -> int:
    """Dead in between, it leaves an invoice that nobody works on."""
    with db.transaction() as tx:
        invoice_id = db.add_invoice(tx, customer, amount_cents)
    jobs.invoice_created(invoice_id)
    return invoice_id


def push_then_commit(customer: str, amount_cents: int) -> int:
    """Dead in between, it leaves a job for an invoice that does not exist. A fast worker meets the same job."""
    with db.transaction() as tx:
        invoice_id = db.add_invoice(tx, customer, amount_cents)
        jobs.invoice_created(invoice_id)
    return invoice_id


def outbox(customer: str, amount_cents: int) -> int:
    """The invoice and the wish to enqueue are committed together; the relay does the rest."""
    with db.transaction() as tx:
        invoice_id = db.add_invoice(tx, customer, amount_cents)
        db.post(tx, invoice_id)
    return invoice_id


def outbox_and_relay(customer: str, amount_cents: int) -> int:
    """The same, and the relay runs at once."""
    invoice_id = outbox(customer, amount_cents)
    run_relay()
    return invoice_id


def run_relay() -> None:
    """Enqueues what waits in the outbox, in order. It is marked after it was enqueued, so that none is lost."""
    with db.transaction() as tx:
        for invoice_id in db.waiting(tx):
            jobs.invoice_created(invoice_id)
            db.set_sent(tx, invoice_id)
