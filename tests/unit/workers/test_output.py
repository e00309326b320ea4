"""What becomes of the bytes that a process writes."""

from __future__ import annotations

from pathlib import Path

from jobcheck.clock import ManualClock
from jobcheck.workers import output
from jobcheck.workers.output import Output


def texts(one: Output) -> list[str]:
    return [line.text for line in one.lines]


def test_lines_are_the_same_however_the_bytes_are_cut() -> None:
    data = "eins\r\nzwei\n\nd\u00e4\u00e4r\n".encode()
    for size in range(1, len(data) + 1):
        one = Output()
        for at in range(0, len(data), size):
            one.feed(data[at : at + size])
        assert texts(one) == ["eins", "zwei", "", "däär"]


def test_each_line_has_the_time_at_which_it_was_read() -> None:
    clock = ManualClock(5.0)
    one = Output(clock=clock)
    one.feed(b"a\nb")
    clock.advance(1.5)
    one.feed(b"\n")
    assert [(line.at, line.text) for line in one.lines] == [(5.0, "a"), (6.5, "b")]


def test_a_line_without_an_end_is_seen_and_ends_with_the_output() -> None:
    one = Output()
    one.feed(b"a\nhalf")
    assert one.tail(1) == ["half"]
    assert one.text == "a\nhalf"
    one.close()
    one.close()
    assert texts(one) == ["a", "half"]


def test_an_endless_line_is_cut() -> None:
    one = Output()
    one.feed(b"x" * (output.LINE_LIMIT * 2 + 1))
    assert [len(text) for text in texts(one)] == [output.LINE_LIMIT] * 2


def test_only_the_last_lines_are_kept() -> None:
    one = Output()
    one.feed(b"".join(b"%d\n" % number for number in range(output.KEPT_LINES + 10)))
    assert len(one.lines) == output.KEPT_LINES
    assert one.lines[0].text == "10"


def test_bytes_that_are_no_text_do_not_stop_anything() -> None:
    one = Output()
    one.feed(b"\xff\xfe ok\n")
    assert texts(one) == ["\ufffd\ufffd ok"]


def test_a_listener_hears_lines_until_it_ends_its_subscription() -> None:
    one = Output()
    heard: list[str] = []
    end = one.subscribe(lambda line: heard.append(line.text))
    one.feed(b"a\n")
    end()
    end()
    one.feed(b"b\n")
    assert heard == ["a"]


def test_the_log_has_all_bytes_up_to_its_limit(tmp_path: Path) -> None:
    one = Output(tmp_path / "log")
    one.feed(b"a\n\xff")
    one.close()
    assert (tmp_path / "log").read_bytes() == b"a\n\xff"
    limit, output.LOG_LIMIT = output.LOG_LIMIT, 10
    try:
        full = Output(tmp_path / "full")
        full.feed(b"0123456789ab\n")
        full.feed(b"more\n")
        full.close()
    finally:
        output.LOG_LIMIT = limit
    assert (tmp_path / "full").read_text().startswith("0123456789ab\n\n[jobcheck: the log is full")
    assert "more" not in (tmp_path / "full").read_text()
    assert texts(full)[-1] == "more"
