"""The sample shop as its users run it: a real Celery worker on a real Redis and a real PostgreSQL, no taps."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from jobcheck.aio import wait_for
from jobcheck.clock import REAL
from jobcheck.effects.ledger import Ledger
from jobcheck.effects.mail import SmtpSink
from jobcheck.effects.provider import HttpProvider
from jobcheck.services import start
from jobcheck.services.spec import Postgres, Provider, Redis
from jobcheck.workers.env import scrubbed
from jobcheck.workers.guardian import Guardian
from jobcheck.workers.spec import ProcessSpec, ReadyLine
from jobcheck.workers.supervisor import Supervisor, Worker

APP = Path(__file__).parents[2] / "scenarios" / "apps" / "invoices"
JOBS = ["render_invoice_pdf", "charge_card", "send_invoice_email", "sync_invoice_to_accounting"]
ONE_OF_EACH = {"payments POST /charges": 1, "accounting POST /entries": 1, "mail": 1}


@dataclass
class House:
    """The shop's world: its servers and stand-ins, and one worker."""

    supervisor: Supervisor
    ledger: Ledger
    env: dict[str, str]
    worker: Worker

    async def run(self, code: str) -> str:
        """Runs Python code in a child in the shop's environment and gives what it printed."""
        name = f"child{len(self.supervisor.workers)}"
        argv = [sys.executable, "-c", code]
        child = await self.supervisor.start(ProcessSpec(name=name, argv=argv, env=self.env, cwd=APP))
        assert await child.wait(60) == 0, child.output.text
        return child.output.text.strip()

    async def jobs_done(self, count: int) -> None:
        """Waits until the worker has said of `count` jobs in all that they succeeded."""
        await wait_for(
            lambda: self.worker.output.text.count(" succeeded in ") >= count,
            f"{count} finished jobs",
            deadline=60,
            last_seen=lambda: "\n".join(self.worker.output.tail(5)),
        )

    def effects(self) -> Counter[str]:
        return Counter(effect.name for effect in self.ledger.since(0) if effect.applied)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.env["DATABASE_URL"]) as connection:
            return connection.execute(query.encode()).fetchall()


@contextlib.asynccontextmanager
async def shop(folder: Path) -> AsyncIterator[House]:
    """Starts everything on free ports, and ends it."""
    ledger = Ledger(REAL)
    guardian = Guardian.start("e2e-shop-chain")
    supervisor = Supervisor("e2e-shop-chain", folder / "logs", guardian)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(guardian.close)
        stack.push_async_callback(supervisor.close)
        urls = {}
        for name, spec in {"BROKER_URL": Redis(), "DATABASE_URL": Postgres(setup="schema.sql")}.items():
            place = folder / name
            place.mkdir()
            service = await start(
                spec,
                name=name,
                supervisor=supervisor,
                guardian=guardian,
                folder=place,
                environ=scrubbed({}),
                root=APP,
            )
            stack.push_async_callback(service.stop)
            urls[name] = (await service.namespace("shop")).url
        spec = Provider(idempotency="Idempotency-Key")
        payments, accounting = HttpProvider("payments", spec, ledger), HttpProvider("accounting", spec, ledger)
        mail = SmtpSink("mail", ledger)
        for server in (payments, accounting, mail):
            await server.start()
            stack.push_async_callback(server.stop)
        env = scrubbed(
            {
                **urls,
                "PAYMENTS_URL": payments.url,
                "ACCOUNTING_URL": accounting.url,
                "SMTP_HOST": mail.host,
                "SMTP_PORT": str(mail.port),
                "PDF_FOLDER": str(folder / "pdf"),
                "TMPDIR": str(folder),  # a killed worker leaves its temporary files
            }
        )
        argv = [sys.executable, "-m", "celery", "-A", "shop.app", "worker", "-c", "1", "-l", "INFO"]
        argv += ["--without-gossip", "--without-mingle"]
        worker = await supervisor.start(
            ProcessSpec(name="worker", argv=argv, env=env, cwd=APP, ready=ReadyLine(r"ready\."), ready_within=60)
        )
        await worker.ready()
        yield House(supervisor, ledger, env, worker)


def test_the_chain_causes_each_effect_once_however_often_its_jobs_are_delivered(tmp_path: Path) -> None:
    """One invoice: one charge, mail, entry and file, four markers, all in order; then every job comes again."""

    async def main() -> None:
        async with shop(tmp_path) as house:
            invoice = int(await house.run("from shop import jobs; print(jobs.create_invoice('a@example.com', 4990))"))
            await house.jobs_done(4)
            assert house.effects() == ONE_OF_EACH
            keys = [effect.key for effect in house.ledger.since(0)]
            assert keys == [f"charge:{invoice}", "", f"accounting:{invoice}"]
            markers = house.rows("select key from job_effects order by created_at")
            names = ["invoice-pdf", "charge", "invoice-email", "accounting"]
            assert markers == [(f"{name}:{invoice}",) for name in names]
            pdf = tmp_path / "pdf" / f"invoice-{invoice}.pdf"
            written = pdf.stat().st_mtime_ns

            # Each repeated job enqueues its successors again: 4 + 3 + 2 + 1 jobs more.
            await house.run(f"from shop import jobs; [getattr(jobs, job).delay({invoice}) for job in {JOBS}]")
            await house.jobs_done(4 + 10)
            assert house.effects() == ONE_OF_EACH
            assert len(house.ledger.since(0)) == 3, "a marker stops the call itself"
            assert house.rows("select key from job_effects order by created_at") == markers
            assert house.rows("select status, count(*) from invoices join charges on true group by 1") == [("paid", 1)]
            assert [path.name for path in pdf.parent.iterdir()] == [pdf.name]
            assert pdf.stat().st_mtime_ns == written

    asyncio.run(main())
