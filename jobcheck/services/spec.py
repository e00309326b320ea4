"""What a user says about an upstream, as data. Starting one is the business of the other modules here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlsplit

from ..errors import UsageError
from ..faults.outages import Beyond, Capacity
from ..scenario import units

A_CAPACITY = "write capacity='50/s'"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, and everything else its URL says. Rigs format its properties into variables."""

    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = ""
    path: str = ""
    """Without the leading slash: a database name or number, a virtual host."""
    query: str = ""

    @classmethod
    def parse(cls, url: str, default_port: int = 0) -> Address:
        """Raises ValueError when `url` has no scheme or host."""
        parts = urlsplit(url)
        if not parts.scheme or not parts.hostname:
            raise ValueError(f"expected a URL like redis://127.0.0.1:6379/0, got {url!r}")
        return cls(
            scheme=parts.scheme,
            host=parts.hostname,
            port=parts.port or default_port,
            user=parts.username or "",
            password=parts.password or "",
            path=parts.path.lstrip("/"),
            query=parts.query,
        )

    @property
    def netloc(self) -> str:
        login = ""
        if self.user or self.password:
            login = quote(self.user, safe="") + (f":{quote(self.password, safe='')}" if self.password else "") + "@"
        return f"{login}{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """An HTTP address ends without a slash: apps write `f"{url}/charges"`."""
        if self.scheme in ("http", "https") and not self.path:
            return self.base
        return f"{self.scheme}://{self.netloc}/{self.path}" + (f"?{self.query}" if self.query else "")

    @property
    def base(self) -> str:
        """The URL without a trailing slash or path: for HTTP clients that add their own paths."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def name(self) -> str:
        """The database name, number or virtual host."""
        return self.path


STARTTLS = "starttls"
THIS = "this"
"""In `environ` and `overlays` of an upstream: its own address."""
AOF, SNAPSHOT, NOTHING = "aof", "snapshot", ""


@dataclass(frozen=True, slots=True)
class Redis:
    """A Redis or Valkey server. `url=None`: a private one is started.

    `keeps` is what a private server finds on disk when a scenario restarts or kills it, so that it fails as yours does:
    `aof` (appendonly yes), `snapshot` (Redis' own default: a kill loses what came since the last snapshot), or an empty
    text (a cache without persistence).
    """

    url: str | None = None
    allow_host: str = ""
    """A host other than loopback that `url` may name."""
    tls: bool = False
    """The app speaks TLS (`rediss://`): the tap ends it, and speaks plainly to the server."""
    kind: str = "redis"
    keeps: str = AOF

    def __post_init__(self) -> None:
        if self.keeps not in (AOF, SNAPSHOT, NOTHING):
            raise UsageError(f"expected keeps='aof', 'snapshot' or '' of a Redis, got {self.keeps!r}")


@dataclass(frozen=True, slots=True)
class Postgres:
    """A PostgreSQL server. `url=None`: a private one is started.

    `setup` prepares the template database once: a path to a `.sql` file, or a shell command that is run with the
    rig's environment plus `PGHOST`, `PGPORT`, `PGUSER`, `PGDATABASE` and `DATABASE_URL`. Lanes get clones of it.
    """

    url: str | None = None
    setup: str = ""
    version: str = ""
    """The major version that it must have, such as `16`; empty: any."""
    extensions: Sequence[str] = ()
    """Extensions that are created before the setup: `["pgcrypto", "postgis"]`."""
    cache: bool = True
    """Whether the prepared template is kept for later runs, where all that it depends on is known: migrations of
    Django and Alembic, `.sql` files."""
    allow_host: str = ""
    tls: bool = False
    """The app speaks TLS (`sslmode=require`): the tap ends it, and speaks plainly to the server."""
    kind: str = "postgres"


@dataclass(frozen=True, slots=True)
class RabbitMQ:
    """A RabbitMQ server. `url=None`: a private one is started."""

    url: str | None = None
    allow_host: str = ""
    tls: bool = False
    """The app speaks TLS (`amqps://`): the tap ends it, and speaks plainly to the server."""
    kind: str = "rabbitmq"


@dataclass(frozen=True, slots=True)
class Webhook:
    """A callback: `jobcheck.webhook(on="POST /charges", to="{web.url}/hooks/payments", times=2, after=0.2)`.

    Each accepted call of the route `on` is told to the address `to`, a template as those of the rig's env. What is
    sent is `body`, in which `{id}` is what the call made and `{NAME}` a field of the call; without one, an event with
    the call's fields and the id.
    """

    on: str
    to: str
    body: Mapping[str, Any] | None = None
    times: int = 1
    """How often it comes: 2 is a callback that is delivered twice."""
    after: float = 0.0
    """Seconds from the provider's answer until it comes."""
    early: bool = False
    """It comes before the provider's answer, so before the job can have committed what it was told."""
    secret: str = ""
    """Signs it as Stripe does (`Stripe-Signature`)."""
    tries: int = 3
    """An answer other than 2xx, or none, is followed by another try, so many in all."""
    event: str = ""
    """`stripe`: the body is an event of Stripe's."""

    def __post_init__(self) -> None:
        """Raises UsageError."""
        if len(self.on.split()) != 2 or not self.to:
            raise UsageError(
                f"webhook: expected on='METHOD /path' and the address to call, got {self.on!r} and {self.to!r}",
                hint='jobcheck.webhook(on="POST /charges", to="{web.url}/hooks/payments")',
            )
        if self.times < 1 or self.tries < 1 or self.after < 0:
            raise UsageError("webhook: expected times and tries of 1 or more, and after of 0 or more seconds")
        if self.early and self.after:
            raise UsageError("webhook: it comes early, before the answer, or some seconds after it: not both")


