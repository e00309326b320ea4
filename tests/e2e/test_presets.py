"""Presets in a whole run: real SDKs whose addresses are built in, found and judged without a word in the app."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.checks.contracts import exactly_once
from jobcheck.history.report import SubjectReport

from . import tiny

RIG = """
import jobcheck

tiny = jobcheck.Rig(
    jobcheck.celery("tiny:app"),
    upstreams={{"broker": jobcheck.redis(), {upstreams}}},
    env={{"BROKER_URL": "{{broker.url}}"}},
)

def row(case):
    key = f"key-{{case.number}}"
    case.owns(key=key)
    return key
"""


def explored(folder: Path, body: str, upstreams: str, *effects: str, imports: str) -> SubjectReport:
    reference = tiny.write(folder, body, settings=imports)
    (folder / "rig.py").write_text(RIG.format(upstreams=upstreams))
    return tiny.only(
        tiny.explore(reference, mode="handler", verify=1, contracts=tuple(exactly_once(effect) for effect in effects))
    )


CHARGE = "stripe POST /v1/payment_intents"
STRIPE = """
    stripe.api_key = "sk_test_x"
    intent = stripe.PaymentIntent.create(amount=4990, currency="eur", metadata={"order": key}OPTIONS)
    assert stripe.PaymentIntent.retrieve(intent.id).metadata["order"] == key
    jobcheck.mark("done", key)
"""


def test_stripe_without_a_key_of_the_jobs_own_is_charged_twice(tmp_path: Path) -> None:
    subject = explored(
        tmp_path, STRIPE.replace("OPTIONS", ""), '"stripe": jobcheck.stripe()', CHARGE, imports="import stripe"
    )
    assert [point.shape for point in subject.points] == ["http POST /v1/payment_intents", "mark done"]
    assert subject.points[0].code.endswith(" work"), "the line of the app, not of the SDK"
    assert [finding.verdict for finding in subject.findings] == ["duplicated"]


@pytest.mark.parametrize("options", ["", "tls=True"])
def test_stripe_with_a_key_of_the_jobs_own_holds(tmp_path: Path, options: str) -> None:
    """Also where the SDK keeps its address and its check of the certificate."""
    body = STRIPE.replace("OPTIONS", ", idempotency_key=key")
    if options:
        body += '    assert stripe.api_base == "https://api.stripe.com"\n'
    subject = explored(tmp_path, body, f'"stripe": jobcheck.stripe({options})', CHARGE, imports="import stripe")
    assert subject.verdict == "ok", subject.problem


CLIENTS = """
import boto3
s3, ses, sqs = boto3.client("s3"), boto3.client("ses"), boto3.client("sqs")
"""

AWS = """
    s3.put_object(Bucket="invoices", Key=f"{key}.pdf", Body=key.encode())
    assert s3.get_object(Bucket="invoices", Key=f"{key}.pdf")["Body"].read() == key.encode()
    ses.send_email(
        Source="shop@example.com",
        Destination={"ToAddresses": ["ann@example.com"]},
        Message={"Subject": {"Data": key}, "Body": {"Text": {"Data": "hello"}}},
    )
    sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName="sent")["QueueUrl"], MessageBody=key)
"""


def test_aws_calls_are_points_and_effects_by_their_verbs(tmp_path: Path) -> None:
    effects = ("aws PUT /invoices/key-*.pdf", "aws POST / SendEmail", "aws POST / SendMessage")
    subject = explored(tmp_path, AWS, '"aws": jobcheck.aws("s3", "ses", "sqs")', *effects, imports=CLIENTS)
    assert subject.problem == ""
    assert [point.shape for point in subject.points] == [
        "http PUT /invoices/key-*.pdf",
        "http POST / SendEmail",
        "http POST / SendMessage",
    ]
    assert {finding.effect for finding in subject.findings} == {effects[1]}, "the same object again is no second one"


NAMED = """
    boto3.client("ses", endpoint_url="https://email.us-east-1.amazonaws.com").send_email(
        Source="shop@example.com",
        Destination={"ToAddresses": ["ann@example.com"]},
        Message={"Subject": {"Data": key}, "Body": {"Text": {"Data": "hello"}}},
    )
    s3 = boto3.client("s3", endpoint_url="https://s3.eu-central-1.amazonaws.com", config=VIRTUAL)
    s3.put_object(Bucket="invoices", Key=key, Body=b"x")
"""


def test_aws_addresses_that_the_app_names_itself_are_led_to_the_stand_in(tmp_path: Path) -> None:
    """As django-ses does; the name of a bucket is a label more than a wildcard's."""
    imports = 'import boto3, botocore.config\nVIRTUAL = botocore.config.Config(s3={"addressing_style": "virtual"})'
    effects = ("aws POST / SendEmail", "aws PUT /key-*")
    subject = explored(tmp_path, NAMED, '"aws": jobcheck.aws("s3", "ses", tls=True)', *effects, imports=imports)
    assert subject.problem == ""
    assert [point.shape for point in subject.points] == ["http POST / SendEmail", "http PUT /key-*"]
    assert {finding.effect for finding in subject.findings} == {effects[0]}
