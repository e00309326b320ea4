"""What is promised by which settings, and what is said when a rig does not fit its app. Real workers, real Redis."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.checks.contracts import at_least_once
from jobcheck.errors import CaseError, UsageError, WorkerError
from jobcheck.events import Bus, Event, Warned
from jobcheck.history.report import SubjectReport

from . import tiny
from .bad_day import rig

EARLY = "app.conf.update(task_acks_late=False, task_reject_on_worker_lost=False)"


def layers(subject: SubjectReport) -> dict[str, int]:
    """How many bad strikes are laid where."""
    found: dict[str, int] = {}
    for strike in subject.strikes:
        if strike.layer:
            found[strike.layer] = found.get(strike.layer, 0) + 1
    return found


@pytest.mark.parametrize("pool", ["prefork", "solo"])
def test_late_acks_lose_a_job_at_the_transport_only(tmp_path: Path, pool: str) -> None:
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, options=f', pool="{pool}"')))
    assert subject.guarantee == "at-least-once"
    assert layers(subject) == {"transport": 2}
    assert subject.coverage.fired == subject.coverage.strikes


def test_an_app_with_a_prefix_before_all_its_keys_is_recovered_too(tmp_path: Path) -> None:
    """A rewind of another key would recover nothing, and every kill would look like a loss."""
    settings = 'app.conf.broker_transport_options = {"global_keyprefix": "shop:"}'
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, settings=settings)))
    assert subject.problem == ""
    assert layers(subject) == {"transport": 2}
    assert subject.coverage.fired == subject.coverage.strikes == 5


def test_early_acks_lose_a_job_by_their_settings_and_name_those_that_mend_it(tmp_path: Path) -> None:
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, settings=EARLY)))
    assert subject.guarantee == "at-most-once"
    assert layers(subject)["settings"] >= 1
    assert layers(subject)["transport"] == 2
    assert "handler" not in layers(subject)
    advice = next(finding.advice for finding in subject.findings if finding.layer == "settings")
    assert "task_acks_late=True" in advice
    assert any(
        "promises at most once; a lost job here is what these settings promise" in note for note in subject.notes
    )


def test_assuming_at_least_once_runs_the_same_app_with_safe_settings(tmp_path: Path) -> None:
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, settings=EARLY), assume="at-least-once"))
    assert subject.guarantee == "at-least-once"
    assert layers(subject) == {"transport": 2}


SWALLOWS = """
    import os, urllib.request
    url = os.environ["PAYMENTS_URL"] + "/charges"
    try:
        urllib.request.urlopen(urllib.request.Request(url, key.encode(), method="POST")).read()
    except OSError:
        pass
    jobcheck.mark("done", key)
"""


def test_an_error_that_the_handler_swallows_is_its_own_whatever_the_broker_could_have_lost(tmp_path: Path) -> None:
    """The worker lives and acknowledges the job: nobody but the handler let the charge go."""
    tiny.write(tmp_path, SWALLOWS)
    text = rig(
        '"broker": jobcheck.redis(), "payments": jobcheck.provider()',
        '"BROKER_URL": "{broker.url}", "PAYMENTS_URL": "{payments.base}"',
    )
    (tmp_path / "rig.py").write_text(text)
    contract = (at_least_once("payments POST /charges"),)
    subject = tiny.only(
        tiny.explore(f"{tmp_path / 'rig.py'}:tiny", contracts=contract, faults=("reset",), max_points=9)
    )
    assert layers(subject)["handler"] >= 1
    mine = [finding for finding in subject.findings if finding.layer == "handler"]
    assert [(finding.verdict, finding.effect) for finding in mine] == [("lost", "payments POST /charges")]
    assert mine[0].code.startswith("tiny.py:")
    assert subject.verdict == "broken"


@pytest.mark.parametrize("boot", ["cold", "standby"])
def test_cold_boots_and_standbys_find_what_zygotes_find(tmp_path: Path, boot: str) -> None:
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, tiny.TWICE), boot=boot, contracts=tiny.DONE_ONCE))
    zygote = tiny.only(tiny.explore(tiny.write(tmp_path, tiny.TWICE), contracts=tiny.DONE_ONCE))
    assert [(strike.id, strike.verdict, strike.layer) for strike in subject.strikes] == [
        (strike.id, strike.verdict, strike.layer) for strike in zygote.strikes
    ]


def test_an_app_that_starts_threads_at_import_is_booted_and_not_forked(tmp_path: Path) -> None:
    thread = "import threading\nthreading.Thread(target=threading.Event().wait, name='pool', daemon=True).start()"
    bus, seen = Bus(), list[Event]()
    bus.subscribe(seen.append)
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, settings=thread), bus=bus))
    assert layers(subject) == {"transport": 2}
    warned = [event.text for event in seen if isinstance(event, Warned)]
    assert warned
    assert "threads pool" in warned[0]


IMPORTED = """
import os
from pathlib import Path
with Path(__file__).with_name("imported").open("a") as out:
    out.write(f"{os.getpid()}\\n")
