"""`jobcheck explain`: the page has a section for everything that a report may say."""

from __future__ import annotations

from click.testing import CliRunner

from jobcheck.cli.explain import command, page, read_sections
from jobcheck.errors import UsageError
from jobcheck.explore.causes import SETTINGS, TRANSPORT
from jobcheck.history.records import NEVER_PASS, Verdict
from jobcheck.history.report import FindingReport
from jobcheck.report.text import explain_words


def sections() -> dict[str, str]:
    return read_sections(page().read_text("utf-8"))


def test_every_verdict_that_is_no_pass_has_a_section() -> None:
    bad = {str(verdict) for verdict in Verdict if verdict is not Verdict.OK and verdict not in NEVER_PASS}
    assert {*bad, SETTINGS, TRANSPORT, "race", "unknown"} == set(sections())


def test_what_the_terminal_names_can_be_asked() -> None:
    def named(layer: str, verdict: str) -> str:
        return explain_words(FindingReport("f", layer, "mail", verdict, ()))

    assert named("handler", "lost") == "jobcheck explain lost"
    assert named("transport", "lost") == "jobcheck explain transport"
    assert named("handler", "failed visibly") == "jobcheck explain 'failed visibly'"


def test_a_section_is_printed_as_it_stands() -> None:
    shown = CliRunner().invoke(command, ["duplicated"])
    assert "Idempotency-Key" in shown.output
    assert shown.output.strip() == sections()["duplicated"]
    assert "jobcheck explain 'failed visibly'" in CliRunner().invoke(command, []).output


def test_a_word_that_is_no_section_names_the_nearest() -> None:
    error = CliRunner().invoke(command, ["duplicate"]).exception
    assert isinstance(error, UsageError)
    assert error.hint == "did you mean duplicated?"
