"""A provider in front of a mock of the user's, and in front of moto: real clients, real servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
from botocore.config import Config
from wire_proxy import World

from jobcheck.clock import REAL
from jobcheck.effects.aws import Aws
from jobcheck.effects.forward import Forward
from jobcheck.effects.ledger import Ledger
from jobcheck.effects.provider import HttpProvider
from jobcheck.errors import UsageError
from jobcheck.events import Bus
from jobcheck.runner import presets
from jobcheck.runner.stage import Stage
from jobcheck.services import moto_server
from jobcheck.services.base import Place
from jobcheck.services.spec import Address, Provider


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("forward"))
    yield world
    world.close()


class Pair:
    """A provider with the ledger, and the mock that answers for it."""

    def __init__(self, world: World, spec: Provider) -> None:
        self.mock = HttpProvider(
            "mock", Provider(routes={"GET /hello": {"body": "hi", "headers": {"X-A": "1"}}}), Ledger(REAL)
        )
        world.run(self.mock.start())
        address = Address("http", self.mock.host, self.mock.port, path="base" if spec.upstream.endswith("base") else "")
        self.front = HttpProvider("payments", spec, Ledger(REAL), Forward(address, keep_host=True))
        world.run(self.front.start())
        self.url = self.front.url

    def seen(self) -> list[tuple[str, bool, str]]:
        return [(effect.name, effect.applied, effect.note) for effect in self.front.ledger.since(0)]


@pytest.fixture
def pair(world: World) -> Iterator[Callable[..., Pair]]:
    made: list[Pair] = []

    def make(**spec: Any) -> Pair:
        made.append(Pair(world, Provider(**spec)))
        return made[-1]

    yield make
    for one in made:
        world.run(one.front.stop())
        world.run(one.mock.stop())


def test_calls_reach_the_mock_and_its_answers_come_back(pair) -> None:
    both = pair()
    answer = requests.get(f"{both.url}/hello?a=1", timeout=10)
    assert (answer.status_code, answer.text, answer.headers["x-a"]) == (200, "hi", "1")
    made = requests.post(f"{both.url}/charges", json={"order": 17}, timeout=10).json()
    assert requests.get(f"{both.url}/charges/{made['id']}", timeout=10).json() == made
    head = requests.head(f"{both.url}/hello", timeout=10)
    assert (head.headers["content-length"], head.content) == ("2", b"")
    assert both.seen() == [("payments POST /charges", True, "")]
    assert [effect.body for effect in both.mock.ledger.since(0)] == ['{"order":17}']


def test_a_base_path_of_the_mock_is_kept(pair) -> None:
    both = pair(upstream="http://127.0.0.1/base")
    requests.post(f"{both.url}/charges", data=b"\x00\xff" * 100_000, timeout=10)
    effect = both.mock.ledger.since(0)[0]
    assert effect.name == "mock POST /base/charges"
    assert effect.body.startswith("200000 bytes")


def test_idempotency_keys_stand_before_the_mock(pair) -> None:
    both = pair(idempotency="Idempotency-Key")
    answers = [
        requests.post(f"{both.url}/charges", json={"order": 17}, headers={"Idempotency-Key": "k"}, timeout=10).json()
        for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert both.mock.ledger.seq == 1
    assert both.seen() == [("payments POST /charges", True, ""), ("payments POST /charges", False, "replayed")]


def test_what_is_programmed_stands_before_the_mock(pair) -> None:
    both = pair(routes={"POST /down": 503})
    assert requests.post(f"{both.url}/down", timeout=10).status_code == 503
    both.front.program("POST /charges", {"drop": True, "applied": True}, {"drop": True})
    for _ in range(2):
        with pytest.raises(requests.ConnectionError):
            requests.post(f"{both.url}/charges", json={}, timeout=10)
    assert both.mock.ledger.seq == 1, "the first was carried out, and its answer lost"
    assert [applied for _, applied, _ in both.seen()] == [False, True, False]


def test_a_mock_that_is_not_there_is_told_in_a_sentence(pair, world) -> None:
    both = pair()
    world.run(both.mock.stop())
    answer = requests.post(f"{both.url}/charges", json={}, timeout=10)
    assert answer.status_code == 502
    assert f"expected an answer of the upstream http://127.0.0.1:{both.mock.port}" in answer.json()["error"]
    assert both.seen()[0][1] is False
    assert "expected an answer of the upstream" in both.seen()[0][2]


def test_a_mock_on_another_machine_must_be_allowed(tmp_path: Path) -> None:
    async def main() -> None:
        async with Stage(seed=1, bus=Bus(), logs=tmp_path) as stage:
            far = Provider(upstream="https://sandbox.example.com")
            with pytest.raises(UsageError, match="payments: https://sandbox.example.com:443/? is not on this machine"):
                await stage.backend("payments", far)
            allowed = Provider(upstream="https://sandbox.example.com", allow_host="sandbox.example.com")
            assert isinstance(await stage.backend("payments", allowed), Forward)

    asyncio.run(main())


# AWS


@pytest.fixture(scope="module")
def moto(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    place = Place("moto", world._supervisor, world._guardian, tmp_path_factory.mktemp("moto"))
    service = world.run(moto_server.start(place))
    yield service.address
    world.run(service.stop())


@pytest.fixture
def account(world: World, moto: Address) -> Iterator[HttpProvider]:
    made = HttpProvider("aws", presets.aws("s3", "ses", "sqs"), Ledger(REAL), Aws(Forward(moto, keep_host=True)))
    world.run(made.start())
    yield made
    world.run(made.stop())


def client(account: HttpProvider, service: str, **config: Any) -> Any:
    return boto3.client(
        service,
        endpoint_url=account.url,
        aws_access_key_id="a",
        aws_secret_access_key="b",
        region_name="eu-central-1",
        config=Config(retries={"max_attempts": 0}, **config),
    )


def effects(account: HttpProvider) -> list[tuple[str, bool]]:
    return [(effect.name.removeprefix("aws "), effect.applied) for effect in account.ledger.since(0)]


def test_the_same_object_with_the_same_bytes_is_one_effect(account) -> None:
    s3 = client(account, "s3")
    for body in (b"one", b"one", b"two"):
        s3.put_object(Bucket="shop", Key="inv/1000017.pdf", Body=body)
    assert s3.get_object(Bucket="shop", Key="inv/1000017.pdf")["Body"].read() == b"two"
    assert s3.head_object(Bucket="shop", Key="inv/1000017.pdf")["ContentLength"] == 3
    assert [one["Key"] for one in s3.list_objects_v2(Bucket="shop")["Contents"]] == ["inv/1000017.pdf"]
    s3.delete_object(Bucket="shop", Key="inv/1000017.pdf")
    s3.put_object(Bucket="shop", Key="inv/1000017.pdf", Body=b"two")
    put, delete = "PUT /shop/inv/*.pdf", "DELETE /shop/inv/*.pdf"
    assert effects(account) == [(put, True), (put, False), (put, True), (delete, True), (put, True)]


def test_an_upload_in_parts_is_an_effect_when_it_is_complete(account) -> None:
    s3 = client(account, "s3")
    upload = s3.create_multipart_upload(Bucket="shop", Key="big")["UploadId"]
    part = s3.upload_part(Bucket="shop", Key="big", PartNumber=1, UploadId=upload, Body=b"x" * 1000)
    assert effects(account) == []
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.complete_multipart_upload(Bucket="shop", Key="big", UploadId=upload, MultipartUpload=parts)
    assert effects(account) == [("POST /shop/big", True)]


def test_a_mail_is_told_by_what_it_says(account) -> None:
    ses = client(account, "ses")
    for boundary in ("a", "b"):
        headers = f"From: shop@example.com\r\nTo: ann@example.com\r\nSubject: Paid\r\nMessage-ID: <{boundary}@x>"
        raw = f"{headers}\r\n\r\nThanks\r\n"
        ses.send_raw_email(RawMessage={"Data": raw.encode()})
    ses.send_email(
        Source="Shop <other@example.com>",
        Destination={"ToAddresses": ["ann@example.com"]},
        Message={"Subject": {"Data": "Paid"}, "Body": {"Text": {"Data": "Thanks"}}},
    )
    assert ses.get_send_quota()["Max24HourSend"]
    assert effects(account) == [("POST / SendRawEmail", True)] * 2 + [("POST / SendEmail", True)]
    told = [effect.body for effect in account.ledger.since(0)]
    assert told[0] == told[1] == '{"subject":"Paid","text":"Thanks","to":"ann@example.com"}'


def test_a_mail_by_the_newer_api(account) -> None:
    client(account, "sesv2").send_email(
        FromEmailAddress="new@example.com",
        Destination={"ToAddresses": ["ann@example.com"]},
        Content={"Simple": {"Subject": {"Data": "Paid"}, "Body": {"Text": {"Data": "Thanks"}}}},
    )
    assert effects(account) == [("POST /v2/email/outbound-emails", True)]


def test_a_queue_is_there_when_it_is_asked_for(account) -> None:
    sqs = client(account, "sqs")
    url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="17")
    message = sqs.receive_message(QueueUrl=url)["Messages"][0]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName="a.fifo")["QueueUrl"], MessageBody="1", MessageGroupId="g",
                     MessageDeduplicationId="d")  # fmt: skip
    assert effects(account) == [
        ("POST / SendMessage", True),
        ("POST / DeleteMessage", True),
        ("POST / SendMessage", True),
    ]


def test_an_error_of_aws_stays_one(account) -> None:
    s3 = client(account, "s3")
    with pytest.raises(s3.exceptions.NoSuchKey):
        s3.get_object(Bucket="shop", Key="nothing")
    assert effects(account) == []


def test_a_service_that_is_not_known_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="expected some of s3, ses, sqs, got 'dynamo'"):
        presets.aws("s3", "dynamo")
