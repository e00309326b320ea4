"""A scenario is held against its rig before anything is started; what the rig has not is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.errors import UsageError
from jobcheck.runner.scenarios.campaign import dry, load

RIG = """\
import jobcheck

shop = jobcheck.Rig(
    jobcheck.celery("shop.app:app"),
    upstreams={"broker": jobcheck.redis(), "db": jobcheck.postgres(), "payments": jobcheck.provider()},
    env={"BROKER_URL": "{broker.url}"},
)

def new_invoice(case):
    pass
"""
HEAD = "title: t\nrig: rig.py:shop\nworkload: {enqueue: new_invoice, count: 4, rate: 2/s}\n"
EXPECT = "expect:\n  - exactly_once: payments POST /charges\n"


def scenario(folder: Path, text: str) -> Path:
    """A scenario beside its rig."""
    (folder / "rig.py").write_text(RIG)
    file = folder / "s.yaml"
    file.write_text(text)
    return file


def message(folder: Path, text: str) -> str:
    """What loading it says, without the folder."""
    with pytest.raises(UsageError) as error:
        load(scenario(folder, text))
    return error.value.message.replace(f"{folder}/", "")


def test_a_rig_is_looked_for_beside_the_scenario(tmp_path: Path) -> None:
    """Wherever the command is run."""
    assert load(scenario(tmp_path, HEAD + EXPECT)).rig.upstreams.keys() == {"broker", "db", "payments"}


def test_a_rig_that_is_not_there_is_told_with_its_line(tmp_path: Path) -> None:
    text = HEAD.replace("rig.py", "rigs.py") + EXPECT
    assert message(tmp_path, text) == "s.yaml:2: no rig file rigs.py"
    text = HEAD.replace(":shop", ":shopp") + EXPECT
    assert message(tmp_path, text) == "s.yaml:2: rig.py has no rig 'shopp'; it has shop"


WRONG = {
    "{toxic: down, upstream: dbb}": "unknown upstream 'dbb'; did you mean 'db'?",
    "{outage: paymnts}": "unknown upstream 'paymnts'; did you mean 'payments'?",
    "{outage: zzz}": "unknown upstream 'zzz'; the rig has broker, db, payments",
    "{outage: db, status: 503}": "'status' is said of an HTTP provider, and 'db' is postgres; leave it out: "
    "connections are refused then",
    "{outage: payments, status: 503, first: 1 of each key}": "'payments' knows no keys; say which header has them: "
    "jobcheck.provider(idempotency='Idempotency-Key')",
    "{toxic: reset_peer, point: pyments POST /charges}": "unknown upstream 'pyments'; did you mean 'payments'?",
    "{kill: tree, point: pyments POST /charges}": "unknown upstream 'pyments'; did you mean 'payments'?",
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_fault_on_what_the_rig_has_not_is_told_with_its_line(tmp_path: Path, fault: str) -> None:
    assert message(tmp_path, f"{HEAD}faults:\n  - {fault}\n{EXPECT}") == f"s.yaml:5: {WRONG[fault]}"


def test_a_toxic_at_a_point_needs_the_engine_that_sees_messages(tmp_path: Path) -> None:
    text = f"{HEAD}engine: toxiproxy\nfaults:\n  - {{toxic: reset_peer, point: payments POST /charges}}\n{EXPECT}"
    assert message(tmp_path, text) == "s.yaml:6: a Toxiproxy server sees bytes and no messages; take engine: embedded"
    file = scenario(tmp_path, text.replace("engine: toxiproxy\n", ""))
    assert load(file).scenario.faults[0].text == ("toxic reset_peer timeout=0 downstream at payments POST /charges")
    with pytest.raises(UsageError, match="sees bytes and no messages"):
        load(file, engine="toxiproxy")


def test_a_copy_beside_the_first_one_needs_two_workers(tmp_path: Path) -> None:
    text = f"{HEAD}workers: 1\nfaults:\n  - {{duplicate: 5%, mode: while running}}\n{EXPECT}"
    assert message(tmp_path, text) == "s.yaml:6: a copy runs beside the first one on another worker; set workers: 2"


def test_a_contract_on_what_the_rig_has_not_is_told_with_its_line(tmp_path: Path) -> None:
    text = f"{HEAD}expect:\n  - none_lost\n  - exactly_once: paymnts POST /charges\n"
    assert message(tmp_path, text) == "s.yaml:6: unknown effect 'paymnts'; did you mean 'payments'?"


def test_a_backoff_at_what_is_no_provider_is_told_with_its_line(tmp_path: Path) -> None:
    text = HEAD + "expect:\n  - backoff: {provider: db, base: 1s}\n"
    assert message(tmp_path, text) == "s.yaml:5: unknown provider 'db'; the rig has payments"


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        load(tmp_path / "none.yaml")
    assert error.value.message == f"cannot read the scenario {tmp_path}/none.yaml: No such file or directory"
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"title: caf\xe9\n")
    with pytest.raises(UsageError) as error:
        load(file)
    assert error.value.message == f"{file}: expected UTF-8, got byte 0xe9"


def test_the_seed_of_the_command_goes_before_that_of_the_file(tmp_path: Path) -> None:
    file = scenario(tmp_path, HEAD + "seed: 5\nfaults:\n  - {kill: tree}\n" + EXPECT)
    assert dry(file)[1].startswith("seed 5,")
    assert dry(file, 6)[1].startswith("seed 6,")
    assert load(scenario(tmp_path, HEAD + EXPECT)).seed >= 0


def test_functions_that_do_not_exist_are_told_before_anything_starts(tmp_path: Path) -> None:
    text = HEAD.replace("new_invoice,", "new_invoic,") + "settle: [run_relay, shop.jobs:anything]\n" + EXPECT
    assert message(tmp_path, text).splitlines() == [
        "s.yaml:3: rig.py has no function 'new_invoic'; it has shop, new_invoice; did you mean new_invoice?",
        "s.yaml:4: rig.py has no function 'run_relay'; it has shop, new_invoice",
    ]
