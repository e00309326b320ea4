"""`mark` in an app: nothing without the variable, no trouble without a harness, clear errors under test."""

from __future__ import annotations

import ast
import socket
import sys
from pathlib import Path

import pytest

import jobcheck.marks
from jobcheck.marks import mark


def test_without_the_variable_a_mark_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOBCHECK_MARKS", raising=False)
    mark("two words are no kind", "and this\nis no key")


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:x", "127.0.0.1:99999999"])
def test_an_address_that_is_none_is_not_the_apps_trouble(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("JOBCHECK_MARKS", address)
    mark("sent", "17")


def test_a_harness_that_is_gone_is_not_the_apps_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("JOBCHECK_MARKS", f"127.0.0.1:{port}")
    mark("sent", "17")


@pytest.mark.parametrize(("kind", "key"), [("two words", ""), ("", ""), (" a", ""), ("a", "1\n2"), ("a", "1\r")])
def test_what_is_not_one_line_is_refused_under_test(monkeypatch: pytest.MonkeyPatch, kind: str, key: str) -> None:
    monkeypatch.setenv("JOBCHECK_MARKS", "127.0.0.1:1")
    with pytest.raises(ValueError, match=r"jobcheck\.mark"):
        mark(kind, key)


def test_the_module_is_python_3_8_and_needs_the_standard_library_alone() -> None:
    source = Path(jobcheck.marks.__file__).read_text()
    tree = ast.parse(source, feature_version=(3, 8))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "."]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names
