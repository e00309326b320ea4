"""The self-test: bugs are found at their exact points and nothing else is, on real servers; and a report that differs
from what is planted is told, whichever way it differs.

One round in each mode serves all tests of the first part.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobcheck.cli.selftest import command
from jobcheck.events import Bus
from jobcheck.explore.causes import TRANSPORT
from jobcheck.history.report import Coverage, FindingReport, PointReport, StrikeReport, SubjectReport
from jobcheck.selftest.around import AROUND
from jobcheck.selftest.compare import Compared, compare, point_name
from jobcheck.selftest.expected import expected
from jobcheck.selftest.kinds import ACK, DELIVERY, HANDLER_MODE, QUEUE_MODE, RESERVE, RIGHT, WRONG, Planted
from jobcheck.selftest.planted import PLANTED
from jobcheck.selftest.rounds import Round, planted_in, play
from jobcheck.selftest.tally import Tally, places

BY_NAME = {planted.name: planted for planted in PLANTED}
THROUGH_THE_QUEUE = (
    *("ack_before_effect", "effect_after_ack", "enqueue_before_commit", "commit_then_enqueue"),
    *("ack_after_effect", "effect_before_ack", "enqueue_after_commit", "outbox"),
    *("marker_after", "half_a_file", "key_from_the_event"),
)
"""What the queue adds to, and a few more. `jobcheck selftest --mode queue` plays all of them."""


@pytest.fixture(scope="module")
def handler_round(tmp_path_factory: pytest.TempPathFactory) -> Round:
    return play(1, [HANDLER_MODE], seed=7, reports=tmp_path_factory.mktemp("handler"), bus=Bus())


@pytest.fixture(scope="module")
def queue_round(tmp_path_factory: pytest.TempPathFactory) -> Round:
    return play(1, [QUEUE_MODE], seed=7, reports=tmp_path_factory.mktemp("queue"), bus=Bus(), only=THROUGH_THE_QUEUE)


def differences(played: Round, name: str) -> tuple[str, ...]:
    assert played.broke == ""
    (item,) = (item for item in played.compared if item.planted.name == name)
    return item.differences


@pytest.mark.parametrize("name", [planted.name for planted, _ in planted_in([HANDLER_MODE])])
def test_a_job_function_comes_out_as_planted(handler_round: Round, name: str) -> None:
    """The bug at its points and nothing beside it; nothing at all in a right handler."""
    assert differences(handler_round, name) == ()


@pytest.mark.parametrize("name", THROUGH_THE_QUEUE)
def test_a_job_comes_out_of_its_queue_as_planted(queue_round: Round, name: str) -> None:
    """The same, and the transport's own two losses at the transport."""
    assert differences(queue_round, name) == ()


def test_there_are_at_least_a_dozen_bugs_and_as_many_right_handlers() -> None:
    kinds = [planted.kind for planted in PLANTED]
    assert kinds.count(WRONG) == kinds.count(RIGHT) >= 12
    assert len(BY_NAME) == len(PLANTED)


def test_every_bug_is_somewhere_and_no_right_handler_has_one() -> None:
    for planted in PLANTED:
        for mode in planted.modes:
            assert bool(places(planted, mode)) == (planted.kind == WRONG), (planted.name, mode)


def test_each_planted_handler_stands_in_the_app_and_none_is_forgotten() -> None:
    app = Path(__file__).parents[2] / "scenarios" / "apps" / "selftest" / "club"

    def stands_in(planted: Planted) -> str:
        about = "_in_trouble" if planted.scenario else "_around" if planted in AROUND else ""
        return f"{planted.kind}{about}.py"

    for name in {stands_in(planted) for planted in PLANTED}:
        mine = [planted.name for planted in PLANTED if stands_in(planted) == name]
        named = r"^@app\.task.*\ndef (\w+)\(|^def (\w+)\(email"
        found = re.findall(named, (app / name).read_text(), re.MULTILINE)
        assert [job or producer for job, producer in found] == mine


# How differences are told: reports made by hand, as they should be, and then spoilt.


def point(text: str, number: int) -> PointReport:
    """A point of that name: `db COMMIT #2`."""
    text, _, nth = text.partition(" #")
    upstream, _, shape = text.partition(" ")
    side = "delivery" if text == DELIVERY else "request"
    return PointReport(f"p{number}", upstream, f"x {shape}", int(nth or 1), side=side)


