"""Jobs as the faces ask for them: resolved references and a name that a person knows."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ..checks.contracts import Contract
from ..errors import UsageError
from ..faults.strikes import read_faults
from .facade import Job
from .rig import Function, Rig


def queue_job(
    rig: Rig,
    function: Function,
    contracts: Iterable[Contract] = (),
    *,
    name: str = "",
    assume: str = "",
    follow: bool = False,
) -> Job:
    """A job through its queue; `function` enqueues one case. With `follow`, the jobs that it causes are explored with
    it. Raises UsageError for a lambda, a closure or no name."""
    reference = found(rig.reference(function))
    subject = name or _tail(reference)
    # Other settings, and more jobs, are another subject: its findings have ids of their own.
    told = ", ".join(filter(None, [assume, "follow" if follow else ""]))
    return Job(
        subject=f"{subject} [{told}]" if told else subject,
        follow=follow,
        mode="queue",
        function=reference,
        contracts=tuple(contracts),
        assume=assume,
    )


def handler_job(
    rig: Rig, handler: Function, case: Function, contracts: Iterable[Contract] = (), *, name: str = ""
) -> Job:
    """A job function without its queue; `case` makes its rows and returns its arguments. Raises UsageError."""
    reference = found(rig.reference(handler))
    return Job(
        subject=name or _tail(reference),
        mode="handler",
        function=found(rig.reference(case)),
        handler=reference,
        contracts=tuple(contracts),
    )


def producer_job(rig: Rig, function: Function, contracts: Iterable[Contract] = (), *, name: str = "") -> Job:
    """The code that stores a row and enqueues a job; `function` is called with a case. Raises UsageError."""
    reference = found(rig.reference(function))
    return Job(subject=name or _tail(reference), mode="producer", function=reference, contracts=tuple(contracts))


def deployed(jobs: Sequence[Job], version: str | None) -> list[Job]:
    """The jobs, with a deploy of this version, if any, at each point of those that go through a queue. Raises
    UsageError when none does."""
    if not version:
        return list(jobs)
    if not any(job.mode == "queue" for job in jobs):
        raise UsageError("a deploy replaces a worker, and a handler that runs without its queue has none")
    return [replace(job, deploy=version) if job.mode == "queue" else job for job in jobs]


def struck_at(rig: Rig, jobs: Sequence[Job], role: str | None) -> list[Job]:
    """The jobs, with this process of the rig struck in the worker's place, if one is named. Raises UsageError."""
    if not role:
        return list(jobs)
    running = [name for name, one in rig.others.items() if not one.schedules]
    if role not in running:
        raise UsageError(
            f"the rig has no process {role!r} to strike; it has {', '.join(running) or 'none'}",
            hint='processes={"relay": "python -m shop.relay"} in the rig',
        )
    if any(job.mode != "queue" or job.deploy or job.follow for job in jobs):
        raise UsageError(f"{role} is struck while a job goes through its queue: name the function that begins it alone")
    return [replace(job, subject=f"{job.subject} at {role}", at=role) for job in jobs]


def strikes_of(words: str) -> tuple[str, ...]:
    """The families of strikes that `--faults` names; kills alone for an empty text."""
    return read_faults(words)


def found(reference: str) -> str:
    """The reference itself. Raises UsageError where the named file plainly has no such function: nothing is started
    for a typing error. Modules are left to the app's own environment, where they are imported."""
    where, _, qualname = reference.rpartition(":")
    if not where.endswith(".py"):
        return reference
    try:
        tree = ast.parse(Path(where).read_bytes(), where)
    except OSError as error:
        raise UsageError(
            f"cannot read {where}: {error.strerror}", hint="give the path from here, or module:function"
        ) from None
    except SyntaxError as error:
        raise UsageError(f"{where}:{error.lineno} is no Python: {error.msg}") from None
    names = _names(tree)
    if "*" in names or qualname.partition(".")[0] in names:
        return reference
    near = difflib.get_close_matches(qualname, names, n=1, cutoff=0.5)
    known = ", ".join(name for name in names if not name.startswith("_"))
    raise UsageError(
        f"{where} has no function {qualname!r}; it has {known or 'none'}",
        hint=f"did you mean {near[0]}?" if near else "",
    )


def _names(tree: ast.Module) -> list[str]:
    """The names at the top of a module that may be functions; `*` when it has more than it says: by an import, under a
    condition, by a `__getattr__` of its own."""
    names = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append("*" if node.name == "__getattr__" else node.name)
        elif isinstance(node, ast.ImportFrom):
            names += [alias.asname or alias.name for alias in node.names if node.module != "__future__"]
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.If | ast.Try | ast.With):
            names.append("*")
    return names


def _tail(reference: str) -> str:
    return reference.rpartition(":")[2]
