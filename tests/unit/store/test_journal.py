"""The journal: whole lines, torn lines, and trials that come back as they went in."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcheck.clock import ManualClock
from jobcheck.errors import Aborted, UsageError
from jobcheck.history.records import CaseRecord, Effect, Operation, Strike, TrialRecord
from jobcheck.store.folder import RunFolder
from jobcheck.store.journal import Journal, read_journal, trials


def trial(number: int = 1, body: str = '{"invoice": 1000017}') -> TrialRecord:
    return TrialRecord(
        id=f"t{number}",
        subject="naive",
        purpose="strike",
        case=CaseRecord(id=f"c{number}", number=number, ids={"invoice": "1000017"}, jobs=("j1",)),
        strike=Strike(id="41ab", point="9f2c"),
        fired=True,
        deliveries=2,
        operations=(Operation(1, 0.001, "w1", "payments", 3, "out", "request", "http POST /charges", fate="struck"),),
        effects=(Effect(1, 0.002, "payments POST /charges", body, fields={"json": {"a": [1, None]}}),),
        notes=("the lease was rewound",),
    )


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "demo", ManualClock(1796000000.0))


def test_trials_come_back_as_they_went_in(folder: RunFolder) -> None:
    with Journal(folder) as journal:
        journal.write("run", command="jobcheck demo", seed=7)
        journal.trial(trial(1))
        journal.write("event", text="between")
        journal.trial(trial(2))
        journal.write("end", verdict="ok")
    assert trials(folder.path) == [trial(1), trial(2)]
    assert [line["type"] for line in read_journal(folder.journal)] == ["run", "trial", "event", "trial", "end"]


def test_a_line_is_on_the_disk_before_the_next_is_written(folder: RunFolder) -> None:
    with Journal(folder) as journal:
        journal.trial(trial())
        assert trials(folder.path) == [trial()]


def test_lines_carry_the_seconds_since_the_run_began(tmp_path: Path) -> None:
    clock = ManualClock(1796000000.0)
    folder = RunFolder.create(tmp_path, "demo", clock)
    with Journal(folder) as journal:
        clock.advance(1.5)
        journal.write("event")
    assert next(read_journal(folder.path))["at"] == 1.5


def test_every_cut_of_a_journal_gives_its_whole_lines_and_one_torn_item(folder: RunFolder) -> None:
    with Journal(folder) as journal:
        journal.write("run", seed=7)
        journal.write("end")
    data = folder.journal.read_bytes()
    first = data.index(b"\n") + 1
    for cut in range(len(data)):
        folder.journal.write_bytes(data[:cut])
        got = [line["type"] for line in read_journal(folder.journal)]
        whole = ["run"] if cut >= first else []
        assert got == whole + (["torn"] if cut not in (0, first) else []), cut


def test_the_torn_item_says_where_and_how_much(folder: RunFolder) -> None:
    folder.journal.write_bytes(b'{"type":"run"}\n{"type":"tri')
    assert list(read_journal(folder.journal))[-1] == {"type": "torn", "line": 2, "bytes": 12}
    assert trials(folder.journal) == []


def test_damage_before_the_end_is_an_error_that_names_the_line(folder: RunFolder) -> None:
    folder.journal.write_bytes(b'{"type":"run"}\nnonsense\n{"type":"end"}\n')
    with pytest.raises(UsageError, match="line 2: expected a JSON object"):
        list(read_journal(folder.journal))


def test_a_missing_journal_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the journal"):
        trials(tmp_path / "nowhere")


def test_unknown_keys_and_types_are_passed_over(folder: RunFolder) -> None:
    with Journal(folder) as journal:
        journal.trial(trial())
        journal.write("from-the-future", x=1)
    lines = folder.journal.read_bytes().splitlines()
    line = json.loads(lines[0])
    line["trial"]["mood"] = "good"
    folder.journal.write_bytes(json.dumps(line).encode() + b"\n" + lines[1] + b"\n")
    assert trials(folder.path) == [trial()]


def test_redaction_comes_before_the_disk(folder: RunFolder) -> None:
    def redact(value: dict[str, object]) -> dict[str, object]:
        return {key: "***" if key == "password" else item for key, item in value.items()}

    with Journal(folder, redact=redact) as journal:
        journal.write("event", password="hunter2")
    assert b"hunter2" not in folder.journal.read_bytes()


def test_lines_of_many_threads_never_mix(folder: RunFolder) -> None:
    with Journal(folder) as journal, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: journal.trial(trial(n, "x" * 5000)), range(64)))
    assert sorted(record.case.number for record in trials(folder.path)) == list(range(64))


def test_a_full_disk_is_one_clear_error(folder: RunFolder) -> None:
    folder.journal.symlink_to("/dev/full")
    with Journal(folder) as journal, pytest.raises(Aborted, match="No space left on device"):
        journal.write("run")


def test_a_journal_that_cannot_be_opened_is_one_clear_error(folder: RunFolder) -> None:
    folder.journal.mkdir()
    with pytest.raises(UsageError, match="cannot write"):
        Journal(folder)


@given(body=st.text(st.characters()))
def test_any_text_of_a_payload_survives(tmp_path_factory: pytest.TempPathFactory, body: str) -> None:
    """Line separators, NULs and lone surrogates of other people's payloads neither tear lines nor get lost."""
    folder = RunFolder.create(tmp_path_factory.mktemp("any"), "demo", ManualClock(1796000000.0))
    with Journal(folder) as journal:
        journal.trial(trial(1, body))
    assert trials(folder.path) == [trial(1, body)]
