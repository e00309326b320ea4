"""Contracts in words, exit codes, and jobs by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jobcheck.api import Rig, at_least_once, celery, exactly_once, redis
from jobcheck.errors import UsageError
from jobcheck.history.report import FindingReport, StrikeReport, SubjectReport
from jobcheck.runner.asked import handler_job, queue_job
from jobcheck.runner.expectations import exit_code, fails, read_contract

RIG_FILE = Path(__file__).parents[2] / "plugin" / "tiny" / "rig.py"


@pytest.mark.parametrize(
    "text",
    [
        "exactly once: payments POST /charges, by json:order_id",
        "exactly_once: payments POST /charges, by json:order_id",
        'exactly_once("payments POST /charges", key="json:order_id")',
        'exactly_once("payments POST /charges", "json:order_id"),',
        'jobcheck.exactly_once("payments POST /charges", key="json:order_id")',
    ],
)
def test_a_contract_is_read_in_every_form_that_is_offered(text):
    assert read_contract(text) == exactly_once("payments POST /charges", key="json:order_id")


def test_what_a_contract_calls_itself_is_read_back():
    for contract in (exactly_once("mail", key="subject"), at_least_once('mark "x"'), at_least_once("rows a, b")):
        assert read_contract(contract.call) == contract
        assert read_contract(contract) is contract


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exactly_one: mail", "exactly_one"),
        ("exactly_one('mail')", "exactly_one"),
        ("exactly_once(mail)", "plain texts"),
        ("exactly_once()", "name of an effect"),
        ("exactly_once('mail', by='subject')", "'by'"),
        ("mail", "such as 'exactly once"),
        ("", "such as 'exactly once"),
    ],
)
def test_what_is_no_contract_is_a_usage_error(text, said):
    with pytest.raises(UsageError) as caught:
        read_contract(text, "--expect")
    assert said in caught.value.message


def subject(*layers: str, verdicts: tuple[str, ...] = ("ok",), problem: str = "", accepted: str = "") -> SubjectReport:
    shared = {"verified": {"reproduced": 3, "of": 3}, "accepted": accepted}
    findings = tuple(FindingReport(layer, layer, "mail", "lost", (), **shared) for layer in layers)
    strikes = tuple(StrikeReport(str(at), "p", "kill", "before", True, verdict) for at, verdict in enumerate(verdicts))
    return SubjectReport("a", "handler", "handler", findings=findings, strikes=strikes, problem=problem)


@pytest.mark.parametrize(
    ("layers", "codes"),
    [
        ((), (0, 0, 0, 0)),
        (("transport",), (0, 0, 1, 0)),
        (("settings", "transport"), (0, 1, 1, 0)),
        (("handler",), (1, 1, 1, 0)),
    ],
)
def test_each_word_of_fail_on_includes_those_before_it(layers, codes):
    words = ("handler", "settings", "all", "none")
    assert tuple(exit_code([subject(*layers)], word) for word in words) == codes


@pytest.mark.parametrize("verdict", ["unknown", "not exercised", "diverged"])
def test_what_is_unknown_never_passes_and_a_breach_beats_it(verdict):
    unsure = subject(verdicts=("ok", verdict))
    assert exit_code([subject(), unsure], "none") == 2
    assert exit_code([unsure, subject("handler")], "settings") == 1
    assert exit_code([subject(problem="two clean runs differ")], "settings") == 2


def test_accepted_findings_fail_nothing():
    (finding,) = subject("handler", accepted="the provider deduplicates").findings
    assert not fails(finding, "all")
    assert fails(replace(finding, accepted=""), "all")


@pytest.fixture
def rig() -> Rig:
    return Rig(celery("tinyapp.jobs:app"), upstreams={"broker": redis()}, file=str(RIG_FILE))


def test_a_bare_name_is_looked_for_in_the_rigs_file(rig):
    job = queue_job(rig, "put_naive", [exactly_once("mail")])
    assert (job.subject, job.mode, job.function) == ("put_naive", "queue", f"{RIG_FILE}:put_naive")


def test_other_settings_are_another_subject(rig):
    assert queue_job(rig, "put_naive", assume="at-least-once").subject == "put_naive [at-least-once]"


def test_a_handler_is_named_by_its_function_and_prepared_by_its_case(rig):
    job = handler_job(rig, "tinyapp.jobs:naive", "number")
    assert (job.subject, job.mode) == ("naive", "handler")
    assert (job.handler, job.function) == ("tinyapp.jobs:naive", f"{RIG_FILE}:number")


def test_a_typing_error_in_a_file_is_told_with_the_nearest_name(rig):
    with pytest.raises(UsageError) as caught:
        queue_job(rig, "put_nave")
    assert "has no function 'put_nave'; it has" in caught.value.message
    assert caught.value.hint == "did you mean put_naive?"


def test_a_file_that_makes_its_functions_by_itself_has_whatever_is_asked_for(rig, tmp_path):
    """Nobody knows them before it is run (PEP 562)."""
    file = tmp_path / "made.py"
    file.write_text("def __getattr__(name):\n    return print\n")
    assert queue_job(rig, f"{file}:put_anything").function == f"{file}:put_anything"


def test_a_file_that_is_not_there_is_told(rig):
    with pytest.raises(UsageError, match=r"cannot read .*nowhere\.py: No such file"):
        queue_job(rig, "nowhere.py:put")


def test_what_was_seen_once_and_not_again_is_unknown_and_fails_nothing():
    finding = FindingReport("f1", "handler", "mail", "lost", ("s",), verified={"reproduced": 1, "of": 3})
    subject = SubjectReport("job", "handler", "handler", findings=(finding,))
    assert not fails(finding, "all")
    assert exit_code([subject], "settings") == 2
    left = replace(subject, findings=(replace(finding, verified={}),))
    assert exit_code([left], "settings") == 2, "it could not be run again"


def test_two_of_three_are_enough():
    assert FindingReport("f1", "handler", "mail", "lost", ("s",), verified={"reproduced": 2, "of": 3}).confirmed
