"""What a scenario showed against what is planted: a sentence for each difference. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..explore.causes import TRANSPORT
from .compare import Compared
from .expected import Outcome
from .kinds import RIGHT, SCENARIO_MODE, Planted


def compare_run(planted: Planted, run: Mapping[str, Any]) -> Compared:
    """Every difference between a scenario's part of the report and what must come out. What the transport loses is
    nobody's bug, and no part of it."""
    if "expectations" not in run:
        return Compared(planted, SCENARIO_MODE, (f"unknown: {run.get('problem') or 'it did not run'}",))
    sentences = [*_cases(planted, run), *_expectations(planted, run)]
    sentences += [f"found elsewhere: {text}" for text in run["orphans"]]
    if run["problem"]:
        sentences.append(f"unknown: {run['problem']}")
    return Compared(planted, SCENARIO_MODE, tuple(sentences), float(run.get("seconds", 0.0)))


def _cases(planted: Planted, run: Mapping[str, Any]) -> list[str]:
    """What is missed, and what was found that is not planted."""
    wanted = {Outcome(bad.verdict, bad.layer, frozenset([bad.effect])) for bad in planted.bad}
    seen = {_outcome(bad) for bad in run["bad"] if bad["layer"] != TRANSPORT}
    other = ", ".join(sorted(one.text for one in seen - wanted)) or "its cases ended well"
    sentences = [f"missed: {want.text} with {planted.trouble}; {other}" for want in sorted(wanted - seen, key=_text)]
    if not sentences:
        word = "accused" if planted.kind == RIGHT else "found otherwise"
        sentences = [f"{word}: {one.text} with {planted.trouble}" for one in sorted(seen - wanted, key=_text)]
    return sentences


def _outcome(bad: Mapping[str, Any]) -> Outcome:
    effects = frozenset(str(phrase).partition(": ")[0] for phrase in bad["broken"])
    return Outcome(str(bad["verdict"]), str(bad["layer"]), effects)


def _text(outcome: Outcome) -> str:
    return outcome.text


def _expectations(planted: Planted, run: Mapping[str, Any]) -> list[str]:
    """Each expectation that should hold and does not, or the reverse, or of which nobody knows."""
    sentences = []
    for item in run["expectations"]:
        text, held = str(item["text"]), item["held"]
        meant = text.startswith(planted.breaks) if planted.breaks else False
        said = f"{text}: {item['detail']}" if item["detail"] else text
        if held is None:
            sentences.append(f"unknown: {said}")
        elif held and meant:
            sentences.append(f"missed: {text} holds with {planted.trouble}")
        elif not held and not meant:
            sentences.append(f"{'accused' if planted.kind == RIGHT else 'found otherwise'}: {said}")
    texts = [str(item["text"]) for item in run["expectations"]]
    absent = [head for head in planted.breaks if not any(text.startswith(head) for text in texts)]
    return [*sentences, *(f"missed: {head}; the scenario does not ask for it" for head in absent)]
