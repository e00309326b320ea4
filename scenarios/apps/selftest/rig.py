"""How jobcheck runs the club, and how a new member is put into it."""

from __future__ import annotations

from collections.abc import Callable

import jobcheck


def _rig(
    payments: jobcheck.Provider,
    *,
    timeout: int = 10,
    settle: tuple[str, ...] = (),
    processes: dict[str, str] | None = None,
) -> jobcheck.Rig:
    return jobcheck.Rig(
        jobcheck.celery("club.app:app"),
        upstreams={
            "broker": jobcheck.redis(),
            "cache": jobcheck.redis(),
            "db": jobcheck.postgres(setup="schema.sql"),
            "payments": payments,
            "mail": jobcheck.smtp(),
        },
        env={
            "BROKER_URL": "{broker.url}",
            "CACHE_URL": "{cache.url}",
            "DATABASE_URL": "{db.url}",
            "PAYMENTS_URL": "{payments.base}",
            "SMTP_HOST": "{mail.host}",
            "SMTP_PORT": "{mail.port}",
            "STATEMENTS": "{folder}/statements",
            "TIMEOUT": str(timeout),
        },
        effects={
            "entries": jobcheck.rows("db", "select member_id, line from entries"),
            "payouts": jobcheck.rows("db", "select member_id, cents from payouts"),
            # A row for each ten points: an increment that was made twice is two rows, not one with another number.
            "points": jobcheck.rows(
                "db", "select id as member_id, generate_series(10, points, 10) as points from members"
            ),
            "dues": jobcheck.rows("db", "select id as member_id, dues from members"),
            "statements": jobcheck.files("{folder}/statements"),
        },
        settle=settle,
        processes=processes or {},
    )


club = _rig(jobcheck.provider(idempotency="Idempotency-Key"))
club_with_others = _rig(
    jobcheck.provider(
        idempotency="Idempotency-Key",
        webhook=jobcheck.webhook(on="POST /orders", to="{web.url}/", after=0.05),
    ),
    settle=("club.right_around:run_relay",),
    processes={"web": "python -m club.web {web.host} {web.port}"},
)
"""The club with its relay, and with its web server, which the provider calls back."""
club_with_patience = _rig(jobcheck.provider(idempotency="Idempotency-Key"), timeout=3600)
"""For a faster clock: a call that takes 0.1 s takes 10 s of the club's own time."""

# The functions below run in a child process with the rig's environment; the club is imported there and not here.


def member(case: jobcheck.Case) -> int:
    """A member, and nothing enqueued. What it returns is what a job is called with."""
    from club import db

    with db.transaction() as tx:
        member_id = db.add_member(tx, f"member-{case.number}@example.com", "2026-05", 2500)
    case.owns(member=member_id)
    return member_id


def send_mails() -> None:
    """Sends what waits to be sent, in the queue and in the database, as a cron job of the club does."""
    from club import db, world

    with db.transaction() as tx, world.queue() as queue:
        while (number := queue.lpop("mails")) is not None:
            world.mail(db.member(tx, int(number)), "Welcome")
        while (member_id := db.take_mail(tx)) is not None:
            world.mail(db.member(tx, member_id), "Welcome")
            tx.commit()


IN_STEPS = [("asked", 2), ("paid", 3)]
"""What becomes of a member's dues, and its version: a job for each."""


def __getattr__(name: str) -> Callable[[jobcheck.Case], None]:
    """`enqueue_wrong_no_key`, and the like for every job: a member, and the job enqueued. `create_wrong_row_then_job`,
    and the like for what stores a member and enqueues by itself."""
    verb, _, rest = name.partition("_")
    kind, _, job = rest.partition("_")
    if verb not in ("enqueue", "create") or kind not in ("wrong", "right") or not job:
        raise AttributeError(name)

    def found() -> Callable[..., int]:
        from importlib import import_module

        modules = [import_module(f"club.{kind}{about}") for about in ("", "_around", "_in_trouble")]
        return next(getattr(module, job) for module in modules if hasattr(module, job))

    def enqueue(case: jobcheck.Case) -> None:
        task, member_id = found(), member(case)
        for arguments in IN_STEPS if job.endswith("_one_wins") else [()]:
            task.delay(member_id, *arguments)

    def create(case: jobcheck.Case) -> None:
        case.owns(member=found()(f"member-{case.number}@example.com"))

    return enqueue if verb == "enqueue" else create
