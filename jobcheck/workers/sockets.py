"""Which process owns a connection, and whom a process tree talks to.

On Linux one connection is looked up in the kernel's socket index by its two ends (about 0.1 ms, whatever else is open),
or by one end (some ms). Where that index cannot be asked, `/proc/net/tcp` is read, which took 35 ms on a machine with
7,000 connections in TIME_WAIT: a busy test run has as many. Elsewhere psutil is asked.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .platform import LINUX

_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_DUMP = 0x300
_DONE = 3
_ERROR = 2
_HEADER = struct.Struct("=IHHII")
_INODE = struct.Struct("=I")
_ANY_COOKIE = b"\xff" * 8
_LISTEN = 10
_ALIVE = 0xFFF & ~(1 << 6)
"""The states of TCP sockets that a process can hold: all but TIME_WAIT."""


def owners(pids: Iterable[int], client_port: int, server_port: int = 0, server_host: str = "127.0.0.1") -> list[int]:
    """The processes among `pids` that hold the client end of a loopback TCP connection.

    `server_port` and `server_host` are where the tap listens; with them the lookup is fast. More than one process: the
    socket was made before a fork.
    """
    if not LINUX:
        return _psutil_owners(pids, client_port, server_port)
    inodes = {found} if server_port and (found := _diag_inode(client_port, server_host, server_port)) else set[int]()
    if not inodes:
        inodes = {
            row.inode
            for row in _tcp_rows(client_port)
            if row.local[1] == client_port and (not server_port or row.remote[1] == server_port)
        }
    inodes.discard(0)
    return [pid for pid in pids if inodes & socket_inodes(pid)] if inodes else []


def peers(pids: Iterable[int]) -> list[tuple[str, int]]:
    """The foreign ends of all connections of `pids`: `(host, port)`, or `("unix:/path", 0)` for a Unix socket.

    Connections among `pids`, socket pairs, and connections that others made to a port of `pids` are left out.
    """
    pids = list(pids)
    if not LINUX:
        return _psutil_peers(pids)
    mine: set[int] = set()
    for pid in pids:
        mine |= socket_inodes(pid)
    rows = [row for row in [*_tcp_rows(only=mine), *_rows("udp"), *_rows("udp6")] if row.inode in mine]
    served = {row.local[1] for row in rows if row.state == _LISTEN}
    found = {row.remote for row in rows if row.remote[1] and row.local[1] not in served and row.remote[1] not in served}
    found |= {(f"unix:{path}", 0) for path in _unix_peers(mine)}
    return sorted(found)


def socket_inodes(pid: int) -> set[int]:
    """The inodes of all sockets that `pid` has open; empty when it is gone or not ours to look at. Linux only."""
    folder = f"/proc/{pid}/fd"
    found = set()
    try:
        names = os.listdir(folder)  # noqa: PTH208 - on the hot path
    except OSError:
        return set()
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")  # noqa: PTH115
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(int(target[8:-1]))
    return found


@dataclass(frozen=True, slots=True)
class _Row:
    """One socket."""

    local: tuple[str, int]
    remote: tuple[str, int]
    state: int
    inode: int


def _rows(table: str) -> Iterator[_Row]:
    """The sockets in a table of `/proc/net`."""
    try:
        lines = Path("/proc/net", table).read_text().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        fields = line.split()
        yield _Row(_end(fields[1]), _end(fields[2]), int(fields[3], 16), int(fields[9]))


def _tcp_rows(local_port: int = 0, only: set[int] | None = None) -> list[_Row]:
    """All TCP sockets that processes hold, or those with one local port, or with these inodes: the others of the
    machine, hundreds on a busy one, are not read any further."""
    bodies = []
    for family in (socket.AF_INET, socket.AF_INET6):
        ends = struct.pack(">HH", local_port, 0) + bytes(32) + struct.pack("=I", 0) + _ANY_COOKIE
        request = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, _ALIVE) + ends
        bodies += _diag(request, _DUMP)
    if not bodies:
        return [*_rows("tcp"), *_rows("tcp6")]
    return [_diag_row(body) for body in bodies if only is None or _inode(body) in only]


def _inode(body: bytes) -> int:
    return int(_INODE.unpack_from(body, 68)[0])


def _diag_row(body: bytes) -> _Row:
    size = 4 if body[0] == socket.AF_INET else 16
    local_port, remote_port = struct.unpack_from(">HH", body, 4)
    local, remote = _host(body[8 : 8 + size]), _host(body[24 : 24 + size])
    return _Row((local, local_port), (remote, remote_port), body[1], _inode(body))


def _end(text: str) -> tuple[str, int]:
    """`0100007F:1F90` -> `("127.0.0.1", 8080)`: addresses are written as native 32-bit words."""
    host, _, port = text.partition(":")
    words = [int(host[at : at + 8], 16) for at in range(0, len(host), 8)]
    return _host(struct.pack(f"={len(words)}I", *words)), int(port, 16)


def _host(raw: bytes) -> str:
    """An address as text; an IPv4 address that an IPv6 socket uses, as IPv4."""
    if len(raw) == 16 and raw[:12] == b"\0" * 10 + b"\xff\xff":
        raw = raw[12:]
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)


def _diag_inode(client_port: int, server_host: str, server_port: int) -> int:
    """The inode of the client's socket of a loopback connection, from the kernel's own index; 0 when it has none."""
    family = socket.AF_INET6 if ":" in server_host else socket.AF_INET
    server = socket.inet_pton(family, server_host).ljust(16, b"\0")
    # A client that is not bound to an address gets 127.0.0.1, whatever address of 127.0.0.0/8 it talks to.
    for client_host in dict.fromkeys(["::1" if ":" in server_host else "127.0.0.1", server_host]):
        client = socket.inet_pton(family, client_host).ljust(16, b"\0")
        ends = struct.pack(">HH", client_port, server_port) + client + server + struct.pack("=I", 0) + _ANY_COOKIE
        request = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + ends
        for body in _diag(request, 0):
            return _inode(body)
    return 0


def _unix_peers(mine: set[int]) -> set[str]:
    """The names of the Unix sockets that the sockets `mine` are connected to."""
    show_name, show_peer = 1, 4
    request = struct.pack("=BBHIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, show_name | show_peer, 0) + _ANY_COOKIE
    names: dict[int, str] = {}
    peer_of: dict[int, int] = {}
    for body in _diag(request, _DUMP):
        inode = struct.unpack_from("=I", body, 4)[0]
        at = 16
        while at + 4 <= len(body):
            length, kind = struct.unpack_from("=HH", body, at)
            value = body[at + 4 : at + length]
            if kind == 0 and value:
                names[inode] = ("@" + value[1:].decode(errors="replace")) if value[0] == 0 else _path(value)
            elif kind == 2 and len(value) == 4:
                peer_of[inode] = struct.unpack("=I", value)[0]
            at += max(4, (length + 3) & ~3)
    # A server's accepted socket has the name of the listener; the client's own end usually has none.
    return {
        names[peer]
        for inode, peer in peer_of.items()
        if inode in mine and peer not in mine and peer in names and inode not in names
    }


def _path(value: bytes) -> str:
    return value.split(b"\0", 1)[0].decode(errors="replace")


def _diag(request: bytes, flags: int) -> list[bytes]:
    """One question to the kernel's socket index; the bodies of the answers, none when it is not there to ask."""
    bodies: list[bytes] = []
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as link:
            link.settimeout(1.0)
            link.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _REQUEST | flags, 1, 0) + request)
            while True:
                data = link.recv(1 << 17)
                at = 0
                while at + _HEADER.size <= len(data):
                    length, kind, *_ = _HEADER.unpack_from(data, at)
                    if kind in (_DONE, _ERROR) or length < _HEADER.size:
                        return bodies
                    bodies.append(data[at + _HEADER.size : at + length])
                    at += (length + 3) & ~3
                if not flags & _DUMP:
                    return bodies
    except OSError:
        return bodies


