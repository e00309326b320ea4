"""The club's database: each job opens one connection, and what it does up to a commit is one transaction."""

from dataclasses import dataclass

import psycopg

from . import settings


@dataclass(frozen=True)
class Member:
    id: int
    email: str
    period: str
    """What is billed: `2026-05`."""


LINES = 3
"""Lines of a member's bill."""

FEW = 2
"""Lines of a short bill."""


def transaction() -> psycopg.Connection:
    """For `with`: commits at the end, rolls back on an error, and closes the connection."""
    return psycopg.connect(settings.DATABASE_URL, connect_timeout=settings.TIMEOUT)


_kept: list[psycopg.Connection] = []


def kept() -> psycopg.Connection:
    """The connection that this process keeps, opened when it is first asked for."""
    if not _kept:
        _kept.append(transaction())
    return _kept[0]


def kept_while_it_lives() -> psycopg.Connection:
    """The same, and another one when that one is broken."""
    if _kept and _kept[0].closed:
        _kept.clear()
    return kept()


def add_member(tx: psycopg.Connection, email: str, period: str, credit: int) -> int:
    """A member with a credit of so many cents. Returns the member's id."""
    member_id = tx.execute(
        "insert into members (email, period) values (%s, %s) returning id", (email, period)
    ).fetchone()[0]
    tx.execute("insert into credits (member_id, cents) values (%s, %s)", (member_id, credit))
    return member_id


def member(tx: psycopg.Connection, member_id: int) -> Member:
    return Member(*tx.execute("select id, email, period from members where id = %s", (member_id,)).fetchone())


def lock_member(tx: psycopg.Connection, member_id: int) -> Member:
    """The member, whom no other job can lock until this transaction ends, however it ends."""
    sql = "select id, email, period from members where id = %s for update"
    return Member(*tx.execute(sql, (member_id,)).fetchone())


def dues(tx: psycopg.Connection, member_id: int) -> str:
    """`open` or `paid`."""
    return str(tx.execute("select dues from members where id = %s", (member_id,)).fetchone()[0])


def version(tx: psycopg.Connection, member_id: int) -> int:
    """Counts the changes of the member's dues."""
    return int(tx.execute("select version from members where id = %s", (member_id,)).fetchone()[0])


def dues_and_version(tx: psycopg.Connection, member_id: int) -> tuple[str, int]:
    """Both, as they were at one moment."""
    return tx.execute("select dues, version from members where id = %s", (member_id,)).fetchone()


def pay_dues(tx: psycopg.Connection, member_id: int, version: int) -> bool:
    """Marks the dues as paid, unless somebody has changed them since `version`; says whether it did."""
    sql = "update members set dues = 'paid', version = version + 1 where id = %s and version = %s"
    return tx.execute(sql, (member_id, version)).rowcount == 1


def set_dues(tx: psycopg.Connection, member_id: int, dues: str) -> None:
    tx.execute("update members set dues = %s where id = %s", (dues, member_id))


def set_dues_of_version(tx: psycopg.Connection, member_id: int, dues: str, version: int) -> None:
    """The same, unless what is there is newer."""
    sql = "update members set dues = %s, version = %s where id = %s and version < %s"
    tx.execute(sql, (dues, version, member_id, version))


def is_done(tx: psycopg.Connection, key: str) -> bool:
    """Whether the effect `key` has its marker."""
    return tx.execute("select 1 from job_effects where key = %s", (key,)).fetchone() is not None


def claim(tx: psycopg.Connection, key: str) -> bool:
    """Sets the marker of the effect `key` unless it is there already, and says whether it did.

    Until the transaction ends, another job that claims the same key waits here.
    """
    return tx.execute("insert into job_effects (key) values (%s) on conflict do nothing", (key,)).rowcount == 1


def call_key(tx: psycopg.Connection, name: str) -> str:
    """The idempotency key of the call `name`: drawn once, the same ever after. Commits."""
    tx.execute("insert into call_keys (name) values (%s) on conflict do nothing", (name,))
    tx.commit()
    return str(tx.execute("select key from call_keys where name = %s", (name,)).fetchone()[0])


def add_entry(tx: psycopg.Connection, member_id: int, line: int) -> None:
    tx.execute("insert into entries (member_id, line) values (%s, %s)", (member_id, line))


def has_entry(tx: psycopg.Connection, member_id: int) -> bool:
    return tx.execute("select 1 from entries where member_id = %s", (member_id,)).fetchone() is not None


def add_points(tx: psycopg.Connection, member_id: int) -> None:
    tx.execute("update members set points = points + 10 where id = %s", (member_id,))


def lines_booked(tx: psycopg.Connection, member_id: int) -> int:
    """How far the member's batch is."""
    row = tx.execute("select lines from checkpoints where member_id = %s", (member_id,)).fetchone()
    return row[0] if row else 0


