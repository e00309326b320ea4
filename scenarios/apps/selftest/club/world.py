"""The systems around the club: the payment provider, the mail server and the cache."""

import smtplib
import socket
from collections.abc import Iterator
from email.message import EmailMessage

import redis
import requests

from . import settings
from .db import Member


def charge(member: Member, key: str = "") -> None:
    """Charges the member's dues. With `key`, the provider charges a repeated call once."""
    made(ask_for_charge(member, key))


def ask_for_charge(member: Member, key: str = "", line: int = 0) -> requests.Response:
    """The same, and whoever asks looks at the answer. `line`: one of several parts of the dues."""
    body = {"member": member.id, "period": member.period, "cents": 1990, **({"line": line} if line else {})}
    headers = {"Idempotency-Key": key} if key else {}
    url = f"{settings.PAYMENTS_URL}/charges"
    return requests.post(url, json=body, headers=headers, timeout=settings.TIMEOUT)


def order(member_id: int, books: str) -> None:
    """Orders something for the member. The provider calls back when it is paid, and says what is to be booked."""
    body = {"member": member_id, "books": books}
    headers = {"Idempotency-Key": f"order:{member_id}"}
    url = f"{settings.PAYMENTS_URL}/orders"
    requests.post(url, json=body, headers=headers, timeout=settings.TIMEOUT).raise_for_status()


def made(reply: requests.Response) -> str:
    """The id of the charge. Raises when the answer is an error, or does not name the charge."""
    reply.raise_for_status()
    return str(reply.json()["id"])


def charge_stubbornly(member: Member, key: str = "") -> None:
    """The same, up to three times when the connection breaks."""
    for _ in range(2):
        try:
            return charge(member, key)
        except requests.ConnectionError:
            pass  # it may have been carried out
    return charge(member, key)


def charge_by_hand(member: Member, key: str) -> Iterator[bytes]:
    """The same without an HTTP client, as card terminals do it. Gives the answer as it comes, piece by piece."""
    host, _, port = settings.PAYMENTS_URL.rpartition("/")[2].partition(":")
    body = f'{{"member": {member.id}, "period": "{member.period}", "cents": 1990}}'
    with socket.create_connection((host, int(port)), settings.TIMEOUT) as line:
        line.sendall(
            f"POST /charges HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nIdempotency-Key: {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        while piece := line.recv(65536):
            yield piece


def mail(member: Member, subject: str, timeout: float = settings.TIMEOUT) -> None:
    message = EmailMessage()
    message["From"] = "treasurer@club.example"
    message["To"] = member.email
    message["Subject"] = subject
    message.set_content(f"Dear member {member.id}, thank you.\n")
    with smtplib.SMTP(settings.SMTP_HOST, settings.SMTP_PORT, "club.example", timeout) as server:
        server.send_message(message)


def cache() -> redis.Redis:
    """For `with`."""
    return redis.Redis.from_url(settings.CACHE_URL, socket_timeout=settings.TIMEOUT)


def queue() -> redis.Redis:
    """The broker as a plain Redis, for `with`."""
    return redis.Redis.from_url(settings.BROKER_URL, socket_timeout=settings.TIMEOUT)


LEASE = 60
"""Seconds after which a lock is free again, whoever holds it."""


def leased(cache: redis.Redis, name: str, owner: str) -> bool:
    """Takes the lock for a while, unless somebody else has it."""
    return bool(cache.set(name, owner, nx=True, ex=LEASE)) or cache.get(name) == owner.encode()
