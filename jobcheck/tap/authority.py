"""The certificate authority of one run: made when it begins, known to its processes alone, gone when it ends."""

from __future__ import annotations

import ssl
from functools import partial
from pathlib import Path

from ..errors import UsageError

VARIABLES = (
    "SSL_CERT_FILE",  # OpenSSL itself: Python's ssl, httpx, aiohttp, redis-py, Ruby, Go, Rust
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTPLIB2_CA_CERTS",
    "AWS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "DENO_CERT",
    "PGSSLROOTCERT",
    "GIT_SSL_CAINFO",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "JOBCHECK_CA",  # certifi, by the preload: some calls of requests look at no variable
)
"""Where clients look for the authorities that they trust, by language and library."""

EXTRA = 'pip install "jobcheck[tls]"'


class Authority:
    """Signs certificates for the taps. Raises UsageError when the package trustme is not there."""

    def __init__(self, folder: Path) -> None:
        try:
            import trustme
        except ImportError:
            raise UsageError("TLS needs the package trustme, which is not installed", hint=EXTRA) from None
        self._ca = trustme.CA(organization_name="jobcheck, for one test run")
        self._contexts: dict[tuple[tuple[str, ...], str], ssl.SSLContext] = {}
        self.file = folder / "ca.pem"
        """The one certificate that the processes of the run trust."""
        self._ca.cert_pem.write_to_path(str(self.file))
        self.file.chmod(0o644)

    def context(self, *names: str, protocol: str = "") -> ssl.SSLContext:
        """The server's side of TLS with a certificate of these host names or addresses.

        `protocol` is the one that is spoken inside (ALPN), for clients that want to know; so a client that could
        speak HTTP/2 speaks HTTP/1.1.
        """
        key = (names, protocol)
        if key not in self._contexts:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            if len(names) > 1:
                context.sni_callback = partial(self._by_name, names, protocol)
            self._ca.issue_cert(*names).configure_cert(context)
            if protocol:
                context.set_alpn_protocols([protocol])
            self._contexts[key] = context
        return self._contexts[key]

    def _by_name(
        self, names: tuple[str, ...], protocol: str, tls: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: object
    ) -> None:
        """A certificate of the very name that the client asks for, as a wildcard covers one label only."""
        if name and name not in names:
            tls.context = self.context(name, protocol=protocol)

    def environment(self) -> dict[str, str]:
        """The variables by which clients find the authority. They trust it alone: they reach nothing else."""
        return dict.fromkeys(VARIABLES, str(self.file))


ALPN = {"http": "http/1.1", "postgres": "postgresql"}
"""What a protocol is called in a TLS handshake, where clients ask for it."""
