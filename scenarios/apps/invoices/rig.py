"""How jobcheck runs the shop, and how a new piece of work is put into it."""

from __future__ import annotations

import jobcheck


def _rig(
    acks: str,
    broker: jobcheck.Redis | jobcheck.RabbitMQ | None = None,
    settle: tuple[str, ...] = (),
    results: str = "",
    effects: dict[str, jobcheck.Rows | jobcheck.Files] | None = None,
) -> jobcheck.Rig:
    more = {} if results in ("", "broker") else {results: jobcheck.redis()}
    return jobcheck.Rig(
        jobcheck.celery("shop.app:app"),
        upstreams={
            "broker": broker or jobcheck.redis(),
            "db": jobcheck.postgres(setup="schema.sql"),
            "payments": jobcheck.provider(idempotency="Idempotency-Key"),
            "accounting": jobcheck.provider(idempotency="Idempotency-Key"),
            "mail": jobcheck.smtp(),
            **more,
        },
        env={
            "BROKER_URL": "{broker.url}",
            "DATABASE_URL": "{db.url}",
            "PAYMENTS_URL": "{payments.base}",
            "ACCOUNTING_URL": "{accounting.base}",
            "SMTP_HOST": "{mail.host}",
            "SMTP_PORT": "{mail.port}",
            "PDF_FOLDER": "{folder}/pdf",
            "SHOP_ACKS": acks,
            **({"RESULT_URL": f"{{{results}.url}}"} if results else {}),
        },
        settle=settle,
        effects=effects or {},
    )


shop = _rig("late")
shop_early_acks = _rig("early")
"""The same shop with Celery's default: a job is settled before it runs."""
shop_on_rabbitmq = _rig("late", jobcheck.rabbitmq())
"""The same shop on a broker that loses nothing."""

RELAY = ("shop.producers:run_relay",)
shop_with_relay = _rig("late", settle=RELAY)
"""The same shop with the relay that a scheduler runs: it comes again after whatever went wrong."""
shop_with_relay_on_rabbitmq = _rig("late", jobcheck.rabbitmq(), settle=RELAY)
shop_with_results = _rig("late", results="broker")
"""The same shop with a result backend, which chords need."""
shop_with_results_on_rabbitmq = _rig("late", jobcheck.rabbitmq(), results="results")

STATUSES = {"status": jobcheck.rows("db", "select id as invoice_id, status from invoices")}
shop_with_statuses = _rig("late", effects=STATUSES)
"""The same shop, where what an invoice has come to at the end is an effect."""
shop_with_statuses_on_rabbitmq = _rig("late", jobcheck.rabbitmq(), effects=STATUSES)


# The functions below run in a child process with the rig's environment; the shop is imported there and not here.


def invoice_row(case: jobcheck.Case) -> int:
    """An invoice and nothing enqueued. What it returns is what the job is called with."""
    from shop import db

    with db.transaction() as tx:
        invoice_id = db.add_invoice(tx, f"customer-{case.number}@example.com", 4990)
    case.owns(invoice=invoice_id)
    return invoice_id


def new_invoice(case: jobcheck.Case) -> None:
    """The whole chain, from the event on."""
    from shop import jobs

    jobs.invoice_created(invoice_row(case))


def new_invoice_naive(case: jobcheck.Case) -> None:
    from shop.variants import charge_and_mail_naive

    charge_and_mail_naive.delay(invoice_row(case))


def new_invoice_marker_before(case: jobcheck.Case) -> None:
    from shop.variants import charge_and_mail_marker_before

    charge_and_mail_marker_before.delay(invoice_row(case))


def new_invoice_marker_after(case: jobcheck.Case) -> None:
    from shop.variants import charge_and_mail_marker_after

    charge_and_mail_marker_after.delay(invoice_row(case))


def new_invoice_lock_without_key(case: jobcheck.Case) -> None:
    from shop.variants import charge_and_mail_lock_without_key

    charge_and_mail_lock_without_key.delay(invoice_row(case))


