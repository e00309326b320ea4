"""Messages of PostgreSQL's protocol, built for tests."""

from __future__ import annotations

import struct

from jobcheck.wire.postgres import PostgresDecoder

Text = str | bytes


def msg(kind: str, body: bytes = b"") -> bytes:
    return kind.encode() + struct.pack(">I", len(body) + 4) + body


def z(text: Text) -> bytes:
    return (text if isinstance(text, bytes) else text.encode()) + b"\0"


STARTUP_BODY = struct.pack(">I", 196608) + z("user") + z("app") + z("database") + z("shop") + b"\0"
STARTUP = struct.pack(">I", len(STARTUP_BODY) + 4) + STARTUP_BODY
SSL = struct.pack(">II", 8, 80877103)
GSS = struct.pack(">II", 8, 80877104)
AUTH_OK = msg("R", struct.pack(">I", 0))
READY = AUTH_OK + msg("S", z("server_version") + z("15.1")) + msg("K", struct.pack(">II", 4711, 99)) + msg("Z", b"I")

SYNC, FLUSH, COPY_DONE = msg("S"), msg("H"), msg("c")


def query(sql: Text) -> bytes:
    return msg("Q", z(sql))


def parse(sql: Text, name: str = "", oids: tuple[int, ...] = ()) -> bytes:
    return msg("P", z(name) + z(sql) + struct.pack(f">H{len(oids)}I", len(oids), *oids))


def bind(
    name: str = "", values: tuple[bytes | None, ...] = (), formats: tuple[int, ...] = (), portal: str = ""
) -> bytes:
    body = z("") + z(name) + struct.pack(f">H{len(formats)}H", len(formats), *formats)
    body += struct.pack(">H", len(values))
    for value in values:
        body += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return msg("B", body + struct.pack(">H", 0))


def execute(portal: str = "") -> bytes:
    return msg("E", z(portal) + struct.pack(">I", 0))


def describe(name: str = "", kind: str = "S") -> bytes:
    return msg("D", kind.encode() + z(name))


def extended(sql: Text, *values: bytes | None) -> bytes:
    return parse(sql) + bind(values=values) + execute() + SYNC


def tag(text: str) -> bytes:
    return msg("C", z(text))


def ready(status: str = "I") -> bytes:
    return msg("Z", status.encode())


def error(code: str = "40001", message: str = "no", severity: str = "ERROR") -> bytes:
    return msg("E", b"S" + z(severity) + b"V" + z(severity) + b"C" + z(code) + b"M" + z(message) + b"\0")


def row(*values: bytes) -> bytes:
    body = struct.pack(">H", len(values)) + b"".join(struct.pack(">i", len(value)) + value for value in values)
    return msg("D", body)


def types(*oids: int) -> bytes:
    return msg("t", struct.pack(f">H{len(oids)}I", len(oids), *oids))


PARSED, BOUND, CLOSED, NO_DATA = msg("1"), msg("2"), msg("3"), msg("n")
ROW_DESCRIPTION = msg("T", struct.pack(">H", 0))
COPY_IN = msg("G", b"\0\0\0")
COPY_OUT = msg("H", b"\0\0\0")


def connected() -> PostgresDecoder:
    """A decoder behind the start-up."""
    decoder = PostgresDecoder()
    decoder.client(STARTUP)
    decoder.server(READY)
    return decoder
