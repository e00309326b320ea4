"""The version is blamed for what a version can be blamed for, and for nothing else."""

from __future__ import annotations

import pytest

from jobcheck.payloads.advice import NEW_TO_OLD, OLD_TO_NEW, advice, renames
from jobcheck.payloads.judge import Evidence, Fault, Verdict, judge, with_control
from jobcheck.payloads.words import End, Frame, Said

CELERY = Frame("/lib/celery/app/trace.py", 453, "trace_task")
APP = Frame("/app/shop/jobs.py", 31, "charge")
NOTHING_ASKED = Evidence()
READ = Evidence(asked=3)
READ_LIVE = Evidence(asked=3, live=True)
CHANGED = Evidence(asked=5, changed=1, live=True)


def failed(error: str, message: str = "", *frames: Frame, end: End = End.FAILED) -> Said:
    return Said(end, error, message, frames or (CELERY, APP))


MISSING = "charge() missing 1 required positional argument: 'notify'"


@pytest.mark.parametrize(
    ("said", "evidence", "verdict", "fault"),
    [
        (Said(End.SUCCEEDED), CHANGED, Verdict.OK, Fault.NONE),
        (Said(End.DROPPED, "unregistered task", "shop.charge"), READ, Verdict.LOST, Fault.UNREGISTERED),
        (Said(End.DROPPED, "cannot decode its body", "x"), READ, Verdict.LOST, Fault.UNDECODABLE),
        (failed("TypeError", MISSING, CELERY), NOTHING_ASKED, Verdict.BROKEN, Fault.SIGNATURE),
        (failed("TypeError", MISSING, end=End.RETRYING), NOTHING_ASKED, Verdict.BROKEN, Fault.SIGNATURE),
        (failed("TypeError", MISSING.replace("charge", "A.charge")), READ, Verdict.BROKEN, Fault.SIGNATURE),
        (
            failed("TypeError", "charge() takes 1 positional argument but 2 were given", CELERY),
            NOTHING_ASKED,
            Verdict.BROKEN,
            Fault.SIGNATURE,
        ),
        (
            failed("TypeError", "charge() got an unexpected keyword argument 'x'", CELERY),
            NOTHING_ASKED,
            Verdict.BROKEN,
            Fault.SIGNATURE,
        ),
        # another function's signature, called by the handler
        (failed("TypeError", MISSING.replace("charge", "mail")), CHANGED, Verdict.UNKNOWN, Fault.DATA),
        (failed("KeyError", "'currency'"), NOTHING_ASKED, Verdict.BROKEN, Fault.READING),
        (failed("pydantic_core.ValidationError"), NOTHING_ASKED, Verdict.BROKEN, Fault.READING),
        (failed("KeyError", "'currency'"), READ_LIVE, Verdict.BROKEN, Fault.READING),
        # a first read that misses
        (failed("AttributeError", "'NoneType' object has no attribute 'x'"), READ, Verdict.UNKNOWN, Fault.DATA),
        (failed("LookupError", "no invoice 17"), READ, Verdict.UNKNOWN, Fault.DATA),
        (failed("LookupError", "no invoice 17"), NOTHING_ASKED, Verdict.UNKNOWN, Fault.DATA),
        (failed("KeyError", "'id'"), CHANGED, Verdict.UNKNOWN, Fault.DATA),
    ],
)
def test_verdicts(said: Said, evidence: Evidence, verdict: Verdict, fault: Fault) -> None:
    """By the error, and by what the job had done before it."""
    judgement = judge(said, "charge", evidence)
    assert (judgement.verdict, judgement.fault) == (verdict, fault)


def test_what_fails_on_its_own_version_too_is_not_this_versions_doing() -> None:
    """The control run decides where the error alone does not."""
    said = failed("KeyError", "'currency'")
    judgement = judge(said, "charge", NOTHING_ASKED)
    assert with_control(judgement, said, failed("KeyError", "'currency'")).verdict is Verdict.UNKNOWN
    assert with_control(judgement, said, Said(End.SUCCEEDED)).verdict is Verdict.BROKEN
    assert with_control(judgement, said, failed("LookupError", "x")).verdict is Verdict.BROKEN


def test_a_doubtful_failure_says_that_its_own_version_did_not_fail() -> None:
    """It stays unknown, and a person has something to go by."""
    said = failed("LookupError", "no invoice")
    judgement = with_control(judge(said, "charge", READ), said, Said(End.SUCCEEDED))
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.reason.endswith("on its own version it succeeded")


@pytest.mark.parametrize(
    ("fault", "direction", "message", "renamed", "expected"),
    [
        (Fault.SIGNATURE, OLD_TO_NEW, MISSING, "", "give notify a default"),
        (Fault.SIGNATURE, NEW_TO_OLD, MISSING, "", "go on sending notify"),
        (Fault.SIGNATURE, OLD_TO_NEW, "charge() got an unexpected keyword argument 'x'", "", "go on accepting x"),
        (Fault.SIGNATURE, NEW_TO_OLD, "charge() takes 1 positional argument but 2 were given", "", "accept currency"),
        (Fault.UNREGISTERED, OLD_TO_NEW, "", "shop.pay", 'name="shop.charge"'),
        (Fault.UNREGISTERED, OLD_TO_NEW, "", "", "keep the task, or a stub"),
        (Fault.UNREGISTERED, NEW_TO_OLD, "", "", "deploy workers before producers"),
        (Fault.READING, OLD_TO_NEW, "", "", "with a default"),
        (Fault.READING, NEW_TO_OLD, "", "", "deploy workers before producers"),
        (Fault.UNDECODABLE, OLD_TO_NEW, "", "", "accept both serializers"),
        (Fault.DATA, OLD_TO_NEW, "", "", "--prepare"),
    ],
)
def test_advice_fits_the_fault_and_the_direction(
    fault: Fault, direction: str, message: str, renamed: str, expected: str
) -> None:
    """One sentence, with the names that matter."""
    assert expected in advice(fault, direction, message, "shop.charge", ["currency"], renamed)


def test_a_renamed_task_is_recognised_by_its_shape_and_the_nearest_name() -> None:
    """Both ways, and each name once."""
    number, text = {"args": ["integer"]}, {"args": ["string"]}
    old = {"a.kept": number, "a.sync_invoice": number, "a.mail": text}
    new = {"a.kept": number, "a.book_invoice": number, "a.clean": number}
    assert renames(old, new) == {"a.sync_invoice": "a.book_invoice", "a.book_invoice": "a.sync_invoice"}
