"""From what was found to a rig: which upstreams there are, and how their addresses reach the app. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from .scan import URLISH, Scan

OWN_ADDRESS = re.compile(
    r"SITE|FRONTEND|PUBLIC|ORIGIN|STATIC|MEDIA|CDN|^BASE_URL$|LOGIN|LOGOUT|REDIRECT|ADMIN|DOCS", re.I
)
"""Settings that hold the app's own address, and not a provider's."""
NO_UPSTREAM = re.compile(r"SENTRY|LOGGING|STATSD|OTEL|TELEMETRY|^ALLOWED_HOSTS|SECRET|NEWRELIC|^SECURE_", re.I)
KINDS = {
    **dict.fromkeys(("redis", "rediss", "valkey"), "redis"),
    **dict.fromkeys(("postgres", "postgresql", "postgis", "psql", "pgsql"), "postgres"),
    **dict.fromkeys(("amqp", "amqps", "pyamqp"), "rabbitmq"),
    **dict.fromkeys(("http", "https"), "provider"),
    **dict.fromkeys(("smtp", "submission"), "smtp"),
}
SMTP_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
AWS_SERVICES = ("s3", "ses", "sqs")
NAMES = {"redis": "broker", "rabbitmq": "broker", "postgres": "db", "smtp": "mail"}
GROUPS = (
    ("rabbitmq", {"RABBITMQ", "RABBIT", "AMQP"}),
    ("redis", {"REDIS", "VALKEY", "BROKER", "CELERY"}),
    (
        "postgres",
        {"DATABASE", "DB", "PG", "PGSQL", "POSTGRES", "POSTGRESQL", "PGHOST", "PGPORT", "PGDATABASE", "PGUSER"},
    ),
    ("smtp", {"SMTP", "MAIL", "EMAIL"}),
)
PARTS = (
    ("url", {"URL", "URI", "DSN", "ENDPOINT"}),
    ("host", {"HOST", "HOSTNAME", "SERVER", "PGHOST"}),
    ("port", {"PORT", "PGPORT"}),
    ("password", {"PASSWORD", "PASS", "PWD", "PGPASSWORD"}),
    ("user", {"USER", "USERNAME", "PGUSER"}),
    ("name", {"NAME", "DB", "DATABASE", "VHOST", "PGDATABASE"}),
)


@dataclass(slots=True)
class Plan:
    """A rig in the making."""

    celery: str = ""
    settings: str = ""
    """Django's settings module; empty for an app without Django."""
    upstreams: dict[str, str] = field(default_factory=dict)
    """Name and kind."""
    why: dict[str, list[str]] = field(default_factory=dict)
    """By upstream: what leads to it."""
    env: dict[str, str] = field(default_factory=dict)
    override: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By module and dotted path: what no variable sets."""
    made_up: list[str] = field(default_factory=list)
    """Variables that the app demands and that lead nowhere: they got a value that means nothing."""
    doubts: list[str] = field(default_factory=list)
    """What could not be found out, a sentence each."""
    tls: set[str] = field(default_factory=set)
    aws: list[str] = field(default_factory=list)
    """The services that the stand-in for AWS must be."""
    hosts: dict[str, str] = field(default_factory=dict)
    """By upstream: the host that the app names itself, so that it is led there by the proxy."""
    packages: list[str] = field(default_factory=list)
    """Installed packages that the jobs are in."""

    def add(self, name: str, kind: str, why: str) -> str:
        """The upstream of this name; the first one of a name decides its kind."""
        self.upstreams.setdefault(name, kind)
        reasons = self.why.setdefault(name, [])
        if why and why not in reasons:
            reasons.append(why)
        return name


@dataclass(slots=True)
class _Feed:
    variable: str
    kind: str
    mark: str
    value: Any
    """What the place holds when the variable has the mark."""


def plan(scan: Scan, settings: str, celery: str, survey: Mapping[str, Any], broker_url: str = "") -> Plan:
    """`survey` is what `inside/survey.py` found of the settings; `broker_url` is Celery's own word."""
    made = Plan(celery=celery, settings=settings)
    feeds = _feeds(survey)
    for module, values in survey.get("values", {}).items():
        mine = feeds.get(module, {})
        _databases(made, module, values, mine)
        _mail(made, module, values, mine)
        _libraries(made, scan, values)
        for path, value in values.items():
            if isinstance(value, str) and URLISH.match(value) and not path.startswith("DATABASES."):
                _url(made, module, path, value, mine.get(path, []), broker_url)
    for name, read in survey.get("variables", {}).items():
        if name not in made.env:
            _by_name(made, name, survey.get("needed", {}).get(name, ""), read["where"], in_settings=True)
    for name, variable in scan.variables.items():
        if name not in made.env and name not in survey.get("variables", {}):
            _by_name(made, name, variable.default or "", variable.where)
    for name, value in survey.get("needed", {}).items():
        if name not in made.env:
            made.env[name] = "jobcheck" if ".invalid" in value else value
            made.made_up.append(name)
    _broker(made, celery, broker_url)
    return made