def report_of(planted: Planted, mode: str) -> SubjectReport:
    """The report that shows exactly what is planted."""
    wanted = expected(planted, mode)
    points = tuple(point(name, number) for number, name in enumerate(wanted.points))
    strikes = []
    for at, (one, name) in enumerate(zip(points, wanted.points, strict=True)):
        for when in ("before", "after") if at == len(points) - 1 else ("before",):
            bad = wanted.bad.get(f"{when} {name}")
            effects = tuple(f"{effect}: phrase" for effect in bad.effects) if bad else ()
            layer, verdict = (bad.layer, bad.verdict) if bad else ("", "ok")
            strikes.append(StrikeReport(f"{one.id}{when}", one.id, "kill", when, True, verdict, 0, "", effects, layer))
    by_name = dict(zip(wanted.points, points, strict=True))
    looks = []
    for place, bad in wanted.bad.items():
        fault, at, name = place.partition(" at ")
        if at:  # what is no kill
            effects = tuple(f"{effect}: phrase" for effect in bad.effects)
            if name not in by_name:
                looks.append(point(name, len(by_name)))
                by_name[name] = looks[-1]
            number, when = by_name[name].id, f"A held before {name}" if fault == "race" else "before"
            strikes.append(
                StrikeReport(f"{number}{fault}", number, fault, when, True, bad.verdict, 0, "", effects, bad.layer)
            )
    findings = tuple(
        FindingReport(
            "f", layer, words.partition(": ")[2], words.partition(": ")[0], (), verified={"reproduced": 3, "of": 3}
        )
        for layer, words in sorted(wanted.findings)
    )
    return SubjectReport(
        planted.name,
        "celery-redis",
        mode,
        points=points,
        looks=tuple(looks),
        strikes=tuple(strikes),
        findings=findings,
        coverage=Coverage(len(points), planted.strikes or len(strikes), planted.strikes or len(strikes)),
        verdict="broken" if any(item.layer != TRANSPORT for item in findings) else "ok",
    )


def spoilt(subject: SubjectReport, place: str, **change: object) -> SubjectReport:
    """The report with one strike changed: `before db COMMIT`."""
    when, _, name = place.partition(" ")
    (number,) = (one.id for one in subject.points if point_name(one) == name)
    strikes = [
        replace(strike, **change) if (strike.point, strike.when) == (number, when) else strike  # type: ignore[arg-type]
        for strike in subject.strikes
    ]
    assert strikes != list(subject.strikes)
    return replace(subject, strikes=tuple(strikes))


def told(name: str, mode: str, spoil: Callable[[SubjectReport], SubjectReport]) -> tuple[str, ...]:
    return compare(BY_NAME[name], spoil(report_of(BY_NAME[name], mode))).differences


@pytest.mark.parametrize(("planted", "mode"), [(planted, mode) for planted, mode in planted_in(["handler", "queue"])])
def test_a_report_that_shows_what_is_planted_has_no_difference(planted: Planted, mode: str) -> None:
    assert compare(planted, report_of(planted, mode)).differences == ()


def test_a_bug_that_is_not_found_is_missed() -> None:
    (line,) = told("no_key", "handler", lambda it: spoilt(it, "before db COMMIT", verdict="ok", layer="", effects=()))
    assert line == ("missed: duplicated: payments POST /charges (handler) before db COMMIT; the strike ended well")


def test_a_bug_that_is_found_at_another_point_is_told() -> None:
    (line,) = told(
        "no_key",
        "handler",
        lambda it: spoilt(it, "after db COMMIT", verdict="lost", layer="handler", effects=("mail: never",)),
    )
    assert line == "found elsewhere: lost: mail (handler) after db COMMIT, where nothing is planted"


def test_a_bug_that_is_laid_at_another_layer_or_has_another_verdict_is_told() -> None:
    (line,) = told("no_key", "handler", lambda it: spoilt(it, "before db COMMIT", verdict="partial"))
    assert line.startswith("found otherwise: partial: payments POST /charges (handler) before db COMMIT; planted dup")
    (line,) = told(
        "ack_before_effect", "queue", lambda it: spoilt(it, "before payments POST /charges", layer="handler")
    )
    assert line.endswith("(handler) before payments POST /charges; planted lost: payments POST /charges (settings)")


def test_a_right_handler_that_is_accused_is_told() -> None:
    (line,) = told(
        "marker_last",
        "queue",
        lambda it: spoilt(it, "before db COMMIT", verdict="lost", layer="handler", effects=("mail: never",)),
    )
    assert line.startswith("accused: lost: mail (handler) before db COMMIT")


