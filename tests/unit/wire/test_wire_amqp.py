"""The AMQP decoder: contents as one unit, confirms, channels, heartbeats, hostile input. Frames are made by pamqp."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import body, commands, frame, header
from pamqp.commands import Basic, Confirm, Connection, Exchange, Queue, Tx
from pamqp.commands import Channel as Chan
from wire_feeding import FUZZ, cut_at, feed, replies, requests, same_however_cut

from jobcheck.wire.amqp import AmqpDecoder
from jobcheck.wire.amqp_frames import read_method
from jobcheck.wire.unit import MAX_HELD, Change, Kind, WireError

NO, PENDING, YES, MAYBE = Change.NO, Change.PENDING, Change.YES, Change.MAYBE
HELLO = b"AMQP\x00\x00\x09\x01"
HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"
UUID = "0b9cfd12-7c1e-4b9a-9f5e-2a8d6c1b7e11"


def method(value, channel: int = 1) -> bytes:
    return frame.marshal(value, channel)


def content(value, text: bytes = b"[]", channel: int = 1, piece: int = 100_000, **properties) -> bytes:
    """Method, header and body frames."""
    head = header.ContentHeader(0, len(text), Basic.Properties(**properties))
    pieces = [text[at : at + piece] for at in range(0, len(text), piece)]
    return (
        method(value, channel) + method(head, channel) + b"".join(method(body.ContentBody(p), channel) for p in pieces)
    )


def connected() -> AmqpDecoder:
    decoder = AmqpDecoder()
    decoder.client(HELLO)
    decoder.server(method(Connection.Start(), 0))
    return decoder


def talk(*turns: bytes, sizes: tuple[int, ...] = (5, 1, 17)):
    sides = ("client", "server")
    return same_however_cut(connected, [(sides[n % 2], data) for n, data in enumerate(turns)], list(sizes))


PUBLISH = Basic.Publish(exchange="", routing_key="celery")
DELIVER = Basic.Deliver("tag1", 7, False, "", "celery")


def test_the_handshake_is_control_and_hides_the_password():
    start_ok = Connection.StartOk({"product": "x"}, "PLAIN", "\0guest\0hunter2", "en_US")
    turns = [
        ("client", HELLO), ("server", method(Connection.Start(server_properties={"a": "b"}), 0)),
        ("client", method(start_ok, 0)), ("server", method(Connection.Tune(), 0)),
        ("client", method(Connection.TuneOk(), 0) + method(Connection.Open(), 0)),
        ("server", method(Connection.OpenOk(), 0)),
        ("client", method(Chan.Open())), ("server", method(Chan.OpenOk())),
        ("client", HEARTBEAT), ("server", HEARTBEAT),
    ]  # fmt: skip
    units = same_however_cut(AmqpDecoder, turns, [3, 8])
    both = units["client"] + units["server"]
    assert {unit.kind for unit in both} == {Kind.CONTROL}
    assert not any("hunter2" in unit.summary for unit in both)
    assert [unit.info.get("heartbeat", False) for unit in units["client"]][-1]


def test_the_heartbeat_is_what_the_client_agreed_to():
    decoder = connected()
    assert decoder.heartbeat == 0
    decoder.server(method(Connection.Tune(heartbeat=60), 0))
    decoder.client(method(Connection.TuneOk(heartbeat=2), 0))
    assert decoder.heartbeat == 2


def test_a_publish_is_one_unit_without_a_reply():
    sent = content(PUBLISH, b"x" * 25_000, headers={"task": "shop.charge", "id": UUID}, correlation_id=UUID)
    units = talk(sent, sizes=(4096, 7))
    (request,) = units["client"]
    assert request.raw == sent
    assert (request.kind, request.shape, request.change) == (Kind.REQUEST, "amqp basic.publish celery", YES)
    assert request.info["no_reply"]
    assert request.info["properties"]["headers"]["task"] == "shop.charge"
    assert request.info["body"] == b"x" * 25_000
    assert request.summary.startswith(f"basic.publish celery shop.charge {UUID} xxx")


@pytest.mark.parametrize(
    ("exchange", "key", "shape"),
    [
        ("", "celery", "celery"),
        ("celery", "celery", "celery"),
        ("celeryev", "worker.heartbeat", "celeryev worker.heartbeat"),
        ("", f"{UUID}.reply", "*.reply"),
        ("", "", ""),
    ],
)
def test_a_publish_is_named_by_exchange_and_key(exchange, key, shape):
    (request,) = talk(content(Basic.Publish(exchange=exchange, routing_key=key)))["client"]
    assert request.shape == f"amqp basic.publish {shape}".rstrip()


def test_a_delivery_is_pushed_and_named_by_its_queue():
    units = talk(
        method(Basic.Consume(queue="jobs", consumer_tag="tag1", no_ack=True)),
        method(Basic.ConsumeOk("tag1")) + content(DELIVER, b"[17]", headers={"task": "t"}, message_id="m"),
        method(Basic.Ack(7, True)) + method(Basic.Reject(8, True)) + method(Basic.Nack(9, False, False)),
    )
    consume, ack, reject, nack = requests(units)
    assert (consume.shape, consume.change) == ("amqp basic.consume jobs", NO)
    reply, push = units["server"]
    assert (reply.kind, reply.number) == (Kind.REPLY, 1)
    assert (push.kind, push.shape, push.number) == (Kind.PUSH, "amqp basic.deliver jobs", 0)
    assert push.info["delivery_tag"] == 7
    assert push.info["channel"] == 1
    assert push.info["routing_key"] == "celery"
    assert push.info["queue"] == "jobs"
    assert push.info["no_ack"]
    assert push.info["body"] == b"[17]"
    assert [(unit.change, unit.info["no_reply"]) for unit in (ack, reject, nack)] == [(YES, True)] * 3
    assert (ack.info["delivery_tag"], ack.info["multiple"], reject.info["requeue"]) == (7, True, True)


def test_a_delivery_to_an_unknown_consumer_is_named_by_its_key():
    assert talk(b"", content(DELIVER))["server"][0].shape == "amqp basic.deliver celery"


def test_synchronous_methods_are_matched_per_channel():
    sent = method(Queue.Declare(queue="celery")) + method(Exchange.Declare(exchange="x"), 2) + method(Basic.Qos(0, 1))
    sent += method(Queue.Purge(queue="a"), 2) + method(Queue.Declare(queue="b", nowait=True), 2)
    heard = method(Exchange.DeclareOk(), 2) + method(Queue.PurgeOk(3), 2)
    heard += method(Queue.DeclareOk("celery", 0, 0)) + method(Basic.QosOk())
    units = talk(sent, heard)
    assert [unit.shape for unit in requests(units)] == [
        "amqp queue.declare celery", "amqp exchange.declare x", "amqp basic.qos", "amqp queue.purge a",
        "amqp queue.declare b",
    ]  # fmt: skip
    assert [(unit.number, unit.change) for unit in replies(units)] == [(2, NO), (4, YES), (1, NO), (3, NO)]
    assert requests(units)[-1].info["no_reply"]


def test_get_is_a_change_when_it_gets_something():
    ask = method(Basic.Get(queue="q", no_ack=True))
    units = talk(ask, method(Basic.GetEmpty()), ask, content(Basic.GetOk(1, False, "", "q", 0), b"x"))
    assert [unit.change for unit in requests(units)] == [MAYBE, MAYBE]
    assert [(unit.number, unit.change) for unit in replies(units)] == [(1, NO), (2, YES)]
    assert replies(units)[1].info["body"] == b"x"


def test_confirms_answer_publishes():
    units = talk(
        method(Confirm.Select()), method(Confirm.SelectOk()),
        content(PUBLISH) * 5, method(Basic.Ack(1, False)) + method(Basic.Ack(4, True)) + method(Basic.Nack(5, False)),
    )  # fmt: skip
    assert not any(unit.info.get("no_reply") for unit in requests(units))
    assert [(unit.number, unit.change, unit.failed) for unit in replies(units)] == [
        (1, NO, False), (2, YES, False), (3, YES, False), (4, YES, False), (5, YES, False), (6, MAYBE, True),
    ]  # fmt: skip


def test_a_channel_that_the_server_closes_fails_what_waits_on_it():
    close = method(Chan.Close(404, "NOT_FOUND - no queue", 60, 20))
    units = talk(
        method(Basic.Consume(queue="nothing")), close,
        method(Chan.CloseOk()) + method(Chan.Open()), method(Chan.OpenOk()) + close,
        method(Chan.Open()) + method(Confirm.Select()), method(Confirm.SelectOk()), content(PUBLISH), close,
    )  # fmt: skip
    failed = [(unit.kind, unit.number, unit.change) for unit in units["server"] if unit.failed]
    assert failed == [(Kind.REPLY, 1, NO), (Kind.CONTROL, 0, NO), (Kind.REPLY, 3, MAYBE)]
    assert "NOT_FOUND" in units["server"][0].summary
    assert units["server"][0].info["reply_code"] == 404


def test_a_transaction_folds_into_its_commit():
    units = talk(
        method(Tx.Select()), method(Tx.SelectOk()),
        content(PUBLISH) + method(Basic.Ack(1)) + method(Tx.Commit()), method(Tx.CommitOk()),
        method(Tx.Commit()), method(Tx.CommitOk()),
    )  # fmt: skip
    assert [unit.change for unit in requests(units)] == [NO, PENDING, PENDING, YES, NO]
    assert [unit.change for unit in replies(units)] == [NO, YES, NO]


def test_a_returned_message_and_a_cancelled_consumer_are_pushed():
    heard = content(Basic.Return(312, "NO_ROUTE", "", "x"), b"x") + method(Basic.Cancel("tag1", True))
    assert [(unit.kind, unit.failed) for unit in talk(b"", heard)["server"]] == [(Kind.PUSH, True), (Kind.PUSH, False)]


def test_frames_of_another_channel_between_those_of_a_content_lose_nothing():
    start, piece = content(PUBLISH, b"abcdef", piece=2)[:-20], method(body.ContentBody(b"cd"))
    other = content(PUBLISH, b"x", channel=2)
    units = talk(start + HEARTBEAT + piece + other + piece + method(Basic.Ack(1)))
    kinds = [(unit.kind, unit.number, unit.last) for unit in units["client"]]
    assert kinds == [
        (Kind.REQUEST, 1, False), (Kind.CONTROL, 0, True), (Kind.PART, 1, False), (Kind.REQUEST, 2, True),
        (Kind.PART, 1, True), (Kind.REQUEST, 3, True),
    ]  # fmt: skip


def test_a_long_content_is_given_out_as_head_and_parts():
    text = b"x" * (MAX_HELD + 1_000_000)
    for piece in (100_000, MAX_HELD + 500_000):
        got = feed(
            connected(), [("client", content(PUBLISH, text, piece=piece) + HEARTBEAT)], cut_at([65536]), end=False
        )
        head, *parts, beat = got["client"]
        assert (head.kind, head.shape, head.last) == (Kind.REQUEST, "amqp basic.publish celery", False)
        assert {unit.kind for unit in parts} == {Kind.PART}
        assert parts[-1].last
        assert beat.info["heartbeat"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"AMQP\x00\x01\x00\x00", "AMQP 1.0.0"),
        (b"GET / HTTP/1.1\r\n", "no AMQP greeting"),
        (HELLO + b"\x09\0\0\0\0\0\0\xce", "expected a frame"),
        (HELLO + b"\x01\0\0\0\0\0\4\0\1\0\1\xce", "does not exist"),
        (HELLO + b"\x01\0\1\0\0\0\5\0\x3c\0\x28x\xce", "malformed"),
        (HELLO + HEARTBEAT[:-1] + b"x", "does not end"),
        (HELLO + content(PUBLISH)[23:], "without a"),
        (HELLO + method(PUBLISH) * 2, "interrupts"),
    ],
)
def test_what_is_no_amqp_turns_opaque(data, words):
    units = same_however_cut(AmqpDecoder, [("client", data)], [3])["client"]
    assert units[-1].kind is Kind.OPAQUE
    assert words in units[-1].note


def test_malformed_properties_leave_the_message_readable():
    bad = struct.pack(">HHQH", 60, 0, 2, 0x2000) + b"\xff\xff\xff\xff"
    data = method(PUBLISH) + struct.pack(">BHI", 2, 1, len(bad)) + bad + b"\xce" + method(body.ContentBody(b"hi"))
    (request,) = talk(data)["client"]
    assert request.info["properties"] == {}
    assert request.info["body"] == b"hi"


def test_a_refused_version_is_answered_with_a_greeting():
    turns = [("client", HELLO), ("server", HELLO)]
    assert same_however_cut(AmqpDecoder, turns, [3])["server"][0].kind is Kind.CONTROL


def test_a_hostile_length_costs_nothing():
    tracemalloc.start()
    decoder = connected()
    decoder.client(method(PUBLISH) + struct.pack(">BHI", 3, 1, 0xFFFFFFFF) + b"x")
    tables = b"".join([b"F" + struct.pack(">I", 0xFFFF)] * 1000)
    with pytest.raises(WireError):
        read_method(struct.pack(">I", 0x0032000A) + b"\0\0\1q\0" + struct.pack(">I", len(tables)) + b"\1a" + tables)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


SAID = st.sampled_from(
    [content(PUBLISH), content(PUBLISH, b"abcd", piece=2), method(PUBLISH), content(PUBLISH, channel=2), HEARTBEAT,
     HELLO, method(header.ContentHeader(0, 3)), method(body.ContentBody(b"ab")), method(body.ContentBody(b"a")),
     method(Tx.Select()), method(Confirm.Select()), method(Queue.Declare(queue="q")), method(Basic.Ack(1)),
     method(Chan.Open()), method(Tx.Commit()), method(body.ContentBody(b"ab"), 2),
     method(header.ContentHeader(0, 2), 2), method(Basic.Publish(), 2)]
)  # fmt: skip
HEARD = st.sampled_from(
    [content(DELIVER), method(DELIVER), method(Basic.Ack(1, True)), method(Queue.DeclareOk("q", 0, 0)),
     method(Chan.Close(404, "x", 0, 0)), method(Tx.SelectOk()), method(Basic.Nack(1)), HEARTBEAT,
     content(Basic.GetOk(1, False, "", "q", 0)), method(Chan.OpenOk()),
     method(commands.Connection.Close(320, "x", 0, 0), 0), method(header.ContentHeader(0, 0)),
     method(body.ContentBody(b"ab"))]
)  # fmt: skip
TURNS = st.lists(
    st.one_of(
        st.tuples(st.just("client"), st.one_of(SAID, SAID, SAID, st.binary(max_size=12))),
        st.tuples(st.just("server"), st.one_of(HEARD, HEARD, HEARD, st.binary(max_size=12))),
    ),
    max_size=20,
)


@FUZZ
@given(TURNS, st.lists(st.integers(1, 40), min_size=1, max_size=5), st.booleans())
def test_any_bytes_give_the_same_units_however_they_are_cut(turns, sizes, started):
    got = same_however_cut(connected if started else AmqpDecoder, turns, sizes)
    assert not any("decoder failed" in unit.note for units in got.values() for unit in units)


@FUZZ
@given(st.integers(0, 0xFFFFFFFF), st.sampled_from(sorted(commands.INDEX_MAPPING)), st.binary(max_size=80))
def test_any_method_frame_is_read_or_refused(index, known, rest):
    for number in (index, known):
        try:
            found = read_method(struct.pack(">I", number) + rest)
        except WireError:
            continue
        assert found.name
