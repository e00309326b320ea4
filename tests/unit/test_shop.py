"""The sample shop's pure parts, and the table of kills in `shop/variants.py`, worked out by killing the jobs here."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, TracebackType

import pytest

APP = Path(__file__).parents[2] / "scenarios" / "apps" / "invoices"
VARIANTS = ["naive", "marker_before", "marker_after", "lock_without_key", "idempotent", "locked"]
INVOICE = 700_001


ADDRESSES = {
    "BROKER_URL": "memory://",
    "DATABASE_URL": "postgresql://127.0.0.1:1/none",
    "PAYMENTS_URL": "http://127.0.0.1:1",
    "ACCOUNTING_URL": "http://127.0.0.1:1",
    "SMTP_HOST": "127.0.0.1",
    "SMTP_PORT": "1",
}
"""Nobody listens there: a test that calls out fails at once."""

Shop = Callable[[str], ModuleType]
"""Gives a module of the shop by its name."""


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    """The shop as a worker in its folder would import it: once, as Celery keeps every task it ever saw."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ADDRESSES.items():
            patch.setenv(name, value)
        patch.syspath_prepend(str(APP))
        yield lambda name: importlib.import_module(f"shop.{name}")
    for name in [name for name in sys.modules if name == "shop" or name.startswith("shop.")]:
        del sys.modules[name]


class Killed(BaseException):
    """The process is gone; no handler of the job's runs."""


@dataclass
class World:
    """A provider, a mail server and a database that count, and that kill the job at a chosen change of state."""

    kill_at: int | None = None
    """The number of the change before which the job dies, from 0."""
    done: int = 0
    charges: int = 0
    mails: int = 0
    keys: set[str] = field(default_factory=set)
    markers: set[str] = field(default_factory=set)
    steps: list[str] = field(default_factory=list)

    def change(self, step: str) -> None:
        if self.done == self.kill_at:
            raise Killed(step)
        self.done += 1
        self.steps.append(step)

    def charge(self, invoice: object, key: str = "") -> str:
        self.change("POST")
        if not key or key not in self.keys:
            self.charges += 1
        self.keys.add(key)
        return "ch_1"

    def send_mail(self, invoice: object) -> None:
        self.change("MAIL")
        self.mails += 1


@dataclass
class Transaction:
    """What `db.transaction()` gives, on a World."""

    world: World
    written: set[str] = field(default_factory=set)

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self.commit()

    def commit(self) -> None:
        if self.written:
            self.world.change("COMMIT")
            self.world.markers |= self.written
            self.written = set()

    def claim(self, key: str) -> bool:
        if key in self.world.markers:
            return False
        self.written.add(key)
        return True


def run(shop: Shop, monkeypatch: pytest.MonkeyPatch, variant: str, world: World) -> None:
    db, providers, variants = shop("db"), shop("providers"), shop("variants")
    monkeypatch.setattr(providers, "charge", world.charge)
    monkeypatch.setattr(providers, "send_mail", world.send_mail)
    monkeypatch.setattr(db, "transaction", lambda: Transaction(world))
    monkeypatch.setattr(db, "invoice", lambda tx, invoice_id: db.Invoice(invoice_id, "a@example.com", 4990))
    monkeypatch.setattr(db, "add_charge", lambda tx, invoice_id, charge_id: tx.written.add("a ledger row"))
    monkeypatch.setattr(db, "is_done", lambda tx, key: key in world.markers)
    monkeypatch.setattr(db, "mark_done", lambda tx, key: tx.written.add(key))
    monkeypatch.setattr(db, "claim", lambda tx, key: tx.claim(key))
    getattr(variants, f"charge_and_mail_{variant}")(INVOICE)


def killed_and_run_again(shop: Shop, monkeypatch: pytest.MonkeyPatch, variant: str, kill_at: int) -> World:
    world = World(kill_at=kill_at)
    try:
        run(shop, monkeypatch, variant, world)
    except Killed:
        pass  # the point of the test
    world.kill_at = None
    run(shop, monkeypatch, variant, world)
    return world


def in_words(world: World) -> str:
    match world.charges, world.mails:
        case 0, 0:
            return "both lost"
        case _, 0:
            return "mail lost"
        case 1, 1:
            return "ok"
        case 1, mails:
            return f"mailed x{mails}"
        case charges, _:
            return f"charged x{charges}"


@pytest.mark.parametrize("variant", VARIANTS)
def test_kills_of_a_variant_do_what_its_docstring_says(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, variant: str
) -> None:
    """Every row of the table in `shop/variants.py`: three steps, the outcome of each kill, the number of bad ones."""
    clean = World()
    run(shop, monkeypatch, variant, clean)
    worlds = [killed_and_run_again(shop, monkeypatch, variant, kill_at) for kill_at in range(4)]
    bad = sum(world.charges != 1 or world.mails < 1 for world in worlds)
    row = [variant, " ".join(clean.steps), *(in_words(world) for world in worlds), str(bad)]

    table = [re.split(r"\s{2,}", line.strip()) for line in (shop("variants").__doc__ or "").splitlines()]
    assert row in table
    assert Counter(clean.steps) == {"POST": 1, "COMMIT": 1, "MAIL": 1}


def test_six_variants_are_tasks_and_none_is_missing_from_the_tests(shop: Shop) -> None:
    """A seventh variant has to come with its row of the table."""
    shop("variants")
    tasks = [name for name in shop("app").app.tasks if name.startswith("shop.variants.")]
    assert sorted(tasks) == sorted(f"shop.variants.charge_and_mail_{variant}" for variant in VARIANTS)


def test_the_same_invoice_gives_the_same_pdf_whole(shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A second rendering replaces the file by an equal one and leaves no draft; the offsets in the file are right."""
    pdf, invoice = shop("pdf"), shop("db").Invoice(INVOICE, "o(dd)\\@example.com", 4990)
    monkeypatch.setattr(shop("settings"), "PDF_FOLDER", str(tmp_path / "new"))
    first = pdf.write(invoice).read_bytes()
    assert pdf.write(invoice).read_bytes() == first
    assert [path.name for path in (tmp_path / "new").iterdir()] == [f"invoice-{INVOICE}.pdf"]
    offsets = [int(match) for match in re.findall(rb"(\d{10}) 00000 n", first)]
    assert [first[offset : offset + 7] for offset in offsets] == [b"%d 0 obj" % n for n in range(1, 6)]
    start = int(re.search(rb"startxref\n(\d+)", first)[1])  # type: ignore[index]
    assert first[start:].startswith(b"xref")
    assert rb"o\(dd\)\\@example.com) Tj" in first


def acks(setting: dict[str, str]) -> subprocess.CompletedProcess[str]:
    code = "from shop.app import app; c = app.conf; print(c.task_acks_late, c.task_reject_on_worker_lost)"
    environment = {"PATH": os.environ["PATH"], **ADDRESSES, **setting}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=APP, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_acks_are_late_unless_told_otherwise() -> None:
    """`SHOP_ACKS=early` leaves Celery's defaults as they are."""
    assert acks({}).stdout.split() == ["True", "True"]
    assert acks({"SHOP_ACKS": "early"}).stdout.split() == ["False", "None"]


def test_a_misspelt_ack_setting_stops_the_shop() -> None:
    """Otherwise a typo would silently run with the other guarantee."""
    assert "SHOP_ACKS must be late or early, not 'erly'" in acks({"SHOP_ACKS": "erly"}).stderr
