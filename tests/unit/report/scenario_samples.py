"""Scenario dicts as the runner makes them, by hand: broken, right, not exercised, stopped, and one that never ran."""

from __future__ import annotations

from typing import Any

from jobcheck.history.report import Report

from .samples import ENVIRONMENT, HOSTILE

CHARGES = "exactly once: payments POST /charges"
MAIL = "at least once: mail"


def act(at: float, fault: int, text: str, outcome: str = "", met: bool = False) -> dict[str, Any]:
    return {"at": at, "text": text, "outcome": outcome, "met": met, "fault": fault}


def line(at: float, lane: str, upstream: str, text: str, kind: str = "message", way: str = "out") -> dict[str, Any]:
    return {"at": at, "lane": lane, "upstream": upstream, "way": way, "text": text, "kind": kind}


def delivery(worker: str, at: float, fate: str) -> dict[str, Any]:
    return {"worker": worker, "at": at, "fate": fate, "passed": ["delivery", "reserve"]}


def duplicated(case: str, more: int = 0) -> dict[str, Any]:
    """A case that was charged twice, as its worker was killed between the charge and the note of it."""
    body = 'POST /charges {"invoice": 10020020, "amount": 4990}'
    story = [
        line(0.412, "w1", "", "delivery of job d47d0b84", "delivery", "in"),
        line(0.414, "w1", "broker", "ZADD unacked_index 1795995157.11 9e80e291"),
        line(0.414, "w1", "broker", "EXEC ZADD unacked_index 1795995157.11 9e80e291; HSET unacked 9e80e291"),
        line(0.445, "w1", "payments", body),
        line(0.446, "w1", "payments", "killed after payments POST /charges", "strike", "in"),
        line(2.344, "w2", "", "delivery of job d47d0b84", "delivery", "in"),
        line(2.415, "w2", "payments", body),
        *(line(2.42 + number / 100, "w2", "db", f"select {number}") for number in range(more)),
        line(2.473, "w2", "mail", "mail to customer-100006@example.com: Your invoice 10020020"),
    ]
    effects = [(0.446, "payments POST /charges"), (2.416, "payments POST /charges"), (2.475, "mail")]
    return {
        "id": "b8a716",
        "case": case,
        "ids": {"invoice": "10020020"},
        "verdict": "duplicated",
        "layer": "handler",
        "filed": "",
        "broken": ["payments POST /charges: 2 times, expected 1"],
        "effects": [{"at": at, "name": name, "applied": True, "note": ""} for at, name in effects],
        "jobs": [
            {
                "id": "d47d0b84-0c6f",
                "deliveries": [delivery("w1", 0.412, "died"), delivery("w2", 2.344, "ended")],
                "copies": 0,
            }
        ],
        "story": story,
    }


def lost() -> dict[str, Any]:
    """A case that Redis and Celery lost between them, by a kill of the clock's."""
    return {
        **duplicated("case-100005"),
        "id": "c0ffee",
        "ids": {"invoice": "10020019"},
        "verdict": "lost",
        "layer": "transport",
        "broken": ["payments POST /charges: never, expected 1", "mail: never, expected 1"],
        "effects": [],
        "jobs": [{"id": "583b4b48-2abe", "deliveries": [delivery("w2", 2.366, "died")], "copies": 0}],
        "story": [line(2.366, "w2", "", "delivery of job 583b4b48", "delivery", "in")],
    }


def broken() -> dict[str, Any]:
    """A naive job under kills, copies, a bad network and an outage; two of the faults met nobody."""
    return {**_ran(), **_judged()}


