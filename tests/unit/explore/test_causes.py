"""What has one cause is one finding."""

from __future__ import annotations

from jobcheck.checks.judge import Broken
from jobcheck.explore.advice import Evidence, advice, why
from jobcheck.explore.causes import HANDLER, TRANSPORT, Outcome, causes, gap
from jobcheck.explore.points import recorded
from jobcheck.explore.search import kills
from jobcheck.history.records import Effect, Verdict

from .hand import Wire

WIRE = Wire().ask("db", "postgres COMMIT").ask("payments", "http POST /charges").ask("mail", "smtp DATA")
POINTS = recorded(WIRE.operations).points
STRIKES = kills("s", POINTS)
CHARGE, MAIL = "payments POST /charges", "mail"


def lost(at: int, *effects: str, layer: str = HANDLER, verdict: Verdict = Verdict.LOST) -> Outcome:
    broken = tuple(Broken("c", effect, verdict, 0, 1, f"{effect}: 0 times, expected 1") for effect in effects)
    return Outcome(STRIKES[at], verdict, broken, layer)


def test_an_effect_that_is_only_lost_where_another_one_is_joins_it() -> None:
    found = causes([lost(1, CHARGE, MAIL), lost(2, MAIL)], POINTS)
    assert [(cause.effects, len(cause.outcomes)) for cause in found] == [([MAIL, CHARGE], 2)]


def test_other_verdicts_are_other_causes() -> None:
    found = causes([lost(1, CHARGE, verdict=Verdict.DUPLICATED), lost(2, MAIL)], POINTS)
    assert sorted(str(cause.verdict) for cause in found) == ["duplicated", "lost"]


def test_what_the_transport_loses_has_one_cause_whatever_effects_it_has() -> None:
    found = causes([lost(0, CHARGE, MAIL, layer=TRANSPORT), lost(1, MAIL, layer=TRANSPORT)], POINTS)
    assert len(found) == 1
    assert found[0].layer == TRANSPORT


def test_ok_and_unknown_are_no_causes() -> None:
    assert causes([Outcome(STRIKES[0], Verdict.OK), Outcome(STRIKES[1], Verdict.UNKNOWN)], POINTS) == []


def test_the_id_is_that_of_what_it_names() -> None:
    one = causes([lost(2, MAIL)], POINTS)[0]
    two = causes([lost(1, MAIL), lost(2, MAIL)], POINTS)[0]
    assert one.id("s") == two.id("s")
    assert one.id("s") != one.id("t")


def test_a_gap_lies_between_two_messages() -> None:
    assert [gap(strike, POINTS) for strike in STRIKES] == [
        "before db COMMIT",
        "after db COMMIT, before payments POST /charges",
        "after payments POST /charges, before mail DATA",
        "after mail DATA",
    ]


def test_a_record_that_comes_before_its_effect_is_blamed_for_the_loss() -> None:
    cause = causes([lost(2, MAIL)], POINTS)[0]
    assert advice(cause, POINTS, Evidence(())).startswith("db COMMIT says that the work is done before it is")
    assert "for good" in why(cause)


def test_a_provider_that_honours_keys_and_saw_none_gets_one() -> None:
    cause = causes([lost(2, CHARGE, verdict=Verdict.DUPLICATED)], POINTS)[0]
    charge = Effect(1, 0.0, CHARGE, "{}")
    assert "idempotency key" in advice(cause, POINTS, Evidence([charge, charge], honours_keys=True))


def test_a_key_that_was_the_same_and_was_forgotten_is_told() -> None:
    cause = causes([lost(2, CHARGE, verdict=Verdict.DUPLICATED)], POINTS)[0]
    charges = [Effect(n, 0.0, CHARGE, "{}", key="charge:1") for n in (1, 2)]
    assert "the provider had forgotten it by then" in advice(cause, POINTS, Evidence(charges, honours_keys=True))


def test_keys_that_differ_between_attempts_are_shown() -> None:
    cause = causes([lost(2, CHARGE, verdict=Verdict.DUPLICATED)], POINTS)[0]
    charges = [Effect(n, 0.0, CHARGE, "{}", key=f"charge:{n}") for n in (1, 2)]
    assert "charge:1, charge:2" in advice(cause, POINTS, Evidence(charges, honours_keys=True))
