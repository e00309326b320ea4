"""TLS on a connection that should be plain: how it is recognised, and what the user is told."""

from __future__ import annotations

TLS_UNDECIDED = None
"""`client_hello` needs more bytes."""

_HANDSHAKE = 0x16
_MAJOR = 0x03


def client_hello(start: bytes) -> bool | None:
    """Whether the first bytes of a client begin a TLS handshake; `TLS_UNDECIDED` when too few of them are here."""
    if not start:
        return TLS_UNDECIDED
    if start[0] != _HANDSHAKE:
        return False
    if len(start) == 1:
        return TLS_UNDECIDED
    return start[1] == _MAJOR


def tls_note(protocol: str, advice: str = "") -> str:
    """One sentence: what was seen, and what to do about it."""
    advice = advice or "give the worker a plaintext URL in the tests"
    return (
        f"a TLS handshake was seen where plain {protocol} was expected, so nothing on this connection can be decoded: "
        f"{advice}"
    )
