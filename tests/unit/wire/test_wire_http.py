"""The HTTP decoder: framing, labels, truth, hostile input. Framing is cross-checked with h11."""

from __future__ import annotations

import json

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_feeding import FUZZ, cut_at, feed, replies, requests, same_however_cut

from jobcheck.wire.http import HttpDecoder
from jobcheck.wire.unit import MAX_HELD, Change, Kind

NO, YES, MAYBE = Change.NO, Change.YES, Change.MAYBE
CHUNKY = ("body", "summary")
UUID = "0b9cfd12-7c1e-4b9a-9f5e-2a8d6c1b7e11"


def req(line: str = "POST /charges", body: bytes = b"", **headers: str) -> bytes:
    """A request; header names are given with underscores."""
    fields = {"host": "pay", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if body and "transfer-encoding" not in fields:
        fields["content-length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{line} HTTP/1.1\r\n{head}\r\n".encode() + body


def rep(status: int = 200, body: bytes = b"", **headers: str) -> bytes:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    if "transfer-encoding" not in fields and status >= 200 and status != 204:
        fields.setdefault("content-length", str(len(body)))
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} Reason\r\n{head}\r\n".encode() + body


def talk(*turns: bytes, sizes: tuple[int, ...] = (5, 1, 17)):
    sides = ("client", "server")
    return same_however_cut(HttpDecoder, [(sides[n % 2], data) for n, data in enumerate(turns)], list(sizes), CHUNKY)


@pytest.mark.parametrize(
    ("line", "headers", "body", "shape", "change"),
    [
        ("POST /charges", {}, b"{}", "http POST /charges", YES),
        ("GET /charges/17?expand=1#x", {}, b"", "http GET /charges/*", NO),
        ("HEAD /", {}, b"", "http HEAD /", NO),
        ("OPTIONS *", {}, b"", "http OPTIONS *", NO),
        ("DELETE /v1/customers/cus_4QWKsZuuTHcs7X", {}, b"", "http DELETE /v1/customers/cus_*", YES),
        (f"PUT /files/{UUID}/parts/3", {}, b"x", "http PUT /files/*/parts/*", YES),
        ("POST /orders/ORD%2F2026%2F17/pay", {}, b"", "http POST /orders/ORD/*/*/pay", YES),
        ("POST http://pay.test:80/charges?x=1", {}, b"", "http POST /charges", YES),
        ("POST /", {"x_amz_target": "DynamoDB_20120810.PutItem"}, b"{}", "http POST / PutItem", YES),
        ("POST /", {"x_amz_target": "DynamoDB_20120810.GetItem"}, b"{}", "http POST / GetItem", NO),
        ("POST /", {"content_type": "application/x-www-form-urlencoded"}, b"Action=SendMessage&Body=x",
         "http POST / SendMessage", YES),
        ("GET /?Action=DescribeQueues&Version=1", {}, b"", "http GET / DescribeQueues", NO),
        ("POST /x", {"soapaction": '"urn:pay/Charge"'}, b"<x/>", "http POST /x Charge", YES),
        ("POST /graphql", {}, b'{"operationName":"Pay","query":"mutation Pay { pay }"}', "http POST /graphql Pay", YES),
        ("POST /graphql", {}, b'{"query":"mutation Pay($x: ID!) { pay }"}', "http POST /graphql Pay", YES),
        ("POST /graphql", {}, b'{"query":"query Orders { orders }"}', "http POST /graphql Orders", NO),
        ("POST /graphql", {}, b'{"query":"mutation { pay }"}', "http POST /graphql", YES),
        ("POST /rpc", {}, b'{"jsonrpc":"2.0","method":"wallet.pay","id":1}', "http POST /rpc wallet.pay", YES),
        ("POST /search", {}, b'{"query": ["not", "graphql"]}', "http POST /search", YES),
        ("POST /search", {}, b'{"query": broken', "http POST /search", YES),
        ("CONNECT api.example.com:443", {}, b"", "http CONNECT api.example.com", NO),
    ],
)  # fmt: skip
def test_a_request_has_a_shape_without_ids_and_a_guess(line, headers, body, shape, change):
    units = talk(req(line, body, **headers))
    (request,) = units["client"]
    assert (request.kind, request.shape, request.change) == (Kind.REQUEST, shape, change)
    assert request.info["body"] == body


def test_a_request_tells_its_parts():
    (request,) = talk(req("POST /charges?a=1", b'{"invoice": 17}', idempotency_key="k-1"))["client"]
    assert request.info["method"] == "POST"
    assert request.info["path"] == "/charges"
    assert request.info["query"] == "a=1"
    assert request.info["headers"]["idempotency-key"] == "k-1"
    assert request.summary == 'POST /charges?a=1 {"invoice": 17}'


@pytest.mark.parametrize(
    ("line", "status", "change", "failed"),
    [
        ("POST /c", 201, YES, False),
        ("POST /c", 302, YES, False),
        ("POST /c", 409, NO, True),
        ("POST /c", 500, MAYBE, True),
        ("POST /c", 503, MAYBE, True),
        ("GET /c", 200, NO, False),
        ("GET /c", 500, NO, True),
    ],
)
def test_the_status_tells_the_truth(line, status, change, failed):
    (reply,) = talk(req(line), rep(status, b"x"))["server"]
    assert (reply.kind, reply.number, reply.change, reply.failed) == (Kind.REPLY, 1, change, failed)
    assert reply.info["status"] == status
    assert reply.info["body"] == b"x"


def test_keep_alive_and_pipelining_keep_replies_apart():
    sent = req("POST /a", b"1") + req("GET /b") + req("POST /c", b"22")
    units = talk(sent, rep(200, b"one") + rep(204) + rep(500, b"three"), req("DELETE /d"), rep(404))
    assert [unit.shape for unit in requests(units)] == [
        "http POST /a",
        "http GET /b",
        "http POST /c",
        "http DELETE /d",
    ]
    assert [(unit.number, unit.change) for unit in replies(units)] == [(1, YES), (2, NO), (3, MAYBE), (4, NO)]


def test_chunked_bodies_both_ways_end_where_they_say():
    chunks = b"4;ext=1\r\nWiki\r\n5\r\npedia\r\n0\r\nX-Trailer: 1\r\n\r\n"
    sent = req("POST /c", chunks, transfer_encoding="chunked")
    units = talk(sent + req("GET /d"), rep(200, chunks, transfer_encoding="chunked") + rep(200, b"ok"))
    assert requests(units)[0].info["body"] == b"Wikipedia"
    assert requests(units)[0].raw == sent
    assert [unit.number for unit in replies(units)] == [1, 2]
    assert replies(units)[0].info["body"] == b"Wikipedia"


def test_a_body_that_trickles_in_is_part_units_behind_the_reply():
    decoder = HttpDecoder()
    decoder.client(req("POST /c"))
    head, body = rep(200, b"0123456789")[:-10], b"0123456789"
    (first,) = decoder.server(head + body[:4])
    (second,) = decoder.server(body[4:9])
    (third,) = decoder.server(body[9:])
    assert (first.kind, first.last, first.info["body"]) == (Kind.REPLY, False, b"0123")
    assert (second.kind, second.last) == (Kind.PART, False)
    assert (third.kind, third.last, third.number, third.info["body"]) == (Kind.PART, True, 1, body)


def test_a_body_without_length_ends_with_the_connection():
    decoder = HttpDecoder()
    decoder.client(req("POST /c"))
    (first,) = decoder.server(b"HTTP/1.0 200 OK\r\n\r\nabc")
    (second,) = decoder.server(b"def")
    (third,) = decoder.server_end()
    assert [unit.last for unit in (first, second, third)] == [False, False, True]
    assert third.info["body"] == b"abcdef"


def test_replies_without_a_body_are_complete_with_their_head():
    sent = req("HEAD /a") + req("GET /b") + req("POST /c")
    answers = rep(200, content_length="500") + rep(304, content_length="500") + rep(204)
    units = talk(sent, answers)
    assert [(unit.number, unit.last) for unit in replies(units)] == [(1, True), (2, True), (3, True)]


def test_expect_gives_out_the_head_first_and_interim_replies_are_control():
    head = req("POST /c", expect="100-continue", content_length="4")
    units = talk(head, rep(100), b"body", rep(201, b"ok"))
    request, *parts = units["client"]
    assert request.raw == head
    assert (request.kind, request.last, request.change) == (Kind.REQUEST, False, YES)
    assert {unit.kind for unit in parts} == {Kind.PART}
    assert parts[-1].last
    assert [(unit.kind, unit.number) for unit in units["server"]][:2] == [(Kind.CONTROL, 0), (Kind.REPLY, 1)]


def test_a_refused_expectation_leaves_the_connection_readable():
    head = req("POST /c", expect="100-continue", content_length="4")
    units = talk(head, rep(417))
    assert replies(units)[0].change is NO


@pytest.mark.parametrize(
    ("line", "answer"),
    [("GET /ws", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"), ("CONNECT x:443", rep(200))],
)
def test_an_upgrade_and_a_tunnel_turn_opaque(line, answer):
    units = talk(req(line), answer + b"\x81\x00", b"\x81\x80abcd")
    assert units["server"][0].kind is Kind.REPLY
    assert units["server"][1].kind is Kind.OPAQUE
    assert "became" in units["server"][1].note
    assert [unit.kind for unit in units["client"]] == [Kind.REQUEST, Kind.OPAQUE]


def test_a_refused_connect_stays_http():
    units = talk(req("CONNECT x:443"), rep(403), req("GET /"), rep(200))
    assert [unit.number for unit in replies(units)] == [1, 2]


def test_http2_is_told():
    (unit,) = HttpDecoder().client(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert unit.kind is Kind.OPAQUE
    assert "HTTP/2" in unit.note


def test_tls_is_told():
    assert "http://" in HttpDecoder().client(b"\x16\x03\x01\x00\xa5")[0].note


def test_a_reply_nobody_asked_for_is_control():
    (unit,) = talk(b"", rep(408))["server"]
    assert (unit.kind, unit.number, unit.failed) == (Kind.CONTROL, 0, True)


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01",
        b"AMQP\x00\x00\x09\x01",
        b"*1\r\n$4\r\nPING\r\n",
        b"GET /\r\n\r\n",
        req("POST /", content_length="-1"),
        b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n",
        b"POST / HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n",
    ],
)
def test_what_is_no_http_turns_opaque_at_once(data):
    units = talk(data)["client"]
    assert units[-1].kind is Kind.OPAQUE
    assert "not http" in units[-1].note
    assert HttpDecoder().client(data)  # not held until the connection ends


def test_a_long_body_is_given_out_as_head_and_parts():
    body = b"x" * (MAX_HELD + 500_000)
    got = feed(HttpDecoder(), [("client", req("POST /c", body)), ("server", rep(201))], cut_at([65536]))
    head, *parts = got["client"]
    assert (head.shape, head.last, head.change) == ("http POST /c", False, YES)
    assert len(head.raw) < MAX_HELD + 200_000
    assert parts[-1].last
    assert replies(got)[0].number == 1


PIECES = st.sampled_from(
    [req("POST /a", b"xy"), req("GET /b"), req("HEAD /"),
     req("POST /c", b"3\r\nabc\r\n0\r\n\r\n", transfer_encoding="chunked"),
     req("POST /d", expect="100-continue", content_length="2"), req("CONNECT x:1"), b"ab", b"\r\n",
     b"GET / HTTP/1.1\r\n", b"a: b\r\n", b" folded\r\n", b"content-length: 3\r\n"]
)  # fmt: skip
ANSWERS = st.sampled_from(
    [rep(200, b"xy"), rep(100), rep(204), rep(101), rep(500), b"HTTP/1.1 200\r\n\r\n", b"ab", b"\r\n",
     b"HTTP/1.1 200 OK\r\n", rep(200, b"3\r\nabc\r\n0\r\n\r\n", transfer_encoding="chunked"),
     b"transfer-encoding: chunked\r\n", b"0\r\n"]
)  # fmt: skip
TURNS = st.lists(
    st.one_of(
        st.tuples(st.just("client"), st.one_of(PIECES, PIECES, st.binary(max_size=12))),
        st.tuples(st.just("server"), st.one_of(ANSWERS, ANSWERS, st.binary(max_size=12))),
    ),
    max_size=20,
)


@FUZZ
@given(TURNS, st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_any_bytes_give_the_same_units_however_they_are_cut(turns, sizes):
    got = same_however_cut(HttpDecoder, turns, sizes, CHUNKY)
    assert not any("decoder failed" in unit.note for units in got.values() for unit in units)


@FUZZ
@given(
    st.sampled_from(["POST", "PUT", "GET"]),
    st.lists(st.binary(min_size=1, max_size=300), max_size=5),
    st.booleans(),
)
def test_requests_that_h11_writes_are_read_the_same(method, pieces, chunked):
    connection = h11.Connection(h11.CLIENT)
    size = sum(map(len, pieces))
    framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(size))
    request = h11.Request(method=method, target="/x", headers=[("Host", "a"), framing])
    data = connection.send(request) or b""
    for piece in pieces:
        data += connection.send(h11.Data(data=piece)) or b""
    data += connection.send(h11.EndOfMessage()) or b""
    first, second = feed(HttpDecoder(), [("client", data * 2)], cut_at([13]))["client"]
    assert first.raw == second.raw == data
    assert first.info["body"] == b"".join(pieces)


def test_a_json_body_is_shown_and_a_binary_one_is_not():
    shown = json.dumps({"invoice": 1000017}).encode()
    (request,) = talk(req("POST /c", shown, content_type="application/json"))["client"]
    assert "1000017" in request.summary
    (request,) = talk(req("POST /c", b"\x89PNG\x00", content_type="image/png"))["client"]
    assert request.summary == "POST /c <5 bytes>"
