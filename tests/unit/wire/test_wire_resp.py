"""The Redis decoder: labels, changes, matching, hostile input."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_feeding import FUZZ, feed, replies, requests, same_however_cut

from jobcheck.wire.resp import RespDecoder
from jobcheck.wire.resp_values import RespError
from jobcheck.wire.unit import MAX_HELD, Change, Kind

UUID = b"0b9cfd12-7c1e-4b9a-9f5e-2a8d6c1b7e11"


def cmd(*args: bytes | str | int) -> bytes:
    """A command as clients send it."""
    parts = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def one(*args: bytes | str | int, reply: bytes = b"+OK\r\n"):
    """Request and reply of one command."""
    units = same_however_cut(RespDecoder, [("client", cmd(*args)), ("server", reply)], [3, 1, 7])
    (request,) = units["client"]
    (answer,) = units["server"]
    assert answer.number == request.number == 1
    return request, answer


@pytest.mark.parametrize(
    ("args", "shape", "change"),
    [
        (("SET", b"celery-task-meta-" + UUID, "x"), "redis SET celery-task-meta-*", Change.YES),
        (("get", "order:17"), "redis GET order:*", Change.NO),
        (("HSET", b"rq:job:" + UUID, "status", "queued"), "redis HSET rq:job:*", Change.YES),
        (("LPUSH", "celery", "{}"), "redis LPUSH celery", Change.YES),
        (("DEL", "b:1", "a:2", "b:3"), "redis DEL a:*,b:*", Change.YES),
        (("MSET", "a", 1, "b", 2), "redis MSET a,b", Change.YES),
        (("BRPOP", "celery", "celery\x06\x163", "celery\x06\x166", 1), "redis BRPOP celery,celery·*", Change.MAYBE),
        (("BLMOVE", "rq:queue:default", "rq:queue:default:intermediate", "RIGHT", "LEFT", 5),
         "redis BLMOVE rq:queue:default", Change.MAYBE),
        (("EVALSHA", "1f0c4d2b" * 5, 1, "dramatiq", "enqueue", "1764455884.12"),
         "redis EVAL 1f0c4d dramatiq enqueue", Change.MAYBE),
        (("EVAL", "return 1", 2, "bull:pay:wait", "bull:pay:17", "\x93"), "redis EVAL e0e1f9 bull:pay:*,bull:pay:wait",
         Change.MAYBE),
        (("FCALL", "my_func", 1, "k"), "redis FCALL my_func k", Change.MAYBE),
        (("EVAL_RO", "return 1", 1, "k"), "redis EVAL e0e1f9 k", Change.NO),
        (("XREADGROUP", "GROUP", "g", "c", "COUNT", 1, "STREAMS", "s", ">"), "redis XREADGROUP s", Change.MAYBE),
        (("XGROUP", "CREATE", "s", "g", "$"), "redis XGROUP CREATE s", Change.YES),
        (("XINFO", "STREAM", "s"), "redis XINFO STREAM s", Change.NO),
        (("SCRIPT", "LOAD", "return 1"), "redis SCRIPT LOAD", Change.NO),
        (("CONFIG", "SET", "maxmemory", 1), "redis CONFIG SET", Change.YES),
        (("MYMODULE.WRITE", "key:12"), "redis MYMODULE.WRITE key:*", Change.MAYBE),
        (("WATCH", "a"), "redis WATCH a", Change.NO),
        (("PUBLISH", "news", "x"), "redis PUBLISH news", Change.YES),
    ],
)  # fmt: skip
def test_a_command_has_a_shape_without_ids_and_a_guess(args, shape, change):
    request, _ = one(*args)
    assert (request.kind, request.shape, request.change) == (Kind.REQUEST, shape, change)


def test_eval_and_evalsha_of_one_script_have_one_shape():
    by_text, _ = one("EVAL", "return 1", 0)
    by_sha, _ = one("EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", 0)
    assert by_text.shape == by_sha.shape == "redis EVAL e0e1f9"
    assert by_text.info["script"] == by_sha.info["script"]


@pytest.mark.parametrize(
    ("args", "reply", "change"),
    [
        (("SET", "k", "v"), b"+OK\r\n", Change.YES),
        (("SET", "k", "v", "NX"), b"$-1\r\n", Change.NO),
        (("SET", "k", "v", "NX"), b"_\r\n", Change.NO),
        (("SET", "k", "v", "NX", "GET"), b"$-1\r\n", Change.YES),
        (("SET", "k", "v", "NX", "GET"), b"$1\r\nx\r\n", Change.NO),
        (("SET", "k", "v", "GET"), b"$-1\r\n", Change.YES),
        (("SET", "k", "v"), b"-READONLY You can't write\r\n", Change.NO),
        (("SETNX", "k", "v"), b":0\r\n", Change.NO),
        (("SETNX", "k", "v"), b":1\r\n", Change.YES),
        (("DEL", "k"), b":0\r\n", Change.NO),
        (("ZADD", "k", 1, "m"), b":0\r\n", Change.YES),
        (("HSET", "k", "f", "v"), b":0\r\n", Change.YES),
        (("EXPIRE", "k", 5), b":0\r\n", Change.NO),
        (("SREM", "k", "m"), b":0\r\n", Change.NO),
        (("BRPOP", "q", 1), b"*-1\r\n", Change.NO),
        (("BRPOP", "q", 1), b"*2\r\n$1\r\nq\r\n$1\r\nx\r\n", Change.YES),
        (("RPOP", "q", 5), b"*0\r\n", Change.NO),
        (("BZPOPMIN", "q", 1), b"_\r\n", Change.NO),
        (("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", 0), b"*1\r\n*2\r\n$1\r\ns\r\n*0\r\n", Change.NO),
        (("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"),
         b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n", Change.YES),
        (("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"),
         b"%1\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n", Change.YES),
        (("XAUTOCLAIM", "s", "g", "c", 0, 0), b"*3\r\n$3\r\n0-0\r\n*0\r\n*0\r\n", Change.NO),
        (("EVAL", "x", 0), b":1\r\n", Change.YES),
        (("EVAL", "x", 0), b"$-1\r\n", Change.MAYBE),
        (("EVALSHA", "ab", 0), b"-NOSCRIPT No matching script.\r\n", Change.NO),
        (("EVAL", "x", 0), b"-ERR user_script:1: boom\r\n", Change.MAYBE),
        (("FOO.BAR", "k"), b"-ERR unknown command 'FOO.BAR'\r\n", Change.NO),
        (("GET", "k"), b"$1\r\nx\r\n", Change.NO),
        (("PUBLISH", "c", "x"), b":0\r\n", Change.NO),
    ],
)  # fmt: skip
def test_the_reply_tells_the_truth_about_the_change(args, reply, change):
    _, answer = one(*args, reply=reply)
    assert answer.change is change


def test_a_transaction_is_one_change_at_exec_and_carries_its_ops():
    units = same_however_cut(
        RespDecoder,
        [
            ("client", cmd("MULTI") + cmd("ZADD", "unacked_index", 1, "a") + cmd("HSET", "unacked", "a", "b")),
            ("server", b"+OK\r\n+QUEUED\r\n+QUEUED\r\n"),
            ("client", cmd("EXEC")),
            ("server", b"*2\r\n:1\r\n:1\r\n"),
        ],
        [2, 9],
    )
    assert [unit.change for unit in requests(units)] == [Change.NO, Change.PENDING, Change.PENDING, Change.YES]
    assert [unit.change for unit in replies(units)] == [Change.NO, Change.PENDING, Change.PENDING, Change.YES]
    last = requests(units)[-1]
    assert last.shape == "redis EXEC(ZADD unacked_index, HSET unacked)"
    assert last.info["ops"] == ((b"ZADD", b"unacked_index", b"1", b"a"), (b"HSET", b"unacked", b"a", b"b"))


@pytest.mark.parametrize(
    ("reply", "change"),
    [
        (b"*-1\r\n", Change.NO),
        (b"_\r\n", Change.NO),
        (b"-EXECABORT Transaction discarded\r\n", Change.NO),
        (b"*2\r\n:0\r\n$1\r\nx\r\n", Change.NO),
        (b"*2\r\n:1\r\n$1\r\nx\r\n", Change.YES),
        (b"*2\r\n-WRONGTYPE no\r\n$1\r\nx\r\n", Change.NO),
    ],
)
def test_exec_changed_what_its_parts_changed(reply, change):
    sent = cmd("MULTI") + cmd("DEL", "k") + cmd("GET", "k") + cmd("EXEC")
    got = feed(RespDecoder(), [("client", sent), ("server", b"+OK\r\n+QUEUED\r\n+QUEUED\r\n" + reply)])
    assert replies(got)[-1].change is change


def test_discard_ends_a_transaction():
    sent = cmd("MULTI") + cmd("DEL", "k") + cmd("DISCARD") + cmd("DEL", "k")
    got = feed(RespDecoder(), [("client", sent)])
    assert [unit.change for unit in requests(got)] == [Change.NO, Change.PENDING, Change.NO, Change.YES]


def test_times_to_live_are_told():
    sent = (
        cmd("SET", "a", "v", "EX", 10, "NX")
        + cmd("PSETEX", "b", 1500, "v")
        + cmd("MULTI")
        + cmd("EXPIRE", "c", 30)
        + cmd("EXEC")
        + cmd("GETEX", "d", "PXAT", 1764455884000)
        + cmd("SET", "EX", "PX")
    )
    got = requests(feed(RespDecoder(), [("client", sent)]))
    assert got[0].info["ttl"] == ((b"a", 10.0),)
    assert got[1].info["ttl"] == ((b"b", 1.5),)
    assert got[4].info["ttl"] == ((b"c", 30.0),)
    assert got[5].info["expire_at"] == ((b"d", 1764455884.0),)
    assert "ttl" not in got[6].info


def test_hundreds_of_pipelined_commands_keep_their_replies():
    sent = b"".join(cmd("SET", f"k:{n}", n) if n % 2 else cmd("GET", f"k:{n}") for n in range(700))
    answers = b"".join(b"+OK\r\n" if n % 2 else b"$3\r\n%03d\r\n" % n for n in range(700))
    got = same_however_cut(RespDecoder, [("client", sent), ("server", answers)], [100, 3])
    assert [unit.number for unit in replies(got)] == list(range(1, 701))
    assert replies(got)[600].info["value"] == b"600"


def test_pubsub_messages_never_count_as_replies_in_resp2():
    sub = b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"
    message = b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n"
    unsub = b"*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n"
    got = same_however_cut(
        RespDecoder,
        [
            ("client", cmd("SUBSCRIBE", "a", "b") + cmd("PING")),
            ("server", sub + message + b"*2\r\n$4\r\npong\r\n$0\r\n\r\n" + message),
            ("client", cmd("UNSUBSCRIBE") + cmd("LRANGE", "x", 0, -1)),
            ("server", unsub + message),
        ],
        [5],
    )
    kinds = [(unit.kind, unit.number) for unit in got["server"]]
    assert kinds == [
        (Kind.REPLY, 1),
        (Kind.PUSH, 0),
        (Kind.PUSH, 0),
        (Kind.CONTROL, 2),
        (Kind.PUSH, 0),
        (Kind.REPLY, 3),
        (Kind.PUSH, 0),
        (Kind.REPLY, 4),  # a list that looks like a message, after the last channel was left
    ]
    assert got["server"][2].shape == "redis message a"


def test_a_refused_subscribe_is_a_reply():
    turns = [("client", cmd("SUBSCRIBE", "a") + cmd("GET", "x")), ("server", b"-NOPERM no\r\n$1\r\nx\r\n")]
    got = feed(RespDecoder(), turns)
    assert [(unit.number, unit.failed) for unit in replies(got)] == [(1, True), (2, False)]


def test_resp3_types_become_values_and_pushes_are_out_of_band():
    answer = (
        b"%2\r\n+server\r\n$5\r\nredis\r\n+proto\r\n:3\r\n"
        b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n"
        b"|1\r\n+ttl\r\n:3\r\n*6\r\n#t\r\n,1.5\r\n(12345678901234567890\r\n=6\r\ntxt:hi\r\n~1\r\n+x\r\n!5\r\nERR a\r\n"
        b"_\r\n"
    )
    sent = cmd("HELLO", 3, "AUTH", "u", "secret") + cmd("FOO") + cmd("GET", "k")
    got = same_however_cut(RespDecoder, [("client", sent), ("server", answer)], [4, 11])
    hello, push, foo, get = got["server"]
    assert hello.kind is Kind.CONTROL
    assert hello.info["value"] == {b"server": b"redis", b"proto": 3}
    assert (push.kind, push.number) == (Kind.PUSH, 0)
    assert foo.info["value"] == [True, 1.5, 12345678901234567890, b"hi", [b"x"], "ERR a"]
    assert isinstance(foo.info["value"][-1], RespError)
    assert foo.number == 2
    assert (get.number, get.info["value"]) == (3, None)


def test_secrets_are_not_shown():
    sent = cmd("AUTH", "user", "hunter2") + cmd("HELLO", 3, "AUTH", "user", "hunter2")
    for unit in feed(RespDecoder(), [("client", sent)])["client"]:
        assert "hunter2" not in unit.summary
        assert b"hunter2" not in b" ".join(unit.info["ops"][0])


def test_client_reply_off_and_skip_are_not_waited_for():
    sent = cmd("CLIENT", "REPLY", "SKIP") + cmd("GET", "a") + cmd("CLIENT", "REPLY", "OFF") + cmd("GET", "b")
    sent += cmd("CLIENT", "REPLY", "ON") + cmd("GET", "c")
    got = feed(RespDecoder(), [("client", sent), ("server", b"+OK\r\n$1\r\nc\r\n")])
    assert [unit.info.get("no_reply", False) for unit in got["client"]] == [True, True, True, True, False, False]
    assert [unit.number for unit in got["server"]] == [5, 6]


def test_inline_commands_and_empty_ones_are_units():
    got = same_however_cut(RespDecoder, [("client", b"PING\r\n\r\nset a b\n*0\r\n" + cmd("GET", "a"))], [4])
    assert [unit.shape for unit in got["client"]] == [
        "redis PING",
        "redis empty",
        "redis SET a",
        "redis empty",
        "redis GET a",
    ]


def test_an_error_nobody_asked_for_is_control():
    (unit,) = feed(RespDecoder(), [("server", b"-ERR max number of clients reached\r\n")])["server"]
    assert (unit.kind, unit.failed, unit.number) == (Kind.CONTROL, True, 0)


def test_a_tls_hello_turns_opaque_with_advice():
    for turns in ([b"\x16\x03\x01\x02\x00\x01"], [b"\x16", b"\x03\x01"]):
        decoder = RespDecoder()
        units = [unit for data in turns for unit in decoder.client(data)]
        assert b"".join(unit.raw for unit in units) == b"".join(turns)
        assert units[0].kind is Kind.OPAQUE
        assert "TLS" in units[0].note
        assert "redis://" in units[0].note
        assert decoder.server(b"\x16\x03\x03")[0].kind is Kind.OPAQUE


def test_garbage_turns_opaque_once_and_loses_nothing():
    got = feed(RespDecoder(), [("client", cmd("GET", "a") + b"*2\r\n$x\r\n"), ("server", b"$1\r\na\r\n")])
    assert [unit.kind for unit in got["client"]] == [Kind.REQUEST, Kind.OPAQUE]
    assert "expected a length" in got["client"][1].note
    assert [unit.kind for unit in got["server"]] == [Kind.OPAQUE]
    assert got["server"][0].note == ""


def test_a_hostile_length_costs_nothing():
    tracemalloc.start()
    decoder = RespDecoder()
    decoder.client(b"*2000000000\r\n$3\r\nSET\r\n$2000000000\r\nabc")
    decoder.server(b"*2000000000\r\n$2000000000\r\nabc")
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


def test_a_command_that_grows_too_big_is_given_out_as_head_and_parts():
    body = bytes(range(256)) * 4 * 10240
    sent = cmd("SET", "big:1", body, "EX", 5) + cmd("GET", "a")
    got = feed(RespDecoder(), [("client", sent), ("server", b"+OK\r\n" + b"$1\r\nx\r\n")], lambda d: _pieces(d, 65536))
    head, *parts, last = got["client"]
    assert (head.shape, head.change, head.last) == ("redis SET big:*", Change.YES, False)
    assert len(head.raw) <= MAX_HELD + 131072
    assert {unit.kind for unit in parts} == {Kind.PART}
    assert parts[-1].last
    assert last.number == 2
    assert [unit.number for unit in got["server"]] == [1, 2]


def test_a_reply_that_grows_too_big_is_given_out_as_head_and_parts():
    row = b"$100000\r\n" + b"x" * 100000 + b"\r\n"
    turns = [("client", cmd("LRANGE", "a", 0, -1) + cmd("RPOP", "q", 99)), ("server", (b"*90\r\n" + row * 90) * 2)]
    got = feed(RespDecoder(), turns, lambda d: _pieces(d, 50000))
    heads = [unit for unit in got["server"] if unit.kind is Kind.REPLY]
    assert [(unit.number, unit.change, unit.last) for unit in heads] == [(1, Change.NO, False), (2, Change.YES, False)]
    assert [unit.last for unit in got["server"] if unit.kind is Kind.PART].count(True) == 2


def _pieces(data: bytes, size: int) -> list[bytes]:
    return [data[index : index + size] for index in range(0, len(data), size)]


WORDS = st.sampled_from(
    [cmd("GET", "a"), cmd("SET", "key:1", "x" * 60, "EX", 5), cmd("LPUSH", "q", *"abcdefgh"), cmd("MULTI"), cmd("EXEC"),
     cmd("SUBSCRIBE", "a"), b"PING\r\n", b"*1\r\n", b"$3\r\nGET\r\n", b"*0\r\n"]
)  # fmt: skip
ANSWERS = st.sampled_from(
    [b"+OK\r\n", b"$60\r\n" + b"x" * 60 + b"\r\n", b"*9\r\n" + b"$1\r\na\r\n" * 9, b"$1\r\nx\r\n", b"*2\r\n", b"%1\r\n",
     b"|1\r\n", b">1\r\n", b"_\r\n", b":1\r\n", b"+QUEUED\r\n", b"$-1\r\n", b"-ERR x\r\n", b"~0\r\n",
     b"=5\r\ntxt:a\r\n", b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n"]
)  # fmt: skip
TURNS = st.lists(
    st.one_of(
        st.tuples(st.just("client"), st.one_of(WORDS, st.binary(max_size=12))),
        st.tuples(st.just("server"), st.one_of(ANSWERS, st.binary(max_size=12))),
    ),
    max_size=25,
)


@FUZZ
@given(TURNS, st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_any_bytes_give_the_same_units_however_they_are_cut(turns, sizes):
    got = same_however_cut(RespDecoder, turns, sizes)
    assert not any("decoder failed" in unit.note for units in got.values() for unit in units)
