"""The words by which strikes are chosen and told."""

from __future__ import annotations

from jobcheck.config import FAULTS
from jobcheck.faults import strikes
from jobcheck.wire.refusals import refusal
from jobcheck.wire.unit import Kind, Unit


def test_the_settings_know_the_words_that_the_strikes_know() -> None:
    assert (*strikes.FAMILIES, strikes.ALL) == FAULTS


def test_nothing_said_means_kills_and_all_means_every_family() -> None:
    assert strikes.read_faults("") == ("kill",)
    assert strikes.read_faults("reset, kill reset") == ("reset", "kill")
    assert strikes.read_faults("kill, all") == tuple(strikes.FAMILIES)


def test_every_strike_of_every_family_has_words() -> None:
    kinds = [kind for family in strikes.FAMILIES.values() for kind in family]
    assert sorted([*kinds, strikes.DEPLOY]) == sorted(strikes.WORDS)
    assert strikes.family_of("error-reply 40001") == "reset"
    assert strikes.detail_of("error-reply 40001") == "40001"


def test_a_plan_is_counted_by_strike() -> None:
    assert strikes.counted([]) == ""
    assert strikes.counted(["kill"]) == "1 kill"
    assert strikes.counted(["kill", "kill", "lose-reply", "error-reply 500", "error-reply 451"]) == (
        "2 kills, 1 lost reply and 2 error replies"
    )


def test_a_redis_transaction_is_discarded_and_answered_as_the_server_would() -> None:
    exec_ = Unit(b"*1\r\n$4\r\nEXEC\r\n", Kind.REQUEST, "redis EXEC(SET a)")
    refused = refusal(exec_, "OOM")
    assert refused.send == b"*1\r\n$7\r\nDISCARD\r\n"
    assert refused.instead.startswith(b"-EXECABORT Transaction discarded because of: OOM ")


def test_a_request_that_no_server_sees_is_answered_by_the_tap() -> None:
    refused = refusal(Unit(b"POST / HTTP/1.1\r\n\r\n", Kind.REQUEST, "http POST /"), "500")
    assert (refused.send, refused.instead) == (b"", b"")
    assert refused.answer.startswith(b"HTTP/1.1 500 ")
