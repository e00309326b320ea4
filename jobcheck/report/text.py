"""Words and characters that all faces share: safe text, counts, the coverage line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from jobcheck.history.records import NEVER_PASS, WORST_FIRST, Verdict
from jobcheck.history.report import FindingReport, PointReport, Report, StrikeReport, SubjectReport

OK = str(Verdict.OK)
UNSURE = frozenset(str(verdict) for verdict in NEVER_PASS)
"""Verdicts that neither pass nor convict."""
ORDER = (OK, *(str(verdict) for verdict in WORST_FIRST if verdict is not Verdict.OK))
LAYERS = ("handler", "settings", "transport")

# Control characters, what reorders text on a screen, lone surrogates, and what XML 1.0 has no place for.
_HOSTILE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": " "}


def clean(text: str) -> str:
    """`text` on one line, harmless on a terminal, in XML and in HTML: what cannot be shown is shown as its escape."""
    return _HOSTILE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    return _NAMED.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}")


def plural(count: int, word: str) -> str:
    """`1 cause`, `2 causes`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def listed(items: Iterable[str]) -> str:
    """`a, b and c`."""
    names = list(items)
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


def tone(verdict: str) -> str:
    """`good`, `bad` or `unsure`: the colour of a verdict, of a strike or of a whole report."""
    if verdict == OK:
        return "good"
    return "unsure" if verdict in UNSURE else "bad"


def verdict_counts(strikes: Iterable[StrikeReport]) -> dict[str, int]:
    """How many strikes ended how: `ok` first, then the worst first."""
    counts = Counter(strike.verdict for strike in strikes)
    known = {verdict: counts.pop(verdict) for verdict in ORDER if verdict in counts}
    return known | dict(sorted(counts.items()))


def count_words(counts: Mapping[str, int], causes: Mapping[str, int] | None = None) -> str:
    """`18 ok, 2 duplicated (1 cause), 1 lost`. Causes are named where several strikes share a verdict."""
    parts = []
    for verdict, count in counts.items():
        because = f" ({plural(causes[verdict], 'cause')})" if causes and causes.get(verdict) and count > 1 else ""
        parts.append(f"{count} {verdict}{because}")
    return ", ".join(parts)


def coverage_line(subjects: Iterable[SubjectReport], causes: Mapping[str, int] | None = None) -> str:
    """The run in one line: `5 points, 21 strikes, 21 fired: 18 ok, 2 duplicated (1 cause), 1 lost`.

    `causes` is the number of causes by verdict; without it every finding counts as one.
    """
    known = list(subjects)
    points = sum(subject.coverage.points for subject in known)
    strikes = sum(subject.coverage.strikes for subject in known)
    fired = sum(subject.coverage.fired for subject in known)
    if causes is None:
        causes = Counter(finding.verdict for subject in known for finding in subject.findings)
    counts = verdict_counts(strike for subject in known for strike in subject.strikes)
    words = f"{plural(points, 'point')}, {plural(strikes, 'strike')}, {fired} fired"
    if counts:
        words += f": {count_words(counts, causes)}"
    capped = [subject.coverage.capped or "capped" for subject in known if not subject.coverage.exhausted]
    return f"{words}; {listed(dict.fromkeys(capped))}" if capped else words


def finding_words(findings: Iterable[FindingReport]) -> str:
    """`2 handler, 1 transport`, or `none`; accepted ones are named apart."""
    layers = Counter("accepted" if finding.accepted else finding.layer for finding in findings)
    order = [*LAYERS, *sorted(set(layers) - {*LAYERS, "accepted"}), "accepted"]
    return ", ".join(f"{layers[layer]} {layer}" for layer in order if layers[layer]) or "none"


def verified_words(finding: FindingReport) -> str:
    """`verified 3/3`, `flaky 1/3`, or `not verified`."""
    reproduced, of = finding.verified.get("reproduced", 0), finding.verified.get("of", 0)
    if not of:
        return "not verified"
    return f"verified {reproduced}/{of}" if reproduced == of else f"flaky {reproduced}/{of}"


def headline(report: Report) -> str:
    """The run's result in words. A demo is `ok` when it found what is planted, not when it found nothing."""
    if report.scenarios and not report.subjects:
        return _scenarios_headline(report)
    if report.verdict == "unknown":
        return "Not every strike gave an answer"
    if any(subject.expected for subject in report.subjects):
        return "Found exactly what is planted" if report.verdict == OK else "Found something else than what is planted"
    if report.verdict != OK:
        return "Effects were lost, or happened more often than they should"
    if any(subject.findings for subject in report.subjects):
        return "The app's own code held; what was found is the transport's, or accepted"
    return "Every effect happened as often as it should"


def _scenarios_headline(report: Report) -> str:
    """Of scenario files: how many of them are broken, or gave no answer."""
    count = len(report.scenarios)
    verdicts = Counter(str(scenario.get("verdict")) for scenario in report.scenarios)
    broken, held = verdicts["broken"], verdicts[OK]
    if broken:
        some = f"{broken} of {count} scenarios {'is' if broken == 1 else 'are'} broken"
        return "The scenario is broken" if count == 1 else some
    if held < count:
        return "The scenario gave no answer" if count == 1 else f"{count - held} of {count} scenarios gave no answer"
    return "The scenario held" if count == 1 else f"All {count} scenarios held"


def by_name(subjects: Iterable[SubjectReport]) -> list[SubjectReport]:
    """The subjects with all modes of a job side by side, jobs in the order in which they first come."""
    groups: dict[str, list[SubjectReport]] = {}
    for subject in subjects:
        groups.setdefault(subject.name, []).append(subject)
    return [subject for group in groups.values() for subject in group]


def title_of(finding: FindingReport) -> str:
    """The finding's one sentence, made from its parts where it has none."""
    return clean(finding.title or f"{finding.effect}: {finding.verdict}")


def explain_words(finding: FindingReport) -> str:
    """The command that shows code before and after: `jobcheck explain duplicated`."""
    word = clean(finding.layer if finding.layer in ("settings", "transport") else finding.verdict)
    return f"jobcheck explain '{word}'" if " " in word else f"jobcheck explain {word}"


def label(subject: SubjectReport) -> str:
    """`naive, queue mode`."""
    return f"{clean(subject.name)}, {clean(subject.mode)} mode"


def in_job(point: PointReport) -> str:
    """`shop.jobs.charge: ` before what is said of a point; empty where there is one job only."""
    return f"{point.job}: " if point.job else ""


def jobs_of(subject: SubjectReport) -> list[str]:
    """The jobs whose points were explored together, in the order in which they ran; none where there is one only."""
    return list(dict.fromkeys(point.job for point in subject.points if point.job))


def strikes_of(subject: SubjectReport, job: str) -> tuple[StrikeReport, ...]:
    """The strikes at what one of these jobs does."""
    points = subject.struck
    return tuple(one for one in subject.strikes if one.point in points and points[one.point].job == job)
