"""Jobs that cause other jobs: a chain, a chord, a job that comes later. Each wrong one is wrong in one place.

    settle_right    chain: check_invoice -> charge_with_key       nothing
    settle_wrong    chain: check_invoice -> charge_without_key    killed before its COMMIT or after, it charges twice
    print_book      chord: print_page x3 -> bind_book             nothing in the jobs; see docs/chains.md for the chord
    remind          remind_customer a little later                 nothing

A chord needs a result backend: `RESULT_URL`.
"""

from celery import chain, chord

from . import db, providers
from .app import app


@app.task
def check_invoice(invoice_id: int) -> None:
    """First step: says that the invoice is being worked on. Comes again without harm."""
    with db.transaction() as tx:
        db.set_status(tx, invoice_id, "checked")


@app.task
def charge_with_key(invoice_id: int) -> None:
    """The provider knows the charge by its key: right."""
    with db.transaction() as tx:
        charge_id = providers.charge(db.invoice(tx, invoice_id), key=f"charge:{invoice_id}")
        db.add_charge(tx, invoice_id, charge_id)
        tx.commit()


@app.task
def charge_without_key(invoice_id: int) -> None:
    """Whoever dies after the call calls again."""
    with db.transaction() as tx:
        charge_id = providers.charge(db.invoice(tx, invoice_id))
        db.add_charge(tx, invoice_id, charge_id)
        tx.commit()


def settle_right(invoice_id: int) -> None:
    chain(check_invoice.si(invoice_id), charge_with_key.si(invoice_id)).delay()


def settle_wrong(invoice_id: int) -> None:
    chain(check_invoice.si(invoice_id), charge_without_key.si(invoice_id)).delay()


@app.task(ignore_result=False)
def print_page(invoice_id: int, page: int) -> int:
    """A part of the chord. Claims its page, so that it is printed once."""
    with db.transaction() as tx:
        db.claim(tx, f"page-{page}:{invoice_id}")
    return page


@app.task
def bind_book(pages: list[int], invoice_id: int) -> None:
    """The chord's body: when all pages are there, the customer pays."""
    with db.transaction() as tx:
        providers.charge(db.invoice(tx, invoice_id), key=f"book:{invoice_id}")
        db.claim(tx, f"book:{invoice_id}")


@app.task
def print_book(invoice_id: int) -> None:
    """Starts the chord."""
    chord([print_page.si(invoice_id, page) for page in (1, 2, 3)], bind_book.s(invoice_id)).delay()


@app.task
def remind_customer(invoice_id: int) -> None:
    with db.transaction() as tx:
        invoice = db.invoice(tx, invoice_id)
    providers.send_mail(invoice)


@app.task
def remind(invoice_id: int) -> None:
    """Not now: a little later."""
    remind_customer.apply_async((invoice_id,), countdown=0.3)