def _feeds(survey: Mapping[str, Any]) -> dict[str, dict[str, list[_Feed]]]:
    """By module and path: the variables that end up there."""
    found: dict[str, dict[str, list[_Feed]]] = {}
    for name, variable in survey.get("variables", {}).items():
        for module, paths in variable.get("feeds", {}).items():
            for path, value in paths.items():
                feed = _Feed(name, variable["kind"], str(variable["value"]), value)
                found.setdefault(module, {}).setdefault(path, []).append(feed)
    return found


def _databases(made: Plan, module: str, values: Mapping[str, Any], feeds: Mapping[str, list[_Feed]]) -> None:
    for path, engine in values.items():
        found = re.fullmatch(r"DATABASES\.(\w+)\.ENGINE", path)
        if not found or not isinstance(engine, str):
            continue
        alias = found[1]
        if "postg" not in engine:
            if "sqlite" not in engine:
                made.doubts.append(f"DATABASES.{alias} is {engine.rpartition('.')[2]}, which jobcheck cannot read")
            continue
        name = made.add("db" if alias == "default" else alias, "postgres", f"DATABASES.{alias}")
        if str(values.get(f"DATABASES.{alias}.OPTIONS.sslmode", "")) in ("require", "verify-ca", "verify-full"):
            made.tls.add(name)
        for key, part in (
            ("HOST", "host"),
            ("PORT", "port"),
            ("NAME", "name"),
            ("USER", "user"),
            ("PASSWORD", "password"),
        ):
            fed = feeds.get(f"DATABASES.{alias}.{key}", [])
            for feed in fed:
                made.env[feed.variable] = f"{{{name}.{'url' if feed.kind == 'url' else part}}}"
            if not fed and key != "PASSWORD":
                made.override.setdefault(module, {})[f"DATABASES.{alias}.{key}"] = f"{{{name}.{part}}}"


def _mail(made: Plan, module: str, values: Mapping[str, Any], feeds: Mapping[str, list[_Feed]]) -> None:
    backend = str(values.get("EMAIL_BACKEND", ""))
    # Some backends queue the mail and hand it to SMTP later.
    if "smtp" not in backend and SMTP_BACKEND not in values.values():
        if "ses" in backend.lower():
            _aws(made, "ses", "EMAIL_BACKEND")
            # django-ses names Amazon's host itself, unless this setting says otherwise.
            made.override.setdefault(module, {})["AWS_SES_REGION_ENDPOINT_URL"] = "{aws.base}"
        return
    made.add("mail", "smtp", "EMAIL_BACKEND")
    over = made.override.setdefault(module, {})
    for key, part in (("EMAIL_HOST", "host"), ("EMAIL_PORT", "port")):
        fed = feeds.get(key, [])
        for feed in fed:
            made.env[feed.variable] = f"{{mail.{'url' if feed.kind == 'url' else part}}}"
        if not fed:
            over[key] = f"{{mail.{part}}}"
    # The stand-in speaks plain SMTP and knows no accounts.
    over.update({key: False for key in ("EMAIL_USE_TLS", "EMAIL_USE_SSL") if values.get(key)})
    over.update({key: "" for key in ("EMAIL_HOST_USER", "EMAIL_HOST_PASSWORD") if values.get(key) or key in feeds})
    if not over:
        del made.override[module]


def _aws(made: Plan, service: str, why: str) -> None:
    if service not in AWS_SERVICES:
        made.doubts.append(
            f"{why} uses AWS {service}, of which jobcheck has no stand-in: a mock of your own can be one"
        )
        return
    made.add("aws", "aws", why)
    if service not in made.aws:
        made.aws.append(service)


def _libraries(made: Plan, scan: Scan, values: Mapping[str, Any]) -> None:
    """Providers whose address is in their library."""
    if "stripe" in scan.imports:
        made.add("stripe", "stripe", "import stripe")
    for path, value in values.items():
        if isinstance(value, str) and "storages.backends.s3" in value:
            _aws(made, "s3", path)
    for service, where in scan.aws.items():
        _aws(made, service, where)


def _url(made: Plan, module: str, path: str, value: str, feeds: list[_Feed], broker_url: str) -> None:
    """A setting that holds a URL."""
    kind = KINDS.get(value.partition("://")[0].lower().partition("+")[0])
    last = path.rpartition(".")[2] if not path.rpartition(".")[2].isdigit() else path
    if kind is None or NO_UPSTREAM.search(path):
        return
    if kind == "provider":
        if OWN_ADDRESS.search(path) or urlsplit(value).hostname in ("localhost", "127.0.0.1", None):
            return
        name = provider_name(last)
    else:
        name = NAMES[kind]
        if (
            kind == "redis"
            and broker_url
            and not _same_server(value, broker_url)
            and not _fed_by_the_broker(made, feeds)
        ):
            name = "cache" if "CACHE" in path.upper() else "redis"
    made.add(name, kind, path)
    if value.startswith(("rediss://", "amqps://")):
        made.tls.add(name)
    told = False
    for feed in feeds:
        if template := _template(name, kind, feed):
            told = told or template.endswith((".host}", ".url}", ".base}"))
            made.env.setdefault(feed.variable, template)
    if not told and not _derived(made, path, feeds):
        tail = urlsplit(value).path.rstrip("/") if kind == "provider" else ""
        made.override.setdefault(module, {})[path] = f"{{{name}.{'base' if kind == 'provider' else 'url'}}}{tail}"


