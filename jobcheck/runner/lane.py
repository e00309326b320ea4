"""A lane: one set of namespaces, stand-ins and taps in which one case runs at a time.

Lanes run side by side. What is shared between them (the servers) keeps them apart by namespace: another Redis
database number, another PostgreSQL database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..aio import wait_for
from ..checks.ownership import assign
from ..effects.files import FilesObserver
from ..effects.ledger import Ledger
from ..effects.mail import SmtpSink
from ..effects.marks import MarkServer, hear
from ..effects.observer import Server, Snapshot
from ..effects.provider import HttpProvider
from ..effects.rows import RowsObserver
from ..errors import CaseError, ServiceError, UsageError, WaitTimeout
from ..history.records import CaseRecord, Effect
from ..services import Service
from ..services.spec import STARTTLS, Address, Provider, Smtp, hosts_of, secured, wants_tls
from ..systems.contract import Dialect, Reader
from ..tap.authority import ALPN
from ..tap.listener import Slot
from ..tap.sight import Trace
from ..wire.registry import PROTOCOL_OF, decoder_for
from ..workers.supervisor import Worker
from .agents import Agent
from .company import Company, Readers
from .rig import Files, Rig, Rows, expand
from .stage import Stage
from .surroundings import surroundings

MARKS = "marks"
CANARY = "canary"
"""In place of an enqueue function: the canary is enqueued. Also the name of its only id."""


@dataclass(slots=True)
class Producer:
    """The child that makes cases, behind its own taps."""

    agent: Agent
    slot: Slot
    dialect: Dialect


@dataclass(slots=True)
class Case:
    """One instance of the work under test, as the harness knows it."""

    record: CaseRecord
    value: Any = None
    """What the case function returned."""


class Lane:
    """Use as an async context manager; `slot` and `agent` need it open."""

    def __init__(self, stage: Stage, rig: Rig, number: int) -> None:
        self.stage = stage
        self.rig = rig
        self.number = number
        self.trace = Trace(stage.clock, stage.job_clock)
        self.ledger = Ledger(stage.job_clock)
        self.addresses: dict[str, Address] = {}
        self.services: dict[str, Service] = {}
        self.providers: dict[str, HttpProvider] = {}
        self.slots: dict[str, Slot] = {}
        self.folder = stage.folder / f"lane{number}"
        self.cases: list[CaseRecord] = []
        self.kept: dict[str, Any] = {}
        """What a mode leaves running for the next subject of the same lane."""
        self.spoilt = False
        """A job was left half done in it: nothing else may run here."""
        self.company = Company(self)
        self._producer: Producer | None = None
        self._servers: list[Server] = []
        self._snapshots: list[Snapshot] = []
        self._agents: list[Agent] = []
        self._heard: list[Worker] = []
        """Whose lines of output may be marks."""
        self._numbers = 0

    async def __aenter__(self) -> Lane:
        try:
            return await self._open()
        except BaseException:
            await self.__aexit__()
            raise

    async def _open(self) -> Lane:
        self.stage.redactor.know({name: text for name, text in self.rig.env.items() if "{" not in text})
        self.folder.mkdir(exist_ok=True)
        self.folder.chmod(0o777)
        self.services = await self.stage.services(self.rig, self.number)
        for name, spec in self.rig.upstreams.items():
            if isinstance(spec, Provider):
                backend = await self.stage.backend(name, spec)
                provider = HttpProvider(name, spec, self.ledger, backend, self._place)
                self.providers[name] = provider
                await self._serve(provider, "http")
            elif isinstance(spec, Smtp):
                await self._serve(SmtpSink(name, self.ledger, tls=spec.tls == STARTTLS), "smtp")
            else:
                lane = f"{self.number}"
                self.addresses[name] = await self.services[name].namespace(lane)
        await self._serve(MarkServer("mark", self.ledger), "mark")
        for name, effect in self.rig.effects.items():
            self._snapshots.append(self._observer(name, effect))
        return self

    async def _serve(self, server: Server, scheme: str) -> None:
        await server.start()
        self._servers.append(server)
        name = MARKS if scheme == "mark" else server.name
        self.addresses[name] = Address(scheme, server.host, server.port)

    def _place(self, text: str) -> str:
        """The address of a callback: the app's own processes are where they listen."""
        return expand(text, {**self.addresses, **self.company.addresses}, folder=str(self.folder))

    def stand_in(self, upstream: str) -> Server | None:
        """The server of ours that plays this upstream; None where it is a real one."""
        return next((server for server in self._servers if server.name == upstream), None)

    def _observer(self, name: str, effect: Rows | Files) -> Snapshot:
        if isinstance(effect, Files):
            return FilesObserver(name, Path(expand(effect.folder, self.addresses, folder=str(self.folder))))
        if effect.upstream not in self.addresses:
            raise UsageError(f"effects[{name!r}] reads from {effect.upstream!r}, which the rig has not")
        return RowsObserver(name, effect.query, self.addresses[effect.upstream])

    async def __aexit__(self, *_: object) -> None:
        await self.company.close()
        for agent in self._agents:
            await agent.close()
        for slot in self.slots.values():
            await slot.close()
        for snapshot in self._snapshots:
            await snapshot.close()
        for server in self._servers:
            await server.stop()

    # Taps and processes

    async def slot(self, name: str, dialect: Dialect | None = None) -> Slot:
        """A set of taps, one per upstream. `dialect` reads the broker's messages."""
        slot = Slot(name, self.trace, self.stage.host)
        for upstream, address in self.addresses.items():
            await self.tap(slot, upstream, (address.host, address.port), dialect)
        slot.ignores = self.rig.ignores if self.rig.ignore else None
        await self.finish(slot)
        return slot

    def unused(self, name: str) -> str:
        """The name, or one like it that no slot has had yet: files of processes are called by it."""
        used = sum(known == name or known.startswith(f"{name}.") for known in self.slots)
        return f"{name}.{used + 1}" if used else name

    async def finish(self, slot: Slot) -> None:
        """What a slot has beside its taps."""
        self.slots[slot.name] = slot
        hosts = {host: name for name, spec in self.rig.upstreams.items() for host in hosts_of(spec)}
        if hosts:
            await slot.open_proxy(hosts, self.stage.proxy.refused)

    async def tap(self, slot: Slot, upstream: str, target: tuple[str, int], dialect: Dialect | None) -> None:
        """A tap of this slot in front of `target`, which is the upstream's server or a proxy before it."""
        spec = None if upstream == MARKS else self.rig.upstreams[upstream]
        protocol = PROTOCOL_OF[spec.kind if spec is not None else "marks"]
        tls = None
        if wants_tls(spec):
            names = [slot.host, "127.0.0.1", "localhost", *hosts_of(spec)]
            tls = self.stage.authority.context(*names, protocol=ALPN.get(protocol, ""))
        reader: Reader | None = dialect if upstream == self.rig.system.broker else None
        if dialect is not None and spec is not None and upstream != self.rig.system.broker:
            reader = self.rig.system.results(spec.kind)
        asks = tls is not None and (protocol != "smtp" or getattr(spec, "tls", "") == STARTTLS)
        await slot.tap(upstream, target, partial(decoder_for, protocol, tls=asks), reader, tls)

    def environment(self, slot: Slot, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a process behind this slot: the rig's variables, filled with the taps' addresses. `env`
        are a role's own, over them."""
        tapped = self.tapped(slot)
        secure = any(map(wants_tls, self.rig.upstreams.values()))
        mine = self.stage.authority.environment() if secure else {}
        ca = str(self.stage.authority.file) if secure else ""
        if slot.proxy is not None:
            mine |= slot.proxy.environment()
        # Not inside `folder`, which the rig can name: these files are nobody's effects.
        self.temporary.mkdir(exist_ok=True)
        mine["TMPDIR"] = str(self.temporary)
        mine |= surroundings(self.rig, tapped, folder=self.folder, name=slot.name, ca=ca, env=env)
        mine["JOBCHECK_MARKS"] = f"{slot.host}:{slot.listeners[MARKS].port}"
        mine["JOBCHECK_STACKS"] = str(self.stack_file(slot))
        if self.stage.pace is not None:
            mine |= self.stage.pace.environment()
        return self.stage.environment(mine)

    @property
    def temporary(self) -> Path:
        """Where this lane's processes put temporary files. Another lane's are out of sight; they go with the run.

        It is not emptied between trials: a worker outlives its trial, and needs what it wrote while it booted.
        """
        return self.stage.folder / f"tmp{self.number}"

    def temporary_of(self, case: Case) -> str:
        """The same for a process that lives for one trial only."""
        return str(self.temporary / str(case.record.number))

    def tapped(self, slot: Slot) -> dict[str, Address]:
        """What a process behind this slot finds where: upstreams at its taps, the app's processes at their ports."""
        found = {
            name: self._as_the_app_names_it(name, _moved(address, slot.host, slot.listeners[name].port))
            for name, address in self.addresses.items()
            if name in slot.listeners
        }
        return {**found, **self.company.addresses}

    async def accompanied(self, *, scenario: bool = False, reader: Readers | None = None) -> None:
        """The rig's other processes run from now on, as long as the lane is open. Raises WorkerError."""
        await self.company.start(scenario=scenario, reader=reader)

    def _as_the_app_names_it(self, name: str, address: Address) -> Address:
        return secured(address) if wants_tls(self.rig.upstreams.get(name)) else address

    def stack_file(self, slot: Slot) -> Path:
        """Where the processes behind this slot dump their stacks when asked."""
        return self.folder / f"stacks-{slot.name}"

    def process_name(self, slot: Slot) -> str:
        return f"{self.rig.name or 'rig'}-{self.number}-{slot.name}"

    async def agent(self, slot: Slot, name: str = "") -> Agent:
        """An agent behind this slot."""
        agent = await Agent.start(
            self.stage.supervisor,
            name=self.process_name(slot) + (f"-{name}" if name else ""),
            python=self.rig.system.interpreter,
            cwd=self.rig.folder,
            env=self.environment(slot),
            folder=self.stage.folder,
        )
        self._agents.append(agent)
        self.hear(agent.worker)
        return agent

    def hear(self, worker: Worker) -> None:
        """From now on, lines of its output that tell a mark are effects."""
        worker.output.subscribe(lambda line: hear(self.ledger, line.text))
        self._heard = [one for one in self._heard if one.alive]
        self._heard.append(worker)

    def _listen(self) -> None:
        """What was written before now is heard before now."""
        for worker in self._heard:
            worker.drain()

    async def producer(self) -> Producer:
        """The lane's producer, booted when it is first wanted."""
        if self._producer is None:
            dialect = self.rig.system.dialect()
            slot = await self.slot("producer", dialect)
            self._producer = Producer(await self.agent(slot), slot, dialect)
        return self._producer

    def broker_is(self, url: str) -> None:
        """The app's own word on its broker. Where it chooses the database number, that one is the broker's."""
        broker = self.rig.system.broker
        number = url.partition("?")[0].rpartition("/")[2]
        if self.rig.picks_its_number(broker) and number.isdigit():
            self.addresses[broker] = replace(self.addresses[broker], path=number)

    # Cases and effects

    async def new_case(self, function: str) -> Case:
        """Runs the case function in the producer child."""
        producer = await self.producer()
        data = self.case_data()
        try:
            answer = await producer.agent.request("case", function=function, case=data)
        except CaseError as error:
            error.hint = error.hint or self.stage.hurried
            raise
        record = CaseRecord(id=str(data["id"]), number=int(str(data["number"])), ids=answer["ids"])
        self.cases.append(record)
        return Case(record, answer["value"])

    def case_data(self) -> dict[str, object]:
        """What a fresh case is made from, in the process that runs its function."""
        number = self._number()
        return {"id": f"case-{number}", "number": number, "seed": self.stage.seeds.seed}

    def _number(self) -> int:
        self._numbers += 1
        return (self.number + 1) * 100_000 + self._numbers

    async def canary_case(self) -> Case:
        """Enqueues the canary: one mark, whose key is the case's only id."""
        number = self._number()
        key = f"canary-{number}"
        producer = await self.producer()
        await self.rig.system.enqueue_canary(producer.agent.call, key)
        record = CaseRecord(id=f"case-{number}", number=number, ids={CANARY: key})
        self.cases.append(record)
        return Case(record)

    async def prime(self) -> int:
        """Takes what is there now as known, and gives the ledger's number to read from. Providers call back as the rig
        says."""
        self._listen()
        for provider in self.providers.values():
            provider.courier.begin()
        for snapshot in self._snapshots:
            await snapshot.prime()
        return self.ledger.seq

    async def effects(self, since: int, case: CaseRecord) -> tuple[tuple[Effect, ...], tuple[str, ...]]:
        """The effects since then that belong to the case, and what is wrong with their owners."""
        self._listen()
        for snapshot in self._snapshots:
            for seen in await snapshot.read():
                self.ledger.add(seen)
        others = [other for other in self.cases[-20:] if other.id != case.id and other.ids]
        canaries = {other.ids[CANARY] for other in others if CANARY in other.ids}
        events = [effect for effect in self.ledger.since(since) if effect.body not in canaries]
        owned, problems = assign(events, [case, *others] if case.ids else [case])
        mine = tuple(effect for effect in owned if effect.case == case.id)
        couriers = [provider.courier for provider in self.providers.values()]
        # Where callbacks are the strike, one that the app refuses is what was asked for: its effect is missing then.
        given_up = [text for courier in couriers if not courier.how for text in courier.refused]
        return mine, (*problems, *given_up)

    @property
    def alive(self) -> bool:
        """Whether every server of this lane that is ours runs."""
        return all(service.alive for service in self.services.values())

    def check_alive(self) -> None:
        """Raises ServiceError when a server of this lane died, WorkerError when one of the app's processes did."""
        for name, service in self.services.items():
            if not service.alive:
                raise ServiceError(f"{name} ({service.origin}) died during the run", hint=f"see {name}.log in the run")
        self.company.check()

    @property
    def queued(self) -> str:
        """Calls that a provider's capacity makes wait, and callbacks that are to come; empty when there is none."""
        for provider in self.providers.values():
            if provider.waiting:
                return f"{provider.waiting} call(s) wait in the queue of {provider.name}"
            if provider.courier.waiting:
                return f"{provider.courier.waiting} callback(s) of {provider.name} are still to come"
        return ""

    async def settle_links(self, slots: Sequence[Slot], seconds: float = 1.0) -> None:
        """Waits until what was sent has been answered: the links of dead processes are empty."""
        try:
            await wait_for(
                lambda: not any(slot.in_flight() for slot in slots) and not self.queued,
                "answers",
                deadline=seconds,
                every=0.001,
            )
        except WaitTimeout:
            pass  # a server that never answers a dead client changes no verdict


def _moved(address: Address, host: str, port: int) -> Address:
    return Address(address.scheme, host, port, address.user, address.password, address.path, address.query)
