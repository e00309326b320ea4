"""What a caller expects of a run: contracts in words, and whose findings make it fail."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..checks.contracts import Contract, parse_contract
from ..errors import EXIT_BROKEN, EXIT_OK, EXIT_UNKNOWN, UsageError
from ..explore.causes import HANDLER, SETTINGS, TRANSPORT
from ..history.records import NEVER_PASS
from ..history.report import FindingReport, Report, SubjectReport

LAYERS = {
    "none": (),
    "handler": (HANDLER,),
    "settings": (HANDLER, SETTINGS),
    "all": (HANDLER, SETTINGS, TRANSPORT),
}
"""Whose findings fail a run, by what `--fail-on` says."""
_UNSURE = frozenset(map(str, NEVER_PASS))


def read_contract(value: object, where: str = "") -> Contract:
    """A contract as people write it: the value itself, `exactly once: mail, by subject`, or the Python call
    `exactly_once("mail", key="subject")` with or without a comma behind it, as reports offer it for pasting.

    Raises UsageError; `where` leads its message.
    """
    if isinstance(value, str) and (found := _called(value)) is not None:
        return parse_contract(found, where)
    return parse_contract(value, where)


def _called(text: str) -> dict[str, object] | None:
    """The mapping that a call stands for; None when the text is no call."""
    try:
        call = ast.parse(text.strip().rstrip(","), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(call, ast.Call):
        return None
    word = ast.unparse(call.func).removeprefix("jobcheck.")
    try:
        values = [ast.literal_eval(argument) for argument in call.args]
        named = {keyword.arg or "**": ast.literal_eval(keyword.value) for keyword in call.keywords}
    except ValueError:
        raise UsageError(f"expected a contract of plain texts, got {text.strip()!r}") from None
    given = dict(zip(("effect", "key"), values, strict=False)) | named
    return {word: {key: value for key, value in given.items() if value is not None}}


def fails(finding: FindingReport, fail_on: str) -> bool:
    """Whether this finding fails the run. Accepted ones and those that came once only never do. `fail_on` is handler,
    settings, all or none."""
    return finding.layer in LAYERS[fail_on] and not finding.accepted and finding.confirmed


def unsure(subject: SubjectReport) -> bool:
    """Whether any strike of it, or the whole of it, is neither a pass nor a breach."""
    return (
        bool(subject.problem)
        or not all(finding.confirmed for finding in subject.findings)
        or subject.verdict == "unknown"
        or any(strike.verdict in _UNSURE for strike in subject.strikes)
    )


def exit_code(subjects: Iterable[SubjectReport], fail_on: str) -> int:
    """1 when a finding fails the run, else 2 when something is unknown, else 0."""
    known = list(subjects)
    if any(fails(finding, fail_on) for subject in known for finding in subject.findings):
        return EXIT_BROKEN
    return EXIT_UNKNOWN if any(map(unsure, known)) else EXIT_OK


def exit_code_of(report: Report, fail_on: str) -> int:
    """The exit code of a whole run."""
    return exit_code(report.subjects, fail_on)