def _psutil_ends(pid: int, kind: str) -> list[Any]:
    """The sockets of a process. Raises psutil.Error."""
    import psutil

    process = psutil.Process(pid)
    # Its name before psutil 6, where the new one is not known; later the old one warns.
    ends = getattr(process, "net_connections", None) or process.connections
    return list(ends(kind))


def _psutil_owners(pids: Iterable[int], client_port: int, server_port: int) -> list[int]:
    import psutil

    found = []
    for pid in pids:
        try:
            ends = _psutil_ends(pid, "tcp")
        except psutil.Error:
            continue
        if any(
            one.laddr and one.laddr.port == client_port and one.raddr and server_port in (0, one.raddr.port)
            for one in ends
        ):
            found.append(pid)
    return found


def _psutil_peers(pids: list[int]) -> list[tuple[str, int]]:
    import psutil

    found: set[tuple[str, int]] = set()
    served: set[int] = set()
    for pid in pids:
        try:
            ends = _psutil_ends(pid, "all")
        except psutil.Error:
            continue
        for one in ends:
            if one.family == socket.AF_UNIX:
                if one.raddr:
                    found.add((f"unix:{one.raddr}", 0))
            elif one.status == psutil.CONN_LISTEN:
                served.add(one.laddr.port)
            elif one.raddr:
                found.add((one.raddr.ip, one.raddr.port))
    return sorted(one for one in found if one[1] not in served)