def _ran() -> dict[str, Any]:
    return {
        "title": "The naive job is red",
        "file": "scenarios/naive.yaml",
        "rig": "apps/invoices/rig.py:shop",
        "system": "celery-redis",
        "seed": 7,
        "guarantee": "at-least-once",
        "settings": "late ack: promises at least once",
        "workers": 2,
        "versions": {},
        "engine": "embedded in the tap, seed 7",
        "workload": {
            "enqueue": "new_invoice_naive",
            "count": 16,
            "enqueued": 16,
            "rate": 8.0,
            "achieved": 5.33,
            "late": 1.02,
            "seconds": 3.0,
        },
        "jobs": {"seen": 16, "ended": 15, "deliveries": 19},
        "contracts": [CHARGES, MAIL],
        "aborted": False,
        "healed_at": 3.306,
        "recovered": 0.157,
        "seconds": 3.479,
        "actions": [
            act(0.446, 0, "kill any (tree) after payments POST /charges", "1 job(s) were running", True),
            act(0.502, 3, "latency latency=10 jitter=5 downstream on db of workers"),
            act(1.001, 4, "payments is out of order (503)"),
            act(1.301, 3, "latency-4 off db", "7 message(s) of jobs met it", True),
            act(1.301, 4, "payments works again", "no job met it"),
            act(2.395, 1, "kill w2 (tree), back after 0.5 s", "1 job(s) were running", True),
            act(2.395, 1, "kill w2 (tree), back after 0.5 s", "w2 was down"),
            act(2.6, 1, "kill w1 (tree), back after 0.5 s", "it was idle"),
            act(2.721, 2, "duplicate delivery 8 at once", "put on the broker again"),
            act(3.306, 5, "kill any (child) before mail QUIT", "the point was never reached"),
        ],
        "notes": ["leases of workers that were gone were rewound; the user's own of 3600 s was left as it is"],
        "reproduce": "jobcheck run scenarios/naive.yaml --seed 7",
        "series": {"at": [0.5, 1.0, 1.5], "cases": [4, 8, 13], "jobs": [4, 8, 13], "ended": [2, 2, 9]},
    }


def _judged() -> dict[str, Any]:
    return {
        "counts": {
            "attempted": 16,
            "acknowledged": 16,
            "ok": 13,
            "lost": 1,
            "failed_visibly": 0,
            "duplicated": 2,
            "unexpected": 0,
            "recovered": 0,
            "vanished": 0,
        },
        "counts_text": "16 attempted, 16 acknowledged: 13 ok, 1 lost, 2 duplicated",
        "unfinished": 0,
        "expectations": [
            {
                "text": CHARGES,
                "line": 11,
                "held": False,
                "detail": "2 case(s), such as payments POST /charges: 2 times, expected 1",
            },
            {"text": MAIL, "line": 12, "held": True, "detail": ""},
            {"text": "none_lost", "line": 13, "held": False, "detail": "1 lost"},
        ],
        "faults": [
            {"text": "kill tree after payments POST /charges", "line": 5, "done": 1, "met": True},
            {"text": "kill tree", "line": 6, "done": 3, "met": True},
            {"text": "duplicate 20% at once", "line": 7, "done": 1, "met": True},
            {"text": "toxic latency latency=10 jitter=5 downstream on db", "line": 8, "done": 2, "met": True},
            {"text": "outage of payments, 503", "line": 9, "done": 2, "met": False},
            {"text": "kill child before mail QUIT", "line": 10, "done": 1, "met": False},
        ],
        "providers": [
            {
                "name": "payments",
                "counted": 18,
                "replayed": 2,
                "refused": {"503": 4, "429 beyond capacity": 1},
                "waited": 3,
                "longest_wait": 0.84,
            },
            {"name": "accounting", "counted": 16, "replayed": 0, "refused": {}, "waited": 0, "longest_wait": 0.0},
        ],
        "losses": {"handler": 2, "settings": 0, "transport": 1},
        "bad": [lost(), duplicated("case-100010", more=4), duplicated("case-100006")],
        "bad_left_out": 0,
        "orphans": [],
        "enqueue_errors": [],
        "uncontracted": [],
        "verdict": "broken",
        "problem": "not exercised: outage of payments, 503 never met a running job; "
        "not exercised: kill child before mail QUIT never met a running job",
        "owner_problems": [],
    }


