"""Providers that many apps have: a stand-in that knows the API, and how the SDK is told where it is. Data only."""

from __future__ import annotations

from typing import Any

from ..errors import UsageError
from ..services.spec import THIS, Provider, Webhook

STRIPE, AWS = "stripe", "aws"
_STRIPE_BASES = ("API", "CONNECT_API", "UPLOAD_API", "METER_EVENTS_API")
_STRIPE_HOSTS = "api.stripe.com, connect.stripe.com, files.stripe.com, meter-events.stripe.com"
_AWS_SERVICES = ("s3", "ses", "sqs")
_AWS_HOSTS = "*.amazonaws.com, *.api.aws"


def stripe(
    *,
    routes: dict[str, Any] | None = None,
    tls: bool = False,
    webhook: str = "",
    secret: str = "",
    on: str = "POST /v1/payment_intents",
    times: int = 1,
    after: float = 0.0,
    early: bool = False,
    **options: Any,
) -> Provider:
    """Stripe: payment intents, charges, customers, refunds and the like, with Idempotency-Key.

    The SDK's `api_base` is a constant; it is laid over when the app imports `stripe`. With `tls=True` the SDK keeps its
    real address: `api.stripe.com` is led here through the proxy, and the SDK's own CA bundle is replaced instead.

    `webhook="{web.url}/stripe/webhook", secret="whsec_..."` has it call back, with Stripe's own signature: an event
    such as `payment_intent.succeeded` for each accepted call of `on`; `times`, `after` and `early` as in `Webhook`.
    """
    if webhook:
        call = Webhook(on, webhook, times=times, after=after, early=early, secret=secret, event=STRIPE)
        options = {"webhook": call, **options}
    base = f"{{{THIS}.base}}"
    module: dict[str, Any] = {f"{name.lower()}_base": base for name in _STRIPE_BASES}
    constants = {f"DEFAULT_{name}_BASE": base for name in _STRIPE_BASES}
    overlays = {"stripe": {**module, **constants}, "stripe._stripe_client": constants}
    if tls:
        overlays = {"stripe": {"ca_bundle_path": f"{{{THIS}.ca}}"}}
    return Provider(
        idempotency="Idempotency-Key",
        routes=routes or {},
        stand_in=STRIPE,
        tls=tls,
        host=_STRIPE_HOSTS if tls else "",
        overlays=overlays,
        **options,
    )


def aws(*services: str, routes: dict[str, Any] | None = None, tls: bool = False, **options: Any) -> Provider:
    """AWS, answered by moto's server: `jobcheck.aws("s3", "ses", "sqs")`.

    SDKs find it by `AWS_ENDPOINT_URL` (boto3 from 1.28). With `tls=True` also clients that name `*.amazonaws.com`
    themselves are led here, through the proxy. Buckets, queues and verified senders are there when they are asked for.
    Raises UsageError for a service that jobcheck does not know how to judge.
    """
    if unknown := sorted(set(services) - set(_AWS_SERVICES)):
        raise UsageError(
            f"jobcheck.aws: expected some of {', '.join(_AWS_SERVICES)}, got {', '.join(map(repr, unknown))}",
            hint='jobcheck.provider(upstream="http://127.0.0.1:5000") puts the ledger before a mock of your own',
        )
    environ = {
        "AWS_ENDPOINT_URL": f"{{{THIS}.base}}",
        "AWS_ACCESS_KEY_ID": "jobcheck",
        "AWS_SECRET_ACCESS_KEY": "jobcheck",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    host = _AWS_HOSTS if tls else ""
    return Provider(routes=routes or {}, stand_in=AWS, tls=tls, host=host, environ=environ, **options)
