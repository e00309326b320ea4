"""A scenario against its rig: whatever can be known to be wrong before anything is started."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...errors import UsageError
from ...faults.model import Deploy, Duplicate, Fail, Fault, Kill, Outage, Poison, Restart
from ...faults.outages import KEY
from ...faults.where import Where
from ...scenario.model import EMBEDDED, TOXIPROXY, BackoffIs, Scenario
from ...scenario.parse import parse
from ...scenario.read_outages import OUTAGE_FIELDS
from ...services.spec import Postgres, Provider, RabbitMQ, Redis
from ..asked import found
from ..rig import Rig, load_rig
from .clocks import wrong_with

A_KEY = "say which header has them: jobcheck.provider(idempotency='Idempotency-Key')"


def read_scenario(path: Path, shown: str = "") -> Scenario:
    """The scenario of a file; `shown` is what errors call it. Raises UsageError with the line of each mistake."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read the scenario {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: expected UTF-8, got byte {error.object[error.start]:#04x}") from None
    return parse(text, shown or str(path))


def rig_of(scenario: Scenario, folder: Path) -> Rig:
    """The scenario's rig; a path is relative to `folder`. Raises UsageError with the line of `rig`."""
    try:
        return load_rig(scenario.rig, folder)
    except UsageError as error:
        raise UsageError(f"{scenario.where.lead('rig')}{error.message}", hint=error.hint) from None


def check_scenario(scenario: Scenario, rig: Rig) -> None:
    """Raises UsageError with a line for each thing that the rig has not."""
    wrong = [text for fault in scenario.faults for text in (*_fault(fault, rig, scenario), *_point(fault, rig))]
    for name, where in [(scenario.workload.enqueue, scenario.workload.where.lead("enqueue"))] + [
        (name, scenario.where.lead("settle")) for name in scenario.settle
    ]:
        try:
            reference = rig.reference(name)
            if not scenario.versions:  # a version may have functions of its own
                found(reference)
        except UsageError as error:
            wrong.append(f"{where}{error.message}" + (f"; {error.hint}" if error.hint.startswith("did you") else ""))
    names = [*rig.upstreams, *(effect for effect in ("rows", "files", "mark"))]
    for item in scenario.expect:
        if isinstance(item, BackoffIs):
            wrong += _backoff(item, rig)
    for contract in scenario.contracts:
        lead = contract.effect.partition(" ")[0]
        if lead not in names and lead not in rig.effects:
            wrong.append(f"{_line_of(scenario, contract.text)}{_unknown('effect', lead, names)}")
    if scenario.toxiproxy and scenario.engine == TOXIPROXY:
        wrong.append(
            f"{scenario.where.lead('toxiproxy')}a Toxiproxy server answers its own API, past the run's history; "
            f"take engine: {EMBEDDED}, which answers it too"
        )
    wrong += wrong_with(scenario)
    if wrong:
        raise UsageError("\n".join(wrong))


def _backoff(item: BackoffIs, rig: Rig) -> Iterable[str]:
    name = item.rule.provider
    providers = [one for one, spec in rig.upstreams.items() if isinstance(spec, Provider)]
    if name not in providers:
        yield f"{item.where.lead()}{_unknown('provider', name, providers) if providers else 'the rig has no provider'}"


def _line_of(scenario: Scenario, text: str) -> str:
    return next((item.where.lead() for item in scenario.expect if item.text == text), "")


def _fault(fault: Fault, rig: Rig, scenario: Scenario) -> Iterable[str]:
    if isinstance(fault, Poison):
        yield from _upstream(fault.upstream, rig, fault.where, "point" if fault.messages else "upstream")
        if fault.messages and scenario.engine == TOXIPROXY:
            yield f"{fault.where.lead('point')}a Toxiproxy server sees bytes and no messages; take engine: {EMBEDDED}"
    elif isinstance(fault, Outage):
        yield from _upstream(fault.upstream, rig, fault.where, "outage")
        spec = rig.upstreams.get(fault.upstream)
        if isinstance(spec, Provider):
            if fault.reply.each == KEY and not spec.idempotency:
                yield f"{fault.where.lead('first')}{fault.upstream!r} knows no keys; {A_KEY}"
        elif spec is not None and not fault.reply.refused:
            field = next(name for name in OUTAGE_FIELDS if name in fault.where.fields)
            yield (
                f"{fault.where.lead(field)}{field!r} is said of an HTTP provider, and {fault.upstream!r} is "
                f"{spec.kind}; leave it out: connections are refused then"
            )
    elif isinstance(fault, Fail):
        yield from _service(fault, rig)
    elif isinstance(fault, Duplicate) and fault.mode == "while running" and scenario.workers < 2:
        yield f"{fault.where.lead('mode')}a copy runs beside the first one on another worker; set workers: 2"


def _point(fault: Fault, rig: Rig) -> Iterable[str]:
    if isinstance(fault, Kill | Restart | Fail | Deploy) and fault.point is not None:
        yield from _upstream(fault.point.name.partition(" ")[0], rig, fault.where, "point")


def _service(fault: Fail, rig: Rig) -> Iterable[str]:
    """Only brokers and databases that jobcheck starts itself are made to fail."""
    spec = rig.upstreams.get(fault.service)
    lead = fault.where.lead(fault.how)
    if fault.service in rig.others:
        if fault.how not in ("kill", "restart"):
            yield f"{lead}{fault.service!r} is a process of the app: say kill or restart"
        if fault.point is not None:
            yield f"{fault.where.lead('point')}processes are struck at points by jobcheck explore --at {fault.service}"
    elif spec is None:
        yield f"{lead}{_unknown('upstream', fault.service, [*rig.upstreams, *rig.others])}"
    elif not isinstance(spec, Redis | Postgres | RabbitMQ):
        yield f"{lead}{fault.service!r} is a stand-in of kind {spec.kind}, no server; say outage: {fault.service}"
    elif spec.url:
        yield (
            f"{lead}{fault.service!r} is given by its url, and jobcheck restarts, wipes and hampers only servers that "
            "it started itself; leave the url out of the rig"
        )
    elif fault.how == "wipe" and fault.service != rig.system.broker:
        yield (
            f"{lead}{fault.service!r} is not the broker: what is wiped is the queue's storage; rows of a database are "
            "what the jobs are judged by"
        )


def _upstream(name: str, rig: Rig, where: Where, field: str) -> Iterable[str]:
    if name not in rig.upstreams:
        yield f"{where.lead(field)}{_unknown('upstream', name, list(rig.upstreams))}"


def _unknown(what: str, name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    rest = f"did you mean {near[0]!r}?" if near else f"the rig has {', '.join(names)}"
    return f"unknown {what} {name!r}; {rest}"