def test_a_loss_of_the_transport_in_the_wrong_place_is_no_accusation_and_told_all_the_same() -> None:
    (line,) = told(
        "marker_last",
        "queue",
        lambda it: spoilt(it, f"before {ACK}", verdict="lost", layer="transport", effects=("mail: never",)),
    )
    assert line.startswith("found elsewhere: lost: mail (transport)")


@pytest.mark.parametrize("verdict", ["unknown", "not exercised", "diverged"])
def test_an_unknown_strike_is_a_difference_in_a_right_handler_too(verdict: str) -> None:
    differences = told("key_from_the_event", "queue", lambda it: spoilt(it, f"before {ACK}", verdict=verdict))
    assert differences == (f"unknown: {verdict} before {ACK}",)


def test_an_unknown_exploration_is_a_difference() -> None:
    assert told("outbox", "queue", lambda it: replace(it, problem="two clean runs differ")) == (
        "unknown: two clean runs differ",
    )
    assert told("outbox", "queue", lambda it: replace(it, verdict="unknown")) == (
        "unknown: the exploration as a whole",
    )


def test_other_points_strikes_left_out_and_flaky_findings_are_differences() -> None:
    fewer = told("key_stored_first", "handler", lambda it: replace(it, points=it.points[1:], strikes=it.strikes[1:]))
    assert fewer[0].startswith("other points: planted db COMMIT, payments POST /charges, db COMMIT #2; seen payments")
    (line,) = told("no_key", "handler", lambda it: replace(it, coverage=Coverage(2, 3, 2)))
    assert line == "not covered: 2 of 3 strikes fired"
    flaky = {"reproduced": 1, "of": 3}
    (line,) = told(
        "no_key", "handler", lambda it: replace(it, findings=(replace(it.findings[0], verified=flaky, title="twice"),))
    )
    assert line == "flaky 1/3: twice (f)"


def test_a_finding_too_many_or_too_few_is_a_difference() -> None:
    (line,) = told("no_key", "handler", lambda it: replace(it, findings=()))
    assert line == "other findings: planted handler duplicated: payments POST /charges; reported none"


def test_right_after_an_early_ack_a_loss_and_a_good_end_are_both_right() -> None:
    """The job is in its first steps at that time, and nobody can tell in which."""
    planted = BY_NAME["ack_before_effect"]
    report = report_of(planted, "queue")
    (number,) = (one.id for one in report.points if point_name(one) == ACK)
    for verdict, layer, effects in (("ok", "", ()), ("lost", "settings", ("payments POST /charges: never",))):
        strike = StrikeReport("s", number, "kill", "after", True, verdict, 0, "", effects, layer)
        more = replace(report, strikes=(*report.strikes, strike), coverage=Coverage(5, 7, 7))
        assert compare(planted, more).differences == ()


def test_what_a_transport_loses_is_expected_of_all_jobs_that_must_run() -> None:
    places_of = expected(BY_NAME["marker_last"], "queue").bad
    assert list(places_of) == [f"before {DELIVERY}", f"before {RESERVE}"]
    # A mail that may be missing is no breach when its job is lost.
    assert expected(BY_NAME["commit_before_mail"], "queue").bad == {}


def test_one_bad_round_of_many_fails_the_whole() -> None:
    good = Compared(BY_NAME["no_key"], "handler", ())
    bad = Compared(BY_NAME["no_key"], "handler", ("missed",))
    tally = Tally()
    tally.add(Round(1, 1, (good,), 2.0))
    assert tally.good
    tally.add(Round(2, 2, (bad,), 2.0))
    assert not tally.good
    assert tally.text == "1 handler, 0 as planted; 2 rounds in 4 s"
    assert tally.deviations() == ["no_key, handler mode: in 1 of 2 rounds"]


def test_a_round_that_broke_off_fails_the_whole() -> None:
    tally = Tally()
    tally.add(Round(1, 1, (), 2.0, broke="redis died"))
    assert not tally.good
    assert tally.text.endswith("1 round in 2 s, 1 broken off")


def test_the_command_plays_rounds_and_keeps_no_folder_of_good_ones(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        command,
        ["no_key", "key_from_the_event", "--mode", "handler", "--rounds", "2", "--reports", str(tmp_path)],
        standalone_mode=False,
    )
    assert done.exception is None, done.output
    assert done.return_value == 0
    assert "duplicated before db COMMIT" in done.stdout
    assert "round 2 of 2: 2 of 2 as planted" in done.stdout
    assert "2 handlers, 2 as planted; 2 rounds in" in done.stdout
    assert list(tmp_path.iterdir()) == []
