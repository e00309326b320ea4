"""What must be true of a subject whose bug the strikes do not show: all of them hit, and only the transport lost."""

from __future__ import annotations

from jobcheck.explore.causes import TRANSPORT
from jobcheck.faults.strikes import family_of
from jobcheck.history.report import SubjectReport


def only_the_transport_loses(subject: SubjectReport, families: set[str]) -> None:
    """Every strike of these families fired, none of another, and nothing was laid at the handler or its settings."""
    assert subject.problem == ""
    assert [finding.title for finding in subject.findings if finding.layer != TRANSPORT] == []
    assert [strike for strike in subject.strikes if strike.verdict != "ok" and strike.layer != TRANSPORT] == []
    assert subject.coverage.fired == subject.coverage.strikes > 0
    assert {family_of(strike.fault) for strike in subject.strikes} == families