"""


def test_the_modules_of_the_tasks_are_imported_once_and_not_by_every_worker(tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text(IMPORTED)
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, settings='app.conf.include = ["more"]')))
    assert layers(subject) == {"transport": 2}
    importers = (tmp_path / "imported").read_text().splitlines()
    assert len(importers) == 3, "the producer and the zygotes of two seats"


def test_task_modules_that_start_threads_are_imported_by_every_worker_which_is_still_forked(tmp_path: Path) -> None:
    thread = "import threading\nthreading.Thread(target=threading.Event().wait, name='pool', daemon=True).start()"
    (tmp_path / "more.py").write_text(IMPORTED + thread)
    bus, seen = Bus(), list[Event]()
    bus.subscribe(seen.append)
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, settings='app.conf.include = ["more"]'), bus=bus))
    assert layers(subject) == {"transport": 2}
    assert not [event for event in seen if isinstance(event, Warned)]
    importers = (tmp_path / "imported").read_text().splitlines()
    assert len(importers) > 3 + subject.coverage.fired


def test_an_eager_app_is_named_when_no_job_arrives(tmp_path: Path) -> None:
    reference = tiny.write(tmp_path, settings="app.conf.task_always_eager = True")
    with pytest.raises(CaseError, match="the app runs jobs eagerly"):
        tiny.explore(reference)


def test_a_broker_variable_that_the_app_does_not_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match=r"within 3 s: it never used the tap of 'broker'.*its last lines:"):
        tiny.explore(tiny.write(tmp_path, variable="BROKER_ADDRESS"), deadline=3.0)


TALKS = "tiny.app.connection_for_write().ensure_connection(max_retries=1)"


@pytest.mark.parametrize(("call", "said"), [("pass", "it enqueued"), (TALKS, "it talked to the broker but enqueued")])
def test_a_condition_that_enqueues_nothing_is_named(tmp_path: Path, call: str, said: str) -> None:
    with pytest.raises(CaseError) as told:
        tiny.explore(tiny.write(tmp_path, call=call))
    assert told.value.message.startswith(f"{tmp_path / 'rig.py'}:enqueue ran, and no job arrived on the broker: {said}")
    assert "behind a condition?" in told.value.message
    assert "127." not in told.value.message, "the tap's own address says nothing to anybody"


def test_an_enqueue_function_that_goes_to_another_broker_is_told_which_one(tmp_path: Path) -> None:
    """The worker's address is the tap's, the producer's is not; its password is nobody's business."""
    other = "import sys\nif 'worker' not in sys.argv: app.conf.broker_url = 'redis://:s3cret@127.0.0.1:1/7'"
    with pytest.raises(CaseError) as told:
        tiny.explore(tiny.write(tmp_path, settings=other, call="pass"), boot="cold")
    assert "never used the tap of 'broker', the app's broker is redis://:***@127.0.0.1:1/7;" in told.value.message


def test_an_app_that_cannot_be_imported_shows_its_own_error(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="ModuleNotFoundError: No module named 'no_such_module'"):
        tiny.explore(tiny.write(tmp_path, settings="import no_such_module"))


def test_a_contract_whose_effect_never_occurs_lists_those_that_do(tmp_path: Path) -> None:
    from jobcheck.checks.contracts import exactly_once

    with pytest.raises(UsageError, match=r"effects seen: mark done \(1 time\)"):
        tiny.explore(tiny.write(tmp_path), mode="handler", contracts=(exactly_once("mark sent"),))


def test_without_contracts_the_lines_to_paste_are_given(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        tiny.explore(tiny.write(tmp_path), mode="handler", contracts=())
    assert 'exactly_once("mark done"),' in caught.value.hint


def test_a_job_that_is_not_deterministic_is_unknown_with_the_differing_messages(tmp_path: Path) -> None:
    other = '    import pathlib\n    p = pathlib.Path("n"); n = int(p.read_text()) if p.exists() else 0\n'
    other += '    p.write_text(str(n + 1))\n    jobcheck.mark("ab"[n % 2], key)\n    jobcheck.mark("done", key)\n'
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, other), mode="handler"))
    assert subject.verdict == "unknown"
    assert "two clean runs of this job differ" in subject.problem
    assert "marks a" in subject.problem
    assert "marks b" in subject.problem


def test_a_handler_that_fails_in_the_clean_run_is_unknown_with_its_error(tmp_path: Path) -> None:
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, "    raise ValueError('no such invoice')\n"), mode="handler"))
    assert subject.verdict == "unknown"
    assert "ValueError: no such invoice" in subject.problem
    assert "tiny.py" in subject.problem


def test_a_worker_whose_job_kills_it_is_told_as_such(tmp_path: Path) -> None:
    body = "    import os\n    os.kill(os.getppid(), 9)\n    import time\n    time.sleep(5)\n"
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, body)))
    assert subject.verdict == "unknown"
    assert "ended by itself" in subject.problem
