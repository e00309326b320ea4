"""Whatever is sent to the HTTP API is answered: any bytes, any JSON, any target."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcheck.faults.toxics import Toxic
from jobcheck.network.api import Answer, Api

A = json.dumps({"name": "a", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:1"}).encode()
TARGETS = ("/proxies", "/proxies/a", "/proxies/a/toxics", "/proxies/a/toxics/x", "/populate", "/reset", "/version")
METHODS = ("GET", "POST", "PATCH", "DELETE", "PUT")


class Nothing:
    """An engine that only remembers."""

    def place(self, name: str, listen: tuple[str, int], upstream: tuple[str, int]) -> None:
        assert 0 <= listen[1] < 65536
        assert 0 <= upstream[1] < 65536

    async def open(self, name: str) -> tuple[str, int]:
        return "127.0.0.1", 4711

    async def disable(self, proxy: str) -> None: ...
    def aim(self, name: str, listen: tuple[str, int], upstream: tuple[str, int]) -> None:
        self.place(name, listen, upstream)

    async def drop(self, name: str) -> None: ...
    async def add(self, proxy: str, toxic: Toxic, *, name: str = "") -> str:
        return name

    async def change(self, proxy: str, name: str, toxic: Toxic) -> None: ...
    async def remove(self, proxy: str, name: str) -> None: ...


def answers(*requests: tuple[str, str, bytes]) -> list[Answer]:
    """All answers of one API that has a proxy `a` with a toxic `x`."""

    async def main() -> list[Answer]:
        api = Api(Nothing())
        await api.answer("POST", "/proxies", A)
        await api.answer("POST", "/proxies/a/toxics", b'{"name": "x", "type": "slicer"}')
        return [await api.answer(*request) for request in requests]

    return asyncio.run(main())


NAMES = ("name", "listen", "upstream", "enabled", "type", "stream", "toxicity", "attributes", "latency", "average_size")
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["a", "x", "latency", "slicer", "upstream", "127.0.0.1:0", "h:99999", "h:²", "\x00:1", "..:1"]),
)
VALUES: Any = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=len(NAMES))
    ),
    max_leaves=12,
)


@given(st.sampled_from(METHODS), st.sampled_from(TARGETS), VALUES)
def test_any_json_is_answered(method: str, target: str, value: Any) -> None:
    (answer,) = answers((method, target, json.dumps(value).encode()))
    assert 200 <= answer.status < 600
    if answer.kind.startswith("application/json"):
        json.loads(answer.body)


@given(st.sampled_from(METHODS), st.sampled_from(TARGETS), st.binary(max_size=40))
def test_any_bytes_are_answered(method: str, target: str, body: bytes) -> None:
    (answer,) = answers((method, target, body))
    assert 200 <= answer.status < 600


@given(st.text(max_size=30))
def test_any_target_is_answered(target: str) -> None:
    (answer,) = answers(("GET", f"/{target}", b""))
    assert answer.status in (200, 301, 404, 405)


@pytest.mark.parametrize(
    ("target", "body", "said"),
    [
        ("/proxies", b"[" * 100_000, "exceeded max depth"),
        ("/proxies", b"1" * 5000, "bad request body: "),
        ("/proxies/a/toxics", b'{"type": "latency", "toxicity": 1e999}', "number 1e999 into Go struct field"),
        ("/proxies/a/toxics", b'{"type": "latency", "toxicity": NaN}', "invalid character 'N' looking for"),
        ("/proxies/a/toxics", b'{"type": "latency", "attributes": {"jitter": 9223372036854775808}}', "of type int64"),
    ],
)
def test_extremes_are_refused_with_a_reason(target: str, body: bytes, said: str) -> None:
    (answer,) = answers(("POST", target, body))
    assert answer.status == 400
    assert said in json.loads(answer.body)["error"]
