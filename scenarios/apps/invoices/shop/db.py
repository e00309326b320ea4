"""The shop's database: each job opens one connection, and the connection is one transaction."""

from dataclasses import dataclass

import psycopg

from . import settings


@dataclass(frozen=True)
class Invoice:
    id: int
    customer: str
    amount_cents: int


def transaction() -> psycopg.Connection:
    """For `with`: commits at the end, rolls back on an error, and closes the connection."""
    return psycopg.connect(settings.DATABASE_URL, connect_timeout=settings.TIMEOUT)


def add_invoice(tx: psycopg.Connection, customer: str, amount_cents: int) -> int:
    row = tx.execute(
        "insert into invoices (customer, amount_cents) values (%s, %s) returning id", (customer, amount_cents)
    ).fetchone()
    return row[0]


def invoice(tx: psycopg.Connection, invoice_id: int) -> Invoice:
    row = tx.execute("select id, customer, amount_cents from invoices where id = %s", (invoice_id,)).fetchone()
    if row is None:
        raise LookupError(f"no invoice {invoice_id}")
    return Invoice(*row)


def set_status(tx: psycopg.Connection, invoice_id: int, status: str) -> None:
    tx.execute("update invoices set status = %s where id = %s", (status, invoice_id))


def set_status_of_version(tx: psycopg.Connection, invoice_id: int, status: str, version: int) -> None:
    """Sets the status, unless a later one is there already."""
    tx.execute(
        "update invoices set status = %s, version = %s where id = %s and version < %s",
        (status, version, invoice_id, version),
    )


def add_charge(tx: psycopg.Connection, invoice_id: int, provider_id: str) -> None:
    tx.execute("insert into charges (invoice_id, provider_id) values (%s, %s)", (invoice_id, provider_id))


def is_done(tx: psycopg.Connection, key: str) -> bool:
    """Whether the effect `key` has its marker."""
    return tx.execute("select 1 from job_effects where key = %s", (key,)).fetchone() is not None


def mark_done(tx: psycopg.Connection, key: str) -> None:
    """Sets the marker of the effect `key`. Raises psycopg.errors.UniqueViolation when it is there already."""
    tx.execute("insert into job_effects (key) values (%s)", (key,))


def claim(tx: psycopg.Connection, key: str) -> bool:
    """Sets the marker of the effect `key` unless it is there already, and says whether it did.

    Until the transaction ends, another job that claims the same key waits here.
    """
    return tx.execute("insert into job_effects (key) values (%s) on conflict do nothing", (key,)).rowcount == 1


def claim_for(tx: psycopg.Connection, invoice_id: int, minutes: int) -> bool:
    """Claims the invoice, unless somebody did so less than these minutes ago, and says whether it did."""
    sql = (
        "insert into claims (invoice_id) values (%s) on conflict (invoice_id) do update set claimed_at = now() "
        "where claims.claimed_at < now() - make_interval(mins => %s)"
    )
    return tx.execute(sql, (invoice_id, minutes)).rowcount == 1


def charge_key(tx: psycopg.Connection, invoice_id: int) -> str | None:
    """The idempotency key that was drawn for the invoice's charge, if there is one: the first."""
    sql = "select key from charge_keys where invoice_id = %s order by id limit 1"
    row = tx.execute(sql, (invoice_id,)).fetchone()
    return row[0] if row else None


def set_charge_key(tx: psycopg.Connection, invoice_id: int, key: str) -> None:
    tx.execute("insert into charge_keys (invoice_id, key) values (%s, %s)", (invoice_id, key))


def draw_charge_key(tx: psycopg.Connection, invoice_id: int, key: str) -> None:
    """Stores the key unless the invoice has one, also when another job does the same at the moment."""
    tx.execute("select from invoices where id = %s for update", (invoice_id,))
    if charge_key(tx, invoice_id) is None:
        set_charge_key(tx, invoice_id, key)


def post(tx: psycopg.Connection, invoice_id: int) -> None:
    """Puts the invoice into the outbox."""
    tx.execute("insert into outbox (invoice_id) values (%s)", (invoice_id,))


def waiting(tx: psycopg.Connection) -> list[int]:
    """The invoices in the outbox that were not sent; those that another relay has at the moment are left out."""
    sql = "select invoice_id from outbox where not sent order by id for update skip locked"
    return [invoice_id for (invoice_id,) in tx.execute(sql).fetchall()]


def set_sent(tx: psycopg.Connection, invoice_id: int) -> None:
    tx.execute("update outbox set sent = true where invoice_id = %s", (invoice_id,))