def set_lines_booked(tx: psycopg.Connection, member_id: int, lines: int) -> None:
    tx.execute(
        "insert into checkpoints (member_id, lines) values (%s, %s) "
        "on conflict (member_id) do update set lines = excluded.lines",
        (member_id, lines),
    )


def take_credits(tx: psycopg.Connection, member_id: int) -> list[int]:
    """Removes the member's credits and gives their cents."""
    rows = tx.execute("delete from credits where member_id = %s returning cents", (member_id,)).fetchall()
    return [cents for (cents,) in rows]


def add_payout(tx: psycopg.Connection, member_id: int, cents: int) -> None:
    tx.execute("insert into payouts (member_id, cents) values (%s, %s)", (member_id, cents))


def has_receipt(tx: psycopg.Connection, member_id: int) -> bool:
    return tx.execute("select 1 from receipts where member_id = %s", (member_id,)).fetchone() is not None


def add_receipt(tx: psycopg.Connection, member_id: int) -> int:
    """The id of the member's receipt, which is made unless it is there already."""
    tx.execute("insert into receipts (member_id) values (%s) on conflict do nothing", (member_id,))
    return tx.execute("select id from receipts where member_id = %s", (member_id,)).fetchone()[0]


def post(tx: psycopg.Connection, receipt_id: int) -> None:
    """Puts the receipt into the outbox."""
    tx.execute("insert into outbox (receipt_id) values (%s)", (receipt_id,))


def waiting(tx: psycopg.Connection, member_id: int) -> list[int]:
    """Receipts of the member that wait in the outbox."""
    rows = tx.execute(
        "select receipt_id from outbox join receipts r on r.id = receipt_id where member_id = %s and not sent",
        (member_id,),
    ).fetchall()
    return [receipt_id for (receipt_id,) in rows]


def set_sent(tx: psycopg.Connection, receipt_id: int) -> None:
    tx.execute("update outbox set sent = true where receipt_id = %s", (receipt_id,))


def stored_key(tx: psycopg.Connection, member_id: int) -> str | None:
    """The first key that was stored for the member's charge."""
    row = tx.execute("select key from charge_keys where member_id = %s order by id limit 1", (member_id,)).fetchone()
    return row[0] if row else None


def store_key(tx: psycopg.Connection, member_id: int, key: str) -> None:
    tx.execute("insert into charge_keys (member_id, key) values (%s, %s)", (member_id, key))


def key_once(tx: psycopg.Connection, member_id: int, key: str) -> str:
    """Stores the key unless the member has one, and gives the one that the member has."""
    lock_member(tx, member_id)
    if (stored := stored_key(tx, member_id)) is not None:
        return stored
    store_key(tx, member_id, key)
    return key


def write_mail(tx: psycopg.Connection, member_id: int) -> None:
    """A mail to the member, to be sent later."""
    tx.execute("insert into mails (member_id) values (%s)", (member_id,))


def take_mail(tx: psycopg.Connection) -> int | None:
    """The member whose mail has waited longest; nobody else sends it until this transaction ends."""
    row = tx.execute(
        "delete from mails where id = (select min(id) from mails) returning member_id",
    ).fetchone()
    return row[0] if row else None


def wish(tx: psycopg.Connection, member_id: int) -> None:
    """Somebody is to enqueue the member's welcome."""
    tx.execute("insert into wishes (member_id) values (%s)", (member_id,))


def wished(tx: psycopg.Connection) -> list[int]:
    """Members whose welcome is still to be enqueued, in order."""
    rows = tx.execute("select member_id from wishes where not fulfilled order by member_id").fetchall()
    return [member_id for (member_id,) in rows]


def set_fulfilled(tx: psycopg.Connection, member_id: int) -> None:
    tx.execute("update wishes set fulfilled = true where member_id = %s", (member_id,))


class SomebodyElse(Exception):
    """Another job is at it; come again."""


CLAIM_SECONDS = 150
CLAIM_WAITS = {"autoretry_for": (Exception,), "retry_backoff": 60, "retry_jitter": False, "max_retries": 2}
"""Retries after 60 and 120 s: the last one comes 30 s after the claim has run out."""


def claim_for_a_while(tx: psycopg.Connection, member_id: int) -> None:
    """Raises SomebodyElse while an earlier claim lasts."""
    sql = (
        "insert into claims (member_id, until) values (%s, now() + make_interval(secs => %s)) "
        "on conflict (member_id) do update set until = excluded.until where claims.until < now()"
    )
    if tx.execute(sql, (member_id, CLAIM_SECONDS)).rowcount == 0:
        raise SomebodyElse(f"member {member_id}")
