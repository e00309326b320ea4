"""What Celery's messages on Redis mean, where two are alike."""

from __future__ import annotations

import json

import pytest

from jobcheck.systems.celery.redis_dialect import RedisDialect
from jobcheck.wire.unit import Kind, Unit

MESSAGE = json.dumps({"headers": {"id": "j", "task": "shop.charge"}, "properties": {"delivery_tag": "t"}}).encode()
SETTLED = ((b"ZREM", b"unacked_index", b"t"), (b"HDEL", b"unacked", b"t"))


def read(shape: str, *ops: tuple[bytes, ...]) -> tuple[str, str]:
    meaning = RedisDialect().read(Unit(b"", Kind.REQUEST, shape, info={"ops": ops}), None, "")
    return meaning.role, meaning.job


def test_a_job_that_is_put_back_when_its_lease_is_over_is_not_acknowledged() -> None:
    """kombu puts it where the next worker takes it; a job that its own worker rejects goes to the other end."""
    assert read("redis EXEC", *SETTLED, (b"RPUSH", b"celery", MESSAGE)) == ("restore", "j")
    assert read("redis EXEC", *SETTLED, (b"LPUSH", b"celery", MESSAGE))[0] == "ack"
    assert read("redis EXEC", *SETTLED)[0] == "ack"


@pytest.mark.parametrize(
    "op",
    [(b"ZRANGE", b"unacked_index", b"1", b"0"), (b"WATCH", b"unacked"), (b"HGET", b"app:unacked", b"t")],
)
def test_looking_for_leases_that_are_over_is_noise(op: tuple[bytes, ...]) -> None:
    assert read("redis " + op[0].decode(), op)[0] == "noise"
