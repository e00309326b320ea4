"""What a person reads after a check and after a recording."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from jobcheck.cli.payloads_screen import tell_checked, tell_recorded
from jobcheck.payloads.check import Answer, Row
from jobcheck.payloads.content import Concern
from jobcheck.payloads.facade import Checked, Recorded
from jobcheck.payloads.judge import Fault, Judgement, Verdict
from jobcheck.payloads.messages import decode
from jobcheck.payloads.payload import Kept, Payload, from_message
from jobcheck.payloads.record import Recording
from jobcheck.report.screen import Screen

from .kombu import message


def payload(task: str) -> Payload:
    raw = message(task, kwargs={"note": "x" * 100})
    return from_message(
        *(raw, decode(raw)), version="v1", recorded="2026-11-29T10:00:00Z", function="new_invoice",
        system="celery-redis", queue="celery", ids={}, parameters=(),
    )  # fmt: skip


CHARGE, MAIL = payload("shop.charge"), payload("shop.mail")
OK = Judgement(Verdict.OK)
BROKEN = Judgement(Verdict.BROKEN, Fault.READING, "KeyError: 'currency'", "jobs.py:31 charge")
LOST = Judgement(Verdict.LOST, Fault.UNREGISTERED, "the worker dropped it: unregistered task: shop.mail")
UNKNOWN = Judgement(Verdict.UNKNOWN, Fault.DATA, "LookupError: \x1b[31mno invoice")


def checked(*rows: Row) -> Checked:
    concern = (CHARGE, Concern("personal", "args[0]", "an e-mail address: a...@example.com"))
    return Checked("v1", "v2", rows, [concern], ["a note"], 1.0, 2.0, Path("reports/run"))


def text_of(result: Checked) -> str:
    out = io.StringIO()
    tell_checked(result, Screen(Console(file=out, width=100)))
    return out.getvalue()


def test_the_table_has_a_line_for_each_task_and_a_reason_for_each_failure() -> None:
    """The worst answer of a task stands in the table, and every different reason below it, once."""
    result = checked(
        Row("shop.charge", (Answer(CHARGE, OK), Answer(CHARGE, BROKEN, "read it with a default")), (), ("a added",)),
        Row("shop.mail", (Answer(MAIL, LOST), Answer(MAIL, LOST)), (Answer(MAIL, UNKNOWN),)),
    )
    text = text_of(result)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "charge ✗ broken - a added" in lines
    assert "mail ✗ lost ? unknown" in lines
    assert "shop.charge, old payload -> new worker: broken" in lines
    assert "KeyError: 'currency' (jobs.py:31 charge)" in lines
    assert "do: read it with a default" in lines
    assert text.count("unregistered task") == 1
    assert "\x1b" not in text
    assert "old v1, new v2: 5 replays: 1 ok, 2 lost, 1 broken, 1 unknown" in lines
    assert "an e-mail address: a...@example.com" in text
    assert result.exit_code == 1


def test_exit_codes_of_a_check() -> None:
    """Unknown is never a pass, and neither is nothing."""
    assert checked(Row("t", (Answer(CHARGE, OK),), ())).exit_code == 0
    assert checked(Row("t", (Answer(CHARGE, OK),), (Answer(CHARGE, UNKNOWN),))).exit_code == 2
    assert checked().exit_code == 2


def test_tasks_of_one_name_in_two_modules_are_told_apart() -> None:
    """Their whole names are shown then."""
    text = text_of(checked(Row("a.mail", (Answer(MAIL, OK),), ()), Row("b.mail", (Answer(MAIL, OK),), ())))
    assert "a.mail" in text
    assert "b.mail" in text


def test_a_recording_lists_its_files_and_what_could_not_be_recorded() -> None:
    """Long calls are cut."""
    out = io.StringIO()
    kept = [Kept(CHARGE, Path("payloads/v1/shop.charge/1.json"), True), Kept(MAIL, Path("payloads/x.json"), False)]
    recordings = [
        Recording("new_invoice", (CHARGE, MAIL), ("a note",)),
        Recording("idle", problem="it enqueued nothing"),
    ]
    tell_recorded(Recorded("v1", recordings, kept, [], 1.0), Screen(Console(file=out, width=100)))
    lines = out.getvalue().splitlines()
    assert lines[1].startswith("✓ payloads/v1/shop.charge/1.json  charge(17, note='xxx")
    assert lines[1].endswith("...  recorded")
    assert lines[2].endswith("kept as it was")
    assert "· idle: it enqueued nothing" in lines
    assert lines[-1] == "version v1: 2 payloads, 1 new, in 1.0 s"