def new_invoice_idempotent(case: jobcheck.Case) -> None:
    from shop.variants import charge_and_mail_idempotent

    charge_and_mail_idempotent.delay(invoice_row(case))


def new_invoice_locked(case: jobcheck.Case) -> None:
    from shop.variants import charge_and_mail_locked

    charge_and_mail_locked.delay(invoice_row(case))


def new_invoice_check_then_act(case: jobcheck.Case) -> None:
    from shop.at_once import charge_and_mail_check_then_act

    charge_and_mail_check_then_act.delay(invoice_row(case))


def new_invoice_drawn_once(case: jobcheck.Case) -> None:
    from shop.at_once import charge_and_mail_drawn_once

    charge_and_mail_drawn_once.delay(invoice_row(case))


def told_blindly(case: jobcheck.Case) -> None:
    """Two jobs for one invoice: what the last one tells is true."""
    from shop.statuses import tell_blindly

    invoice_id = invoice_row(case)
    for status in ("sent", "paid"):
        tell_blindly.delay(invoice_id, status)


def told_by_version(case: jobcheck.Case) -> None:
    from shop.statuses import tell_by_version

    invoice_id = invoice_row(case)
    for version, status in enumerate(("sent", "reminded", "paid"), 1):
        tell_by_version.delay(invoice_id, status, version)


def charge_claimed(case: jobcheck.Case) -> None:
    from shop.claims import charge_claimed

    charge_claimed.delay(invoice_row(case))


def charge_claimed_with_key(case: jobcheck.Case) -> None:
    from shop.claims import charge_claimed_with_key

    charge_claimed_with_key.delay(invoice_row(case))


def charge_patient(case: jobcheck.Case) -> None:
    from shop.backoff import charge_patient

    charge_patient.delay(invoice_row(case))


def charge_polite(case: jobcheck.Case) -> None:
    from shop.backoff import charge_polite

    charge_polite.delay(invoice_row(case))


def charge_impatient(case: jobcheck.Case) -> None:
    from shop.backoff import charge_impatient

    charge_impatient.delay(invoice_row(case))


def charge_stubborn(case: jobcheck.Case) -> None:
    from shop.backoff import charge_stubborn

    charge_stubborn.delay(invoice_row(case))


def charge_in_step(case: jobcheck.Case) -> None:
    from shop.backoff import charge_in_step

    charge_in_step.delay(invoice_row(case))


def settle_right(case: jobcheck.Case) -> None:
    """A chain of two jobs. Explored with --follow."""
    from shop.chains import settle_right

    settle_right(invoice_row(case))


def settle_wrong(case: jobcheck.Case) -> None:
    from shop.chains import settle_wrong

    settle_wrong(invoice_row(case))


def print_book(case: jobcheck.Case) -> None:
    """A job that starts a chord of three and its body."""
    from shop.chains import print_book

    print_book.delay(invoice_row(case))


def remind(case: jobcheck.Case) -> None:
    """A job whose follow-up comes a little later."""
    from shop.chains import remind

    remind.delay(invoice_row(case))


def create_commit_then_push(case: jobcheck.Case) -> None:
    """As a web request does it: the row and the job. It is this function that is struck, and no worker runs."""
    from shop.producers import commit_then_push

    case.owns(invoice=commit_then_push(f"customer-{case.number}@example.com", 4990))


def create_push_then_commit(case: jobcheck.Case) -> None:
    from shop.producers import push_then_commit

    case.owns(invoice=push_then_commit(f"customer-{case.number}@example.com", 4990))


def create_outbox(case: jobcheck.Case) -> None:
    from shop.producers import outbox

    case.owns(invoice=outbox(f"customer-{case.number}@example.com", 4990))


def create_outbox_and_relay(case: jobcheck.Case) -> None:
    from shop.producers import outbox_and_relay

    case.owns(invoice=outbox_and_relay(f"customer-{case.number}@example.com", 4990))