def held() -> dict[str, Any]:
    """A right app: what was lost is the transport's, and a deploy was rolled back."""
    return {
        **broken(),
        "title": "Invoices survive killed workers and a deploy",
        "file": "scenarios/kill workers.yaml",
        "versions": {"v1": "apps/invoices", "v2": "apps/invoices_v2/right"},
        "counts": {**broken()["counts"], "ok": 14, "lost": 2, "duplicated": 0},
        "counts_text": "16 attempted, 16 acknowledged: 14 ok, 2 lost",
        "expectations": [
            {"text": CHARGES, "line": 11, "held": True, "detail": ""},
            {"text": "recovered within 60 s", "line": 14, "held": True, "detail": "quiet 0.2 s after the healing"},
        ],
        "faults": [
            {"text": "kill tree", "line": 6, "done": 2, "met": True},
            {"text": "deploy v2", "line": 7, "done": 4, "met": True},
        ],
        "actions": [
            act(1.2, 0, "kill w2 (tree), back after 0.5 s", "1 job(s) were running", True),
            act(1.5, 1, "enqueue 50% of the cases with v2"),
            act(1.9, 1, "deploy v2 to w1", "it was idle"),
            act(2.5, 1, "enqueue 100% of the cases with v1"),
            act(2.8, 1, "deploy v1 to w1", "1 job(s) were running", True),
        ],
        "losses": {"handler": 0, "settings": 0, "transport": 2},
        "bad": [lost(), lost()],
        "verdict": "ok",
        "problem": "",
        "reproduce": "jobcheck run 'scenarios/kill workers.yaml' --seed 7",
    }


def idle() -> dict[str, Any]:
    """Everything went well, and a fault met nobody."""
    return {
        **held(),
        "title": "A kill that never happened",
        "faults": [{"text": "kill tree before payments POST /refunds", "line": 6, "done": 1, "met": False}],
        "actions": [act(3.3, 0, "kill any (tree) before payments POST /refunds", "the point was never reached")],
        "bad": [],
        "verdict": "unknown",
        "problem": "not exercised: kill tree before payments POST /refunds never met a running job",
    }


def failed() -> dict[str, Any]:
    """A scenario that could not be run at all: most keys are missing."""
    return {
        "title": "No broker",
        "file": "scenarios/none.yaml",
        "rig": "rig.py:shop",
        "system": "celery-redis",
        "seed": 7,
        "verdict": "unknown",
        "problem": "the broker could not be started: no redis-server on this machine",
        "reproduce": "jobcheck run scenarios/none.yaml --seed 7",
    }


def stopped() -> dict[str, Any]:
    """Ctrl-C."""
    return {
        **held(),
        "title": "Stopped",
        "aborted": True,
        "recovered": None,
        "unfinished": 3,
        "verdict": "unknown",
        "problem": "stopped after 1.2 s",
        "faults": [{**fault, "met": fault["text"] != "deploy v2"} for fault in held()["faults"]],
    }


def hostile() -> dict[str, Any]:
    """Every text is an attack, and every key of the second half has a value of another kind."""
    bad = {**duplicated(HOSTILE), "verdict": HOSTILE, "layer": HOSTILE, "broken": [HOSTILE], "ids": {HOSTILE: HOSTILE}}
    bad["story"] = [line(0.1, HOSTILE, HOSTILE, HOSTILE, kind) for kind in ("message", "strike", "delivery", HOSTILE)]
    bad["effects"] = [{"at": 0.2, "name": HOSTILE, "applied": True, "note": HOSTILE}]
    return {
        **broken(),
        **dict.fromkeys(("title", "file", "rig", "system", "guarantee", "settings", "engine", "problem"), HOSTILE),
        "reproduce": HOSTILE,
        "versions": {HOSTILE: HOSTILE},
        "expectations": [{"text": HOSTILE, "line": 1, "held": held, "detail": HOSTILE} for held in (True, False, None)],
        "faults": [{"text": f"{kind} {HOSTILE}", "line": 1, "done": 1, "met": False} for kind in ("kill", "toxic", "")],
        "actions": [act(0.1 * number, number % 3, HOSTILE, HOSTILE) for number in range(9)],
        "bad": [bad],
        "notes": [HOSTILE],
        "orphans": [HOSTILE],
        "enqueue_errors": [HOSTILE],
        "owner_problems": [HOSTILE],
        "uncontracted": [HOSTILE],
    }


def crooked() -> dict[str, Any]:
    """Every key has a value of a kind that it should not have."""
    return {key: 3 if isinstance(value, str | list | dict) else "x" for key, value in broken().items()}


def report(*scenarios: dict[str, Any]) -> Report:
    """A run of these."""
    verdicts = [scenario.get("verdict") for scenario in scenarios]
    verdict = next((word for word in ("broken", "unknown") if word in verdicts), "ok")
    return Report(
        command="jobcheck run scenarios/",
        seed=7,
        verdict=verdict,
        environment=ENVIRONMENT,
        scenarios=scenarios,
        started="2026-11-29T23:32:32Z",
        seconds=23.8,
        run="20261129-233232-scenarios",
    )