def _derived(made: Plan, path: str, feeds: list[_Feed]) -> bool:
    return any(feed.variable in made.env and made.env[feed.variable].endswith((".host}", ".url}")) for feed in feeds)


def _same_server(one: str, other: str) -> bool:
    return urlsplit(one).netloc.rpartition("@")[2] == urlsplit(other).netloc.rpartition("@")[2]


def _fed_by_the_broker(made: Plan, feeds: list[_Feed]) -> bool:
    return any(made.env.get(feed.variable, "").startswith("{broker.") for feed in feeds)


def _template(name: str, kind: str, feed: _Feed) -> str:
    """How this variable must be filled so that the place holds the upstream's address."""
    value = str(feed.value)
    if feed.kind == "text" and value == feed.mark:  # the whole URL, by a name that does not say so
        return f"{{{name}.{'base' if kind == 'provider' else 'url'}}}"
    if feed.kind == "url":
        tail = value.removeprefix(feed.mark)
        if "+" in feed.mark.partition("://")[0]:
            return _with_driver(name, feed.mark)
        if kind == "provider" or (value.startswith(feed.mark) and tail):
            return f"{{{name}.base}}"
        return f"{{{name}.url}}"
    parts = urlsplit(value)
    try:
        port = parts.port
    except ValueError:
        return ""
    if (parts.hostname or "") == feed.mark.lower():
        return f"{{{name}.host}}"
    if port is not None and str(port) == feed.mark:
        return f"{{{name}.port}}"
    if parts.username == feed.mark:
        return f"{{{name}.user}}"
    if parts.password == feed.mark:
        return f"{{{name}.password}}"
    return f"{{{name}.name}}" if parts.path.strip("/") == feed.mark else ""


def _with_driver(name: str, url: str) -> str:
    """SQLAlchemy's URLs name the driver, `postgresql+psycopg://`, which no address of ours does."""
    parts = ("user", "password", "host", "port", "name")
    user, password, host, port, database = (f"{{{name}.{part}}}" for part in parts)
    return f"{url.partition('://')[0]}://{user}:{password}@{host}:{port}/{database}"


def provider_name(word: str) -> str:
    """`payments` of PAYMENTS_API_URL."""
    parts = [part for part in re.split(r"[^a-z0-9]+", word.lower()) if part]
    while len(parts) > 1 and parts[-1] in (
        "url",
        "uri",
        "api",
        "base",
        "endpoint",
        "host",
        "root",
        "v1",
        "v2",
        "server",
    ):
        parts.pop()
    return "_".join(parts)


def _by_name(made: Plan, name: str, default: str, where: str, *, in_settings: bool = False) -> None:
    """A variable whose way is not seen, such as one that is read while a job runs: its name says what it is."""
    words = set(name.upper().split("_"))
    part = next((part for part, known in PARTS if words & known), "")
    scheme = default.partition("://")[0].lower() if "://" in default else ""
    kind = KINDS.get(scheme.partition("+")[0], "")
    kind = kind or next((kind for kind, known in GROUPS if words & known), "")
    if not part or NO_UPSTREAM.search(name) or OWN_ADDRESS.search(name):
        return
    if not kind:
        if part != "url" or in_settings:
            return
        kind = "provider"
    upstream = provider_name(name) if kind == "provider" else NAMES[kind]
    if kind in ("redis", "rabbitmq") and made.upstreams.get("broker", kind) != kind:
        return
    if kind == "smtp" and part in ("user", "password", "url"):
        return
    made.add(upstream, kind, f"{name} ({where})")
    made.env[name] = f"{{{upstream}.{'base' if kind == 'provider' else part}}}"
    if part == "url" and kind == "postgres" and "+" in scheme:
        made.env[name] = _with_driver(upstream, default)


def _broker(made: Plan, celery: str, broker_url: str) -> None:
    """Celery's broker is always an upstream; where nothing says where it comes from, its setting is laid over."""
    if "broker" in made.upstreams or not celery:
        return
    kind = KINDS.get(broker_url.partition("://")[0].lower().partition("+")[0], "")
    if kind not in ("redis", "rabbitmq"):
        kind = "redis"
        made.doubts.append(
            f"Celery's broker is {broker_url or 'not set'}, which jobcheck cannot stand in front of: Redis is taken"
        )
    made.add("broker", kind, "Celery's broker_url")
    module, _, attribute = celery.partition(":")
    made.override.setdefault(module, {})[f"{attribute}.conf.broker_url"] = "{broker.url}"
