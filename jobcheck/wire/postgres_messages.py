"""The messages of PostgreSQL's protocol 3: how bodies are read. Everything here raises WireError and nothing else."""

from __future__ import annotations

import re
import struct
import uuid
from typing import NamedTuple

from .unit import WireError

CLIENT_TYPES = frozenset(b"QPBDECSHFXdcfp")
SERVER_TYPES = frozenset(b"RSKZTDCIEN123nstGHWdcAVv")
MAX_LENGTH = 0x3FFFFFFF + 4
"""PostgreSQL's own bound of a message."""

SSL_REQUEST = 80877103
GSS_REQUEST = 80877104
CANCEL_REQUEST = 80877102
MAX_STARTUP = 10_000

BODY_CAP = 256 * 1024
"""Bytes of one message that are looked at."""
MAX_PARAMS = 200
PARAM_CAP = 64 * 1024

_PLACEHOLDER = re.compile(r"\$(\d{1,4})")
_INTEGERS = {21: ">h", 23: ">i", 20: ">q", 26: ">I", 28: ">I"}
_FLOATS = {700: ">f", 701: ">d"}
_UUID, _BOOL, _JSONB = 2950, 16, 3802
_TEXTS = frozenset((18, 19, 25, 114, 142, 1042, 1043))

Param = str | int | float | bool | bytes | None


def text_at(body: bytes, pos: int) -> tuple[str, int]:
    """The zero-terminated text at `pos`, and the position behind it. A cut-off text ends with the body."""
    end = body.find(b"\0", pos)
    if end < 0:
        end = len(body)
    return body[pos:end].decode("utf-8", "replace"), end + 1


def number_at(body: bytes, pos: int, form: str = ">H") -> tuple[int, int]:
    """The number at `pos`, and the position behind it."""
    size = struct.calcsize(form)
    if pos < 0 or pos + size > len(body):
        raise WireError("a message is shorter than its content")
    return int(struct.unpack_from(form, body, pos)[0]), pos + size


def startup_parameters(body: bytes) -> dict[str, str]:
    """User, database and settings of a StartupMessage, whose length and version are skipped."""
    found: dict[str, str] = {}
    pos = 8
    while pos < len(body) and body[pos]:
        name, pos = text_at(body, pos)
        value, pos = text_at(body, pos)
        found[name] = value
    return found


class Parse(NamedTuple):
    name: str
    sql: str
    oids: tuple[int, ...]


def read_parse(body: bytes) -> Parse:
    """A Parse message; of one that was cut off the types are missing."""
    name, pos = text_at(body, 0)
    sql, pos = text_at(body, pos)
    if pos + 2 > len(body):
        return Parse(name, sql, ())
    count, pos = number_at(body, pos)
    count = min(count, (len(body) - pos) // 4)
    return Parse(name, sql, struct.unpack_from(f">{count}I", body, pos))


class Bind(NamedTuple):
    portal: str
    statement: str
    formats: tuple[int, ...]
    values: list[bytes | None]


def read_bind(body: bytes) -> Bind:
    """A Bind message; of one that was cut off only the first values are here."""
    portal, pos = text_at(body, 0)
    statement, pos = text_at(body, pos)
    if pos + 4 > len(body):
        return Bind(portal, statement, (), [])
    count, pos = number_at(body, pos)
    count = min(count, (len(body) - pos) // 2)
    formats = struct.unpack_from(f">{count}H", body, pos)
    pos += 2 * count
    values: list[bytes | None] = []
    if pos + 2 > len(body):
        return Bind(portal, statement, formats, values)
    count, pos = number_at(body, pos)
    while len(values) < min(count, MAX_PARAMS) and pos + 4 <= len(body):
        size, pos = number_at(body, pos, ">i")
        values.append(None if size < 0 else body[pos : pos + min(size, PARAM_CAP)])
        pos += max(size, 0)
    return Bind(portal, statement, formats, values)


def read_params(bind: Bind, oids: tuple[int, ...]) -> tuple[Param, ...]:
    """The parameters as Python values, where their type is known and simple; otherwise text, or bytes."""
    found: list[Param] = []
    for index, value in enumerate(bind.values):
        formats = bind.formats
        binary = (formats[index] if index < len(formats) else formats[0] if len(formats) == 1 else 0) == 1
        oid = oids[index] if index < len(oids) else 0
        found.append(None if value is None else _binary(value, oid) if binary else value.decode("utf-8", "replace"))
    return tuple(found)


def _binary(value: bytes, oid: int) -> Param:
    form = _INTEGERS.get(oid) or _FLOATS.get(oid)
    if form and struct.calcsize(form) == len(value):
        number: int | float = struct.unpack(form, value)[0]
        return number
    if oid == _BOOL and len(value) == 1:
        return value != b"\0"
    if oid == _UUID and len(value) == 16:
        return str(uuid.UUID(bytes=value))
    if oid == _JSONB and value[:1] == b"\x01":
        return value[1:].decode("utf-8", "replace")
    if oid in _TEXTS:
        return value.decode("utf-8", "replace")
    if oid == 0 and value.isascii() and (text := value.decode()).isprintable():
        return text
    return value


def with_params(sql: str, params: tuple[Param, ...]) -> str:
    """The SQL with `$1` replaced by its value, for a person to read."""
    if not params or len(sql) > 4000:
        return sql

    def value(match: re.Match[str]) -> str:
        index = int(match.group(1)) - 1
        if not 0 <= index < len(params):
            return match.group()
        item = params[index]
        if item is None:
            return "NULL"
        if isinstance(item, bytes):
            return f"<{len(item)} bytes>"
        return f"'{item[:80]}'" if isinstance(item, str) else str(item)

    return _PLACEHOLDER.sub(value, sql)


def error_fields(body: bytes) -> dict[str, str]:
    """The fields of an ErrorResponse or NoticeResponse by their letter."""
    found: dict[str, str] = {}
    pos = 0
    while pos < len(body) and body[pos]:
        text, after = text_at(body, pos + 1)
        found[chr(body[pos])] = text
        pos = after
    return found


def tag_count(tag: str) -> int:
    """The number of rows in a command tag, -1 when it names none."""
    last = tag.rpartition(" ")[2]
    return int(last) if last.isdigit() and len(last) < 19 else -1
