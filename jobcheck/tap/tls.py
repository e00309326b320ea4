"""The server's end of one TLS connection, without I/O: what a tap does with a worker that insists on TLS.

It works on bytes and not on a transport. So one way serves a TLS endpoint, Postgres's SSLRequest and a CONNECT tunnel,
it can begin at any byte of a connection, and the alert by which a client refuses the certificate is seen (asyncio's own
TLS transports tell nobody of it).
"""

from __future__ import annotations

import ssl

PIECE = 256 * 1024
"""Bytes that are decrypted at once."""
DISTRUST = ("UNKNOWN_CA", "CERTIFICATE_UNKNOWN", "BAD_CERTIFICATE")
"""Ends of the alerts that clients send about a certificate that they do not trust (OpenSSL, Java, Go)."""


class TlsEnd:
    """`receive` decrypts, `send` encrypts, `outgoing` is what must go to the client now."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)
        self._waiting: list[bytes] = []
        self.ready = False
        """The handshake is done."""
        self.over = False
        """The client has said that it will send no more."""

    def receive(self, data: bytes) -> bytes:
        """What the client said, decrypted, as far as it is here. Raises ssl.SSLError when it broke the connection."""
        self._in.write(data)
        if not self.ready:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                return b""
            self.ready = True
            self._flush()
        plain = []
        while not self.over:
            try:
                piece = self._tls.read(PIECE)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                piece = b""
            plain.append(piece)
            self.over = not piece
        return b"".join(plain)

    def send(self, data: bytes) -> None:
        """Encrypts; what is sent before the end of the handshake waits for it."""
        self._waiting.append(data)
        if self.ready:
            self._flush()

    def outgoing(self) -> bytes:
        """Encrypted bytes for the client, since the last call."""
        return self._out.read()

    def close(self) -> None:
        """Says that we will send no more."""
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass  # it waits for the client's own word, or there never was a connection

    def _flush(self) -> None:
        rest = memoryview(b"".join(self._waiting))
        self._waiting.clear()
        while rest:
            rest = rest[self._tls.write(rest) :]


def refusal(error: ssl.SSLError) -> str:
    """One sentence about a handshake or a connection that the client broke."""
    reason = error.reason or str(error)
    if reason.endswith(DISTRUST):
        return (
            "the client does not trust jobcheck's certificate: it pins one or brings its own CA bundle; "
            "point that at the file that SSL_CERT_FILE names in the worker's environment, or give it the plain address"
        )
    return f"TLS failed: {reason.replace('_', ' ').lower()}"


BROKEN_OFF = (
    "the client broke off the TLS handshake without a word: it may not trust jobcheck's certificate "
    "(it pins one, or brings its own CA bundle)"
)
PLAIN = "plain traffic came to an address that is declared with tls=True: in production that server would not answer"
