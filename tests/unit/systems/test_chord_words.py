"""What Celery's messages about a chord say, in the shapes that 5.3 and 5.7 send."""

from __future__ import annotations

import pytest

from jobcheck.systems.celery.redis_dialect import chord_role

KEY = b"celery-taskset-meta-84dd4eb0-2af3-4cca-a0de-3d401bdebcee"


def keys(*ends: str) -> list[bytes]:
    return [KEY + end.encode() for end in ends]


@pytest.mark.parametrize(
    ("ops", "role"),
    [
        ([(b"SET", *keys(".s"), b"3", b"EX", b"86400")], "chord size"),
        ([(b"EVALSHA", b"b8", b"6", *keys(".j", ".t", ".s", ".d", "", ".c"), b"tid")], "chord count"),
        ([(b"EVALSHA", b"dc", b"2", *keys(".c", ".s"), b"token", b"9")], "chord claim"),
        ([(b"EVALSHA", b"0a", b"5", *keys(".c", ".j", ".t", ".s", ".d"), b"token")], "chord end"),
        ([(b"ZADD", *keys(".j"), b"0", b"[1]"), (b"ZCOUNT", *keys(".j"), b"-inf", b"+inf")], "chord count"),
        ([(b"RPUSH", *keys(".j"), b"[1]"), (b"LLEN", *keys(".j"))], "chord count"),
        ([(b"DEL", *keys(".j")), (b"DEL", *keys(".t"))], "chord end"),
        ([(b"SET", b"celery-task-meta-1", b"{}")], ""),
        ([(b"LPUSH", b"celery", b"{}")], ""),
        ([(b"PING",)], ""),
        ([], ""),
    ],
)
def test_a_message_about_a_counter_is_told(ops: list[tuple[bytes, ...]], role: str) -> None:
    assert chord_role(ops) == role
