"""The provider calls back: the app's own web process takes it, and enqueues a job that belongs to the case."""

from __future__ import annotations

from pathlib import Path

import pytest
import stripe

from jobcheck.effects.webhooks import signature

from . import bad_day

pytestmark = pytest.mark.timeout(300)

CHARGES = """
    import urllib.request, json, redis
    body = json.dumps({"key": key}).encode()
    call = urllib.request.Request(os.environ["PAY"] + "/charges", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(call).read()
    redis.from_url(os.environ["BROKER_URL"]).set(key, "charged")
    jobcheck.mark("done", key)

@app.task
def paid(key):
    jobcheck.mark("paid", key)
"""
WEB = """
import json, os, redis, sys, tiny
from wsgiref.simple_server import make_server

seen, refusals = set(), [int(sys.argv[3])]

def hooks(environ, start):
    event = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
    if refusals[0]:
        refusals[0] -= 1
        start("503 Busy", [])
        return [b""]
    key, kind = event["data"]["key"], sys.argv[4]
    if kind == "hasty" and not redis.from_url(os.environ["BROKER_URL"]).exists(key):
        start("204 Of nobody we know", [])
        return [b""]
    if kind in ("naive", "hasty") or event["id"] not in seen:
        tiny.paid.delay(key)
    seen.add(event["id"])
    start("204 No Content", [])
    return [b""]

make_server(sys.argv[1], int(sys.argv[2]), hooks).serve_forever()
"""
RIG = """
import jobcheck
tiny = jobcheck.Rig(
    jobcheck.celery("tiny:app"),
    upstreams={{
        "broker": jobcheck.redis(),
        "pay": jobcheck.provider(webhook=jobcheck.webhook(on="POST /charges", to="{{web.url}}/hooks", {how})),
    }},
    env={{"BROKER_URL": "{{broker.url}}", "PAY": "{{pay.base}}"}},
    processes={{"web": "python web.py {{web.host}} {{web.port}} {refusals} {kind}"}},
)
def enqueue(case):
    import tiny
    key = f"key-{{case.number}}"
    case.owns(key=key)
    tiny.work.delay(key)
"""


@pytest.mark.parametrize(
    ("how", "kind", "refusals", "paid"),
    [
        ("after=0.2", "naive", 0, 1),
        ("times=2", "naive", 0, 2),
        ("times=2", "right", 0, 1),
        ("early=True", "naive", 0, 1),
        ("times=1", "naive", 2, 1),
    ],
)
def test_callbacks_come_and_their_jobs_belong_to_the_case(
    tmp_path: Path, how: str, kind: str, refusals: int, paid: int
) -> None:
    text = RIG.format(how=how, kind=kind, refusals=refusals)
    folder = bad_day.project(tmp_path / "app", CHARGES, text=text)
    (folder / "web.py").write_text(WEB)
    ended = bad_day.jobcheck(folder, "probe", "enqueue")
    ended.says(0, f"{paid} x mark paid", "1 x mark done", "1 x pay POST /charges")


EXPLORE = ("explore", "enqueue", "--faults", "webhook", "--expect", "exactly_once: mark paid")


@pytest.mark.parametrize(
    ("kind", "finding", "counted"),
    [
        ("naive", "mark paid happens again when the provider calls back twice", "2 ok, 1 duplicated"),
        ("hasty", "mark paid is lost when the provider calls back before it answers", "1 ok, 1 duplicated"),
    ],
)
def test_an_exploration_finds_what_bears_no_other_callback(
    tmp_path: Path, kind: str, finding: str, counted: str
) -> None:
    folder = bad_day.project(tmp_path / "app", CHARGES, text=RIG.format(how="after=0.1", kind=kind, refusals=0))
    (folder / "web.py").write_text(WEB)
    ended = bad_day.jobcheck(folder, *EXPLORE)
    ended.says(1, finding, counted, "3 strikes, 3 fired", "keep the id of the event where its effect is kept")


def test_a_right_one_bears_callbacks_of_each_kind(tmp_path: Path) -> None:
    """Of two events, which can come in the other order too."""
    text = RIG.format(how="after=0.1", kind="right", refusals=0)
    one = 'jobcheck.webhook(on="POST /charges", to="{web.url}/hooks", after=0.1)'
    other = one.replace("after=0.1", 'body={"id": "settled {id}", "data": {"key": "{key}"}}')
    assert one in text
    text = text.replace(one, f"[{one}, {other}]")
    folder = bad_day.project(tmp_path / "app", CHARGES, text=text)
    (folder / "web.py").write_text(WEB)
    bad_day.jobcheck(folder, *EXPLORE).says(0, "4 strikes, 4 fired: 4 ok")


def test_a_callback_that_nobody_takes_is_told(tmp_path: Path) -> None:
    folder = bad_day.project(tmp_path / "app", CHARGES, text=RIG.format(how="tries=2", kind="right", refusals=99))
    (folder / "web.py").write_text(WEB)
    ended = bad_day.jobcheck(folder, "explore", *bad_day.QUEUE)
    ended.says(2, "the callback of POST /charges was given up after 2 tries", "answered 503")


STRIPE = """
    import stripe
    stripe.api_key = "sk_test_x"
    stripe.PaymentIntent.create(amount=4990, currency="eur", metadata={"key": key}, idempotency_key=key)
    jobcheck.mark("done", key)

@app.task
def paid(key):
    jobcheck.mark("paid", key)
"""
STRIPES_WEB = """
import stripe, sys, tiny
from wsgiref.simple_server import make_server

seen = set()

def hooks(environ, start):
    body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    event = stripe.Webhook.construct_event(body, environ["HTTP_STRIPE_SIGNATURE"], "whsec_test")
    if event.id not in seen:
        tiny.paid.delay(event.data.object.metadata["key"])
    seen.add(event.id)
    start("200 OK", [])
    return [b"{}"]

make_server(sys.argv[1], int(sys.argv[2]), hooks).serve_forever()
"""


def test_stripe_calls_back_and_its_sdk_verifies(tmp_path: Path) -> None:
    text = RIG.format(how="", kind="", refusals=0)
    ours = 'jobcheck.provider(webhook=jobcheck.webhook(on="POST /charges", to="{web.url}/hooks", ))'
    assert ours in text
    text = text.replace(ours, 'jobcheck.stripe(webhook="{web.url}/stripe", secret="whsec_test")')
    folder = bad_day.project(tmp_path / "app", STRIPE, text=text)
    (folder / "web.py").write_text(STRIPES_WEB)
    bad_day.jobcheck(folder, *EXPLORE).says(0, "3 strikes, 3 fired: 3 ok")


def test_stripes_own_sdk_takes_the_signature() -> None:
    body = b'{"id": "evt_1", "object": "event", "type": "payment_intent.succeeded", "data": {"object": {}}}'
    from jobcheck.clock import REAL

    told = signature(body, "whsec_of_the_test", int(REAL.wall()))
    event = stripe.Webhook.construct_event(body, told, "whsec_of_the_test")
    assert event.type == "payment_intent.succeeded"
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.Webhook.construct_event(body + b" ", told, "whsec_of_the_test")
