"""Folding of findings, shortening of stories, and the words that all faces share."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jobcheck.history.report import Coverage, Report, StoryLine, StrikeReport, SubjectReport
from jobcheck.report.stories import Told, again, plain_story, shorten, stories
from jobcheck.report.text import by_name, clean, coverage_line, finding_words, headline, listed, plural, verified_words

from . import samples


def test_the_same_bug_in_both_modes_is_told_once_and_the_apps_own_come_first() -> None:
    told = stories(samples.demo())
    assert [item.finding.id for item in told] == ["5be072", "e8120c", "7c0de1"]
    assert told[0].same_words == "the same in queue mode"
    assert told[0].strikes == 6


def test_bugs_of_different_jobs_are_never_folded() -> None:
    other = replace(samples.naive(False), name="marker_before")
    report = replace(samples.demo(), subjects=(samples.naive(False), other))
    assert len(stories(report)) == 4


def test_an_accepted_finding_stands_alone_and_last() -> None:
    subject = samples.naive(True)
    known = replace(subject.findings[0], accepted="until the provider is changed")
    report = replace(samples.demo(), subjects=(samples.naive(False), replace(subject, findings=(known,))))
    told = stories(report)
    assert told[-1].finding.accepted
    assert all(not item.same for item in told)


def test_the_designs_own_coverage_line() -> None:
    strikes = [StrikeReport(f"o{n}", "p", "kill", "before", True, "ok") for n in range(18)]
    strikes += [StrikeReport(f"d{n}", "p", "kill", "before", True, "duplicated") for n in range(2)]
    strikes += [StrikeReport("l", "p", "kill", "before", True, "lost")]
    found = samples.naive(True).findings
    subject = SubjectReport(
        "invoice",
        "celery",
        "queue",
        strikes=tuple(strikes),
        findings=(found[0], found[2]),
        coverage=Coverage(5, 21, 21),
    )
    assert coverage_line([subject]) == "5 points, 21 strikes, 21 fired: 18 ok, 2 duplicated (1 cause), 1 lost"


def test_a_capped_space_says_so() -> None:
    subject = SubjectReport("a", "b", "queue", coverage=Coverage(5, 10, 9, False, "capped at 10 of 21"))
    assert coverage_line([subject]) == "5 points, 10 strikes, 9 fired; capped at 10 of 21"


def test_the_headline_says_what_the_verdict_means_for_this_run() -> None:
    demo = samples.demo()
    assert headline(demo) == "Found exactly what is planted"
    assert headline(replace(demo, verdict="broken")) == "Found something else than what is planted"
    assert headline(samples.unknown()) == "Not every strike gave an answer"
    own = replace(samples.naive(True), expected="")
    assert headline(replace(demo, verdict="broken", subjects=(own,))).startswith("Effects were lost")
    assert headline(replace(demo, subjects=(own,))).startswith("The app's own code held")
    assert headline(replace(demo, subjects=())) == "Every effect happened as often as it should"


def test_the_modes_of_a_job_stand_side_by_side() -> None:
    names = [SubjectReport(name, "s", mode) for mode in ("handler", "queue") for name in ("b", "a")]
    assert [(item.name, item.mode) for item in by_name(names)] == [
        ("b", "handler"),
        ("b", "queue"),
        ("a", "handler"),
        ("a", "queue"),
    ]


def test_words() -> None:
    assert plural(1, "cause") == "1 cause"
    assert plural(0, "cause") == "0 causes"
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    found = samples.naive(True).findings
    assert finding_words(found) == "2 handler, 1 transport"
    assert finding_words([]) == "none"
    assert finding_words([replace(found[0], accepted="known")]) == "1 accepted"
    assert verified_words(found[0]) == "verified 3/3"
    assert verified_words(replace(found[0], verified={"reproduced": 1, "of": 3})) == "flaky 1/3"
    assert verified_words(replace(found[0], verified={})) == "not verified"


@given(st.text(st.characters()))
def test_clean_text_is_one_line_that_utf8_can_hold(text: str) -> None:
    got = clean(text)
    assert got.isprintable() or not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in got)
    assert len(got.splitlines()) <= 1
    got.encode("utf-8")


@given(st.integers(0, 60), st.integers(1, 40), st.integers(0, 59))
def test_a_shortened_story_keeps_its_strike_and_counts_what_it_left_out(lines: int, limit: int, strike: int) -> None:
    story = [StoryLine("w1", str(n), kind="strike" if n == strike else "message") for n in range(lines)]
    got = shorten(story, limit)
    kept = [line for line in got if not isinstance(line, int)]
    assert len(kept) + sum(line for line in got if isinstance(line, int)) == lines
    assert [line for line in story if line in kept] == kept
    assert strike >= lines or story[strike] in kept


def test_an_effect_that_comes_word_for_word_again_is_counted() -> None:
    lines = [StoryLine("mail", text, "mail", "effect") for text in ("a", "b", "a", "a", "a")]
    assert again([*lines, StoryLine("mail", "b", "mail")]) == {2: "2nd time", 3: "3rd time", 4: "4th time"}


def test_the_plain_story_has_all_that_a_reader_needs() -> None:
    subject = samples.naive(True)
    text = plain_story(Told(subject, subject.findings[0]))
    for part in (
        "payments POST /charges happens twice when the worker dies after it",
        "code: jobs.py:31 charge_and_mail",
        "w1 > payments  POST /charges",
        "X w1: w1 is killed here: COMMIT never leaves it",
        "+ w2: job 7f1e again",
        "replay: jobcheck replay a41c9e",
    ):
        assert part in text
    assert stories(Report("x", 1, "ok")) == ()
