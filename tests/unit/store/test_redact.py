"""Secrets are taken out of texts, headers and JSON; everything else stays as it is; equal secrets stay equal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcheck.store.redact import USUAL, Redaction, Redactor

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"


def redactor(redaction: Redaction = USUAL) -> Redactor:
    return Redactor(b"salt", redaction)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"jwt {JWT} end", JWT),
        ("key sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc", "4eC39HqLyjWDarjtT1zdp7dc"),
        ("AKIA" + "IOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"),
        ("ghp_" + "a1" * 18, "a1" * 18),
        ("xoxb-" + "123456789012-abcdef", "123456789012-abcdef"),
        ("curl -H 'Authorization: Bearer abcdef123456'", "abcdef123456"),
        ("Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("amqp://guest:gu3st@127.0.0.1:5672//", "gu3st"),
        ("redis://:hunter2@localhost/0", "hunter2"),
        ('{"user":"ann","password":"hunter2"}', "hunter2"),
        ('{"access_token": "t0ps3cret", "a": 1}', "t0ps3cret"),
        ('{"clientSecret":"a\\"b"}', 'a\\"b'),
        ('{"body":"{\\"password\\":\\"hunter2\\"}"}', "hunter2"),
        ('{"cvv":123}', "123"),
        ("user=ann&api_key=k3y&x=1", "k3y"),
        ("password: 'hunter2'", "hunter2"),
        ("pay with 4111 1111 1111 1111 now", "4111 1111 1111 1111"),
        ("pay with 4242424242424242", "4242424242424242"),
        ("amex 3782-822463-10005", "3782-822463-10005"),
        ("HSET user:1 name ann password hunter2 age 7", "hunter2"),
        ('HMSET user:1 password "correct \\"horse\\" battery" name ann', "horse"),
        ('HSET user:1 password "correct horse…', "horse"),
        ("EXEC HSET user:1 apiKey k3y; ZADD users 1 a", "k3y"),
        ("EXEC INCR n; SET user:7:password hunter2;1; INCR n", "hunter2;1"),
        ("SETEX session-token 60 abc", "abc"),
    ],
)
def test_a_secret_in_a_text_is_taken_out(text: str, secret: str) -> None:
    hide = redactor()
    out = hide.text(text)
    assert secret not in out
    assert "<redacted:" in out
    assert hide.count == 1
    assert hide.text(out) == out, "redacting twice changes nothing"


@pytest.mark.parametrize(
    "text",
    [
        '{"invoice":1000017,"amount":"12.50"}',
        "INSERT INTO job_effects VALUES ('charge:1000017')",
        "charge:1000017:attempt-1",
        '{"max_tokens": 100, "tokens": 5, "secretary": "bob", "spin": 3}',
        '{"password":null,"token":""}',
        "UPDATE users SET password = $1, token = %s WHERE id = ?",
        "order 1234567890123456 at 1763000000123",
        "uuid 6f1c8a52-1b0e-4c7e-9d5f-0a1b2c3d4e5f",
        "4111 1111 1111 1112",
        "94111111111111111 and 0.4111111111111111",
        "http://127.0.0.1:8080/a@b",
        "mail to ann@example.org: your token is on its way",
        "HSET user:1 name password city token",
        "HSET pins a 1 b 2",
        "SET job:7 password",
        "SET lock:charge:7 1",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    hide = redactor()
    assert hide.text(text) == text
    assert hide.count == 0


def test_redacted_json_text_is_still_json() -> None:
    out = redactor().text(json.dumps({"password": 'a"b\\c', "n": {"token": "x y"}, "card": "4111111111111111"}))
    assert set(json.loads(out)) == {"password", "n", "card"}


def test_equal_secrets_stay_equal_and_different_ones_different_within_a_salt() -> None:
    hide = redactor()
    one, same, other = (hide.headers({"Authorization": f"Bearer {token}"}) for token in ("aaaaaa", "aaaaaa", "bbbbbb"))
    assert one == same != other
    assert hide.json({"token": "aaaaaa"})["token"] in one["Authorization"]
    assert Redactor(b"pepper").json({"token": "aaaaaa"}) != hide.json({"token": "aaaaaa"})


def test_credentials_in_headers_are_taken_out_and_the_scheme_stays() -> None:
    out = redactor().headers(
        {
            "authorization": "Bearer abc",
            "Cookie": "sid=1; b=2",
            "X-Api-Key": "k",
            "X-Auth-Token": "t",
            "x-invoice": "1000017",
            "content-type": "application/json",
        }
    )
    assert out["authorization"].startswith("Bearer <redacted:")
    assert all(out[name].startswith("<redacted:") for name in ("Cookie", "X-Api-Key", "X-Auth-Token"))
    assert (out["x-invoice"], out["content-type"]) == ("1000017", "application/json")


@pytest.mark.parametrize("key", ["charge:1000017", "token:17", "6f1c8a52-1b0e-4c7e-9d5f-0a1b2c3d4e5f"])
def test_an_idempotency_key_stays(key: str) -> None:
    hide = redactor()
    assert hide.headers({"Idempotency-Key": key}) == {"Idempotency-Key": key}
    assert hide.json({"idempotency_key": key}) == {"idempotency_key": key}


def test_an_idempotency_key_that_is_a_token_goes() -> None:
    assert JWT not in redactor().headers({"Idempotency-Key": JWT})["Idempotency-Key"]


def test_json_is_redacted_by_field_name_at_any_depth() -> None:
    out = redactor().json(
        {
            "user": {"Password": "x", "name": "ann"},
            "cards": [{"number": 4111111111111111, "cvc": "123"}],
            "secret": {"inner": ["a", 1, None]},
            "headers": {"authorization": "Basic abc", "x": "1"},
            "amount": 1763000000123,
            "token": None,
            "ok": True,
        }
    )
    assert out["user"]["Password"].startswith("<redacted:")
    assert out["user"]["name"] == "ann"
    assert all(str(value).startswith("<redacted:") for value in out["cards"][0].values())
    assert [str(item)[:10] for item in out["secret"]["inner"]] == ["<redacted:", "<redacted:", "None"]
    assert out["headers"]["authorization"].startswith("Basic <redacted:")
    assert (out["amount"], out["token"], out["ok"]) == (1763000000123, None, True)


def test_extra_fields_are_secret_too() -> None:
    hide = redactor(Redaction(fields=("national-id",)))
    assert hide.json({"nationalId": "77"})["nationalId"].startswith("<redacted:")
    assert "77" not in hide.text("national_id=77")
    assert "77" not in hide.text("HSET user:1 nationalId 77 name ann")
    assert "77" not in hide.text("INSERT INTO people (name, national_id) VALUES ('ann', '77')")
    assert hide.json({"customerNationalId": "77"})["customerNationalId"].startswith("<redacted:")


def test_keep_bodies_leaves_fields_alone_and_takes_credentials_out() -> None:
    hide = redactor(Redaction(keep_bodies=True))
    assert hide.json({"password": "x", "card": 4111111111111111}) == {"password": "x", "card": 4111111111111111}
    assert hide.text('{"cvv":123}') == '{"cvv":123}'
    assert "pw" not in hide.text("redis://u:pw@h/0")
    assert "abcdefg" not in hide.headers({"authorization": "abcdefg"})["authorization"]


@pytest.mark.parametrize(
    "piece",
    [
        "1-",
        "://a:",
        "token=",
        '"password":"',
        "eyJ",
        "Bearer ",
        "\\",
        "4 ",
        "sk_live_",
        "password ",
        "a" * 9,
        "://@",
        'HSET k "',
        "; HSET k password ",
    ],
)
def test_a_megabyte_of_anything_takes_linear_time(piece: str) -> None:
    """A quadratic pattern would run into the test's deadline by far."""
    text = piece * (1_000_000 // len(piece))
    assert redactor().text(text)


@given(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    ),
)
def test_any_text_and_any_json_value_are_taken(text: str, value: object) -> None:
    hide = redactor()
    once = hide.text(text)
    assert hide.text(once) == once
    assert json.dumps(hide.json(value))