@dataclass(frozen=True, slots=True)
class Provider:
    """A stand-in for an HTTP provider. Every accepted call is an effect, unless `idempotency` names the header by
    which the provider recognises a repeated one."""

    idempotency: str = ""
    routes: dict[str, Any] = field(default_factory=dict)
    """`{"POST /charges": {"status": 201, "json": {...}}}`; what is not named is answered 200 or 201 with an id."""
    tls: bool = False
    """The app speaks TLS (`https://`): the tap ends it."""
    host: str = ""
    """The provider's real name, `api.example.com` or `*.example.com` (several with commas), where the app has it built
    in: clients that keep to HTTPS_PROXY are led to the stand-in, with a certificate of that name."""
    capacity: str | float = ""
    """Calls that it can serve, `50/s` or a number a second; empty: any number."""
    queue: int | None = None
    """Calls that wait for their turn; None: any number."""
    beyond: Beyond = 503
    """What those beyond the queue are told; `slow`: they wait as well."""
    upstream: str = ""
    """The URL of a mock or a sandbox that answers what no route does: ledger and idempotency keys stand before it."""
    allow_host: str = ""
    """A host other than loopback that `upstream` may name."""
    stand_in: str = ""
    """Who answers what no route does: one of `runner.presets`; empty: ids and echoes."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Variables by which the app's client finds it; `{this.base}` and the like are its own address."""
    overlays: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Values by path, by the module that they are laid over as soon as the app has imported it:
    `{"stripe": {"api_base": "{this.base}"}}`."""
    webhook: Webhook | Sequence[Webhook] = ()
    """What it calls back."""
    idempotency_for: str | float = "24h"
    """How long a key is remembered, `10m` or a number of seconds, on the job's clock."""
    kind: str = "provider"

    @property
    def webhooks(self) -> tuple[Webhook, ...]:
        return (self.webhook,) if isinstance(self.webhook, Webhook) else tuple(self.webhook)

    def __post_init__(self) -> None:
        """Raises UsageError for a capacity that is none."""
        if self.capacity == "" and (self.queue is not None or self.beyond != 503):
            raise UsageError(f"provider: queue and beyond belong to a capacity, and there is none; {A_CAPACITY}")
        if self.queue is not None and (not isinstance(self.queue, int) or isinstance(self.queue, bool)):
            raise UsageError(f"provider: expected queue to be a whole number, got {self.queue!r}")
        if self.queue is not None and self.queue < 0:
            raise UsageError(f"provider: expected queue to be 0 or more, got {self.queue}")
        if self.beyond != "slow" and not (isinstance(self.beyond, int) and 400 <= self.beyond <= 599):
            raise UsageError(f"provider: expected beyond to be a status such as 503, or 'slow', got {self.beyond!r}")
        if not self.idempotency and self.idempotency_for != "24h":
            raise UsageError("provider: idempotency_for belongs to idempotency, the header that has the keys")
        _ = self.limit, self.keys_live

    @property
    def keys_live(self) -> float:
        """Seconds that an idempotency key is remembered. Raises UsageError."""
        try:
            text = self.idempotency_for
            seconds = units.duration(text) if isinstance(text, str) else text
        except units.NoUnit as error:
            near = f"; did you mean {error.near!r}?" if error.near else ""
            raise UsageError(
                f"provider: expected idempotency_for to be {error}, got {self.idempotency_for!r}{near}"
            ) from None
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
            raise UsageError(f"provider: expected idempotency_for to be {units.A_DURATION}, got {text!r}")
        return float(seconds)

    @property
    def limit(self) -> Capacity | None:
        """The capacity as data. Raises UsageError."""
        if self.capacity == "":
            return None
        rate = self.capacity
        if isinstance(rate, str):
            try:
                rate = units.rate(rate)
            except units.NoUnit as error:
                near = f"; did you mean {error.near!r}?" if error.near else ""
                raise UsageError(f"provider: expected capacity to be {error}, got {self.capacity!r}{near}") from None
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not rate > 0:
            raise UsageError(f"provider: expected capacity to be {units.A_RATE}, got {self.capacity!r}")
        return Capacity(float(rate), self.queue, self.beyond)


@dataclass(frozen=True, slots=True)
class Smtp:
    """A mail server that accepts everything and delivers nothing."""

    tls: bool | str = False
    """True: the app speaks TLS from the first byte (port 465). `starttls`: it begins plainly and asks for TLS (587).
    The tap ends it."""
    kind: str = "smtp"

    def __post_init__(self) -> None:
        """Raises UsageError for another word."""
        if self.tls not in (True, False, STARTTLS):
            raise UsageError(f"smtp: expected tls to be True or {STARTTLS!r}, got {self.tls!r}")


UpstreamSpec = Redis | Postgres | RabbitMQ | Provider | Smtp


def secured(address: Address) -> Address:
    """The address as an app names it that speaks TLS there: `rediss://`, `amqps://`, `https://`, `?sslmode=require`."""
    scheme, query = _SECURE.get(address.scheme, (address.scheme, ""))
    return replace(address, scheme=scheme, query="&".join(filter(None, [address.query, query])))


_SECURE = {
    # Celery wants the word in the URL; redis-py checks the certificate with it as without it
    "redis": ("rediss", "ssl_cert_reqs=required"),
    "postgresql": ("postgresql", "sslmode=require"),
    "amqp": ("amqps", ""),
    "http": ("https", ""),
}


def hosts_of(spec: object) -> tuple[str, ...]:
    """The fixed host names that an upstream stands for."""
    return tuple(filter(None, (name.strip() for name in getattr(spec, "host", "").split(","))))


def wants_tls(spec: object) -> bool:
    """Whether the app speaks TLS to this upstream."""
    return bool(getattr(spec, "tls", False) or getattr(spec, "host", ""))
