"""Jobs as the faces ask for them: resolved references and a name that a person knows."""

from __future__ import annotations

from collections.abc import Iterable

from ..checks.contracts import Contract
from .facade import Job
from .rig import Function, Rig


def queue_job(
    rig: Rig, function: Function, contracts: Iterable[Contract] = (), *, name: str = "", assume: str = ""
) -> Job:
    """A job through its queue; `function` enqueues one case. Raises UsageError for a lambda, a closure or no name."""
    reference = rig.reference(function)
    subject = name or _tail(reference)
    # Other settings are another subject: its findings have ids of their own.
    return Job(
        subject=f"{subject} [{assume}]" if assume else subject,
        mode="queue",
        function=reference,
        contracts=tuple(contracts),
        assume=assume,
    )


def handler_job(
    rig: Rig, handler: Function, case: Function, contracts: Iterable[Contract] = (), *, name: str = ""
) -> Job:
    """A job function without its queue; `case` makes its rows and returns its arguments. Raises UsageError."""
    reference = rig.reference(handler)
    return Job(
        subject=name or _tail(reference),
        mode="handler",
        function=rig.reference(case),
        handler=reference,
        contracts=tuple(contracts),
    )


def _tail(reference: str) -> str:
    return reference.rpartition(":")[2]
