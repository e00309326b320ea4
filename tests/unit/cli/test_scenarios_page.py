"""docs/scenarios.md: every example is read without a complaint, and every word of a scenario file is on the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobcheck.faults.toxics import TOXICS, fields_of
from jobcheck.runner.scenarios.campaign import load
from jobcheck.scenario.parse import FIELDS, parse
from jobcheck.scenario.read_expect import KINDS as EXPECTATIONS
from jobcheck.scenario.read_faults import FIELDS as FAULTS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "scenarios.md").read_text("utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SHOP = f"rig: {ROOT}/scenarios/apps/invoices/rig.py:shop\n"
WORKLOAD = "workload: {enqueue: new_invoice, count: 16, rate: 8/s}\n"


@pytest.mark.parametrize("block", BLOCKS)
def test_every_example_is_right(block: str, tmp_path: Path) -> None:
    if re.search("^title:", block, re.MULTILINE):
        assert parse(block, "docs/scenarios.md").faults
        return
    text = f"title: an example\n{SHOP}{'' if 'workload:' in block else WORKLOAD}"
    file = tmp_path / "example.yaml"
    expect = "" if "expect:" in block else "expect: [exactly_once: payments POST /charges]\n"
    file.write_text(f"{text}{block}\n{expect}")
    load(file)


def test_every_word_of_a_file_is_on_the_page() -> None:
    words = {*FIELDS, *FAULTS, *EXPECTATIONS, *TOXICS, *(name for kind in TOXICS for name in fields_of(kind))}
    words |= {name for fields in FAULTS.values() for name in fields if name not in ("when",)}
    assert sorted(word for word in words if not re.search(rf"\b{word}\b", PAGE)) == []
