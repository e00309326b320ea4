"""What leads around the taps is named, and answered with what to write."""

from __future__ import annotations

import pytest

from jobcheck.runner.around import declaration, named


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("api.stripe.com", "jobcheck.stripe()"),
        ("email.us-east-1.amazonaws.com", 'jobcheck.aws("ses", tls=True)'),
        ("shop.s3.eu-central-1.amazonaws.com", 'jobcheck.aws("s3", tls=True)'),
        ("kms.us-east-1.amazonaws.com", "jobcheck.provider(host='kms.us-east-1.amazonaws.com')"),
        ("api.pay.example", "jobcheck.provider(host='api.pay.example')"),
    ],
)
def test_a_refused_host_is_answered_with_what_to_declare(host: str, said: str) -> None:
    assert declaration(host) == said


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("10.0.0.5", 443, "10.0.0.5:443"),
        ("unix:/run/postgresql/.s.PGSQL.5432", 0, "unix:/run/postgresql/.s.PGSQL.5432"),
        ("unix:/run/redis/redis.sock", 0, "unix:/run/redis/redis.sock"),
        ("unix:/run/systemd/journal/socket", 0, ""),
    ],
)
def test_only_sockets_of_servers_are_named(host: str, port: int, said: str) -> None:
    assert named(host, port) == said
