"""What Celery's messages on Redis mean, where two are alike."""

from __future__ import annotations

import json

import pytest

from jobcheck.systems.celery.redis_dialect import RedisDialect
from jobcheck.wire.unit import Kind, Unit

MESSAGE = json.dumps({"headers": {"id": "j", "task": "shop.charge"}, "properties": {"delivery_tag": "t"}}).encode()
SETTLED = ((b"ZREM", b"unacked_index", b"t"), (b"HDEL", b"unacked", b"t"))
PUT_BACK = (*SETTLED, (b"RPUSH", b"celery", MESSAGE))
TAKES = (b"SET", b"unacked_mutex", b"token", b"NX", b"PX", b"300000")
FREES = (b"EVALSHA", b"ef", b"1", b"unacked_mutex", b"token")


class Worker:
    """What its dialect says of what it sends."""

    def __init__(self) -> None:
        self.dialect = RedisDialect()

    def says(self, *ops: tuple[bytes, ...], answer: object = b"OK") -> tuple[str, str]:
        name = ops[0][0].decode() if len(ops) == 1 else "EXEC"
        request = Unit(b"", Kind.REQUEST, f"redis {name}", info={"ops": ops})
        meaning = self.dialect.read(request, None, "")
        self.dialect.read(Unit(b"", Kind.REPLY, "redis reply", info={"value": answer}), request, meaning.role)
        return meaning.role, meaning.job


def test_a_job_that_is_put_back_when_its_lease_is_over_is_not_acknowledged() -> None:
    worker = Worker()
    assert worker.says(TAKES)[0] == "noise"
    assert worker.says(*PUT_BACK) == ("restore", "j")
    assert worker.says(*SETTLED)[0] == "ack"
    assert worker.says(FREES)[0] == "noise"


def test_a_worker_that_ends_gives_back_what_it_has_not_done_and_holds_it_no_longer() -> None:
    """The same transaction, without the mutex of those who look for leases."""
    worker = Worker()
    worker.says((b"ZADD", b"unacked_index", b"1.0", b"t"), (b"HSET", b"unacked", b"t", b"{}"))
    assert worker.dialect.held() == ["t"]
    worker.says(TAKES)
    worker.says(FREES)
    assert worker.says(*PUT_BACK)[0] == "ack"
    assert worker.dialect.held() == []


def test_who_did_not_get_the_mutex_does_not_sweep() -> None:
    worker = Worker()
    worker.says(TAKES, answer=None)
    assert worker.says(*PUT_BACK)[0] == "ack"


@pytest.mark.parametrize(
    "op",
    [(b"ZRANGE", b"unacked_index", b"1", b"0"), (b"WATCH", b"unacked"), (b"HGET", b"app:unacked", b"t")],
)
def test_looking_for_leases_that_are_over_is_noise(op: tuple[bytes, ...]) -> None:
    assert Worker().says(op)[0] == "noise"
