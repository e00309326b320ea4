"""Network faults as data: the toxics of Toxiproxy 2.12, under its names, parameters, directions and toxicity.

    Latency(200, jitter=50)                      data from the server is 150 to 250 ms late
    Timeout(0, stream="upstream")                what the client sends vanishes until the toxic is removed
    LimitData(4096, toxicity=0.5)                half of the connections end after 4096 bytes
    Down()                                       nothing listens, and what was connected is cut

Every value is checked when it is made: a wrong one raises UsageError. What each toxic does is said once, in its
docstring, and holds for both engines (`network.engine`).
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ..errors import UsageError


class Stream(enum.StrEnum):
    """The direction of a connection that a toxic acts on."""

    UPSTREAM = "upstream"
    """From the client (the worker) to the server."""
    DOWNSTREAM = "downstream"
    """From the server to the client."""


def _number(unit: str, *, least: int = 0, default: int | None = None) -> int:
    """A whole number of `unit`, at least `least`."""
    meta = {"unit": unit, "least": least}
    value: int = field(metadata=meta) if default is None else field(default=default, metadata=meta)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Toxic:
    """Base of all toxics. `toxicity` is the share of the connections that it acts on, drawn once per connection."""

    kind: ClassVar[str] = ""
    """Toxiproxy's word for it."""

    stream: Stream = Stream.DOWNSTREAM
    toxicity: float = 1.0

    def __post_init__(self) -> None:
        for one in self._numbers():
            _check_number(self.kind, one, getattr(self, one.name))
        object.__setattr__(self, "stream", _stream(self.kind, self.stream))
        object.__setattr__(self, "toxicity", _toxicity(self.kind, self.toxicity))
        self._check()

    def _check(self) -> None:
        """What holds between the parameters of one toxic. Raises UsageError."""

    @property
    def attributes(self) -> dict[str, int]:
        """The parameters as Toxiproxy's HTTP API wants them under `attributes`."""
        return {one.name: getattr(self, one.name) for one in self._numbers()}

    @property
    def default_name(self) -> str:
        """The name that Toxiproxy gives it when it is given none."""
        return f"{self.kind}_{self.stream}"

    @property
    def text(self) -> str:
        """One line for people: `latency latency=200 jitter=50 downstream on 50% of the connections`."""
        shown = " ".join(f"{name}={value}" for name, value in self.attributes.items())
        share = "" if self.toxicity == 1 else f" on {self.toxicity:.0%} of the connections"
        return f"{self.kind} {shown} {self.stream}{share}"

    @classmethod
    def _numbers(cls) -> list[dataclasses.Field[object]]:
        return [one for one in dataclasses.fields(cls) if "unit" in one.metadata]


@dataclass(frozen=True, slots=True)
class Latency(Toxic):
    """Each piece of data arrives `latency` ms later, more or less by up to `jitter` ms. The order is kept."""

    kind: ClassVar[str] = "latency"
    latency: int = _number("milliseconds")
    jitter: int = _number("milliseconds", default=0)


@dataclass(frozen=True, slots=True)
class Bandwidth(Toxic):
    """At most `rate` KB/s (1 KB = 1000 bytes) pass per connection. With 0, data waits until the toxic is removed."""

    kind: ClassVar[str] = "bandwidth"
    rate: int = _number("kilobytes per second")


@dataclass(frozen=True, slots=True)
class SlowClose(Toxic):
    """The end of the stream is passed on `delay` ms late."""

    kind: ClassVar[str] = "slow_close"
    delay: int = _number("milliseconds")


@dataclass(frozen=True, slots=True)
class Timeout(Toxic):
    """Data vanishes, and the connection is closed after `timeout` ms without any; 0: not before it is removed.

    Removing it closes the connections that it acted on, because data is missing from them.
    """

    kind: ClassVar[str] = "timeout"
    timeout: int = _number("milliseconds")


@dataclass(frozen=True, slots=True)
class ResetPeer(Toxic):
    """`timeout` ms after the first data in its direction, which vanishes, both sides get a TCP reset.

    Toxiproxy resets connections that are made after the toxic; those that are older it closes without a reset.
    """

    kind: ClassVar[str] = "reset_peer"
    timeout: int = _number("milliseconds", default=0)


@dataclass(frozen=True, slots=True)
class Slicer(Toxic):
    """Data is cut into slices of about `average_size` bytes, each at most `size_variation` larger, sent `delay` us
    apart."""

    kind: ClassVar[str] = "slicer"
    average_size: int = _number("bytes", least=1)
    size_variation: int = _number("bytes", default=0)
    delay: int = _number("microseconds", default=0)

    def _check(self) -> None:
        if self.size_variation >= self.average_size:
            raise UsageError(
                f"slicer: expected size_variation to be less than average_size, "
                f"got {self.size_variation} and {self.average_size}"
            )


@dataclass(frozen=True, slots=True)
class LimitData(Toxic):
    """The connection is closed as soon as `bytes` bytes have passed since the toxic was added to it."""

    kind: ClassVar[str] = "limit_data"
    bytes: int = _number("bytes")


@dataclass(frozen=True, slots=True)
class Down(Toxic):
    """Connections are refused, and those that exist are cut, until it is removed. It has no direction and no
    toxicity: Toxiproxy disables the whole proxy."""

    kind: ClassVar[str] = "down"

    def _check(self) -> None:
        if self.toxicity != 1 or self.stream is not Stream.DOWNSTREAM:
            raise UsageError("down: expected neither stream nor toxicity, it takes the whole upstream away")

    @property
    def default_name(self) -> str:
        return self.kind

    @property
    def text(self) -> str:
        return self.kind


TOXICS: dict[str, type[Toxic]] = {
    one.kind: one for one in (Latency, Down, Bandwidth, SlowClose, Timeout, ResetPeer, Slicer, LimitData)
}
"""By Toxiproxy's names."""

TRIGGERS = frozenset({"at", "for", "every", "during"})
"""Keys of a scenario's fault that say when, not what."""


def make(word: str, values: Mapping[str, object]) -> Toxic:
    """The toxic of that name with these parameters, `stream` and `toxicity` among them.

    Raises UsageError that says what was expected, what was seen, and the nearest right word for a typo.
    """
    kind = _kind(word)
    for key in values:
        if key not in fields_of(word):
            raise _unknown(kind.kind, str(key), fields_of(word))
    return _made(kind, values)


def fields_of(word: str) -> tuple[str, ...]:
    """The keys that the toxic of that name takes. Raises UsageError when there is none of that name."""
    kind = _kind(word)
    return (*(one.name for one in kind._numbers()), *(() if kind is Down else ("stream", "toxicity")))


def parse(entry: Mapping[str, object], *, besides: Collection[str] = TRIGGERS) -> tuple[str, Toxic]:
    """Upstream and toxic of a scenario's mapping: `{toxic: latency, upstream: db, latency: 200, jitter: 50}`.

    Keys in `besides` are somebody else's and passed over. Raises UsageError as `make` does.
    """
    kind = _kind(entry.get("toxic"))
    own = fields_of(kind.kind)
    for key in entry:
        if key not in {"toxic", "upstream", *own, *besides}:
            raise _unknown(kind.kind, str(key), [*own, "upstream", *sorted(besides)])
    upstream = entry.get("upstream")
    if not isinstance(upstream, str) or not upstream:
        raise UsageError(f"{kind.kind}: expected upstream: the name of an upstream of the rig, got {upstream!r}")
    return upstream, _made(kind, {key: entry[key] for key in own if key in entry})


def to_json(toxic: Toxic, name: str = "") -> dict[str, object]:
    """What Toxiproxy's HTTP API takes to add it. Raises UsageError for Down, which is no toxic there."""
    if isinstance(toxic, Down):
        raise UsageError("down: Toxiproxy has no such toxic, its proxy is disabled instead")
    return {
        "name": name or toxic.default_name,
        "type": toxic.kind,
        "stream": str(toxic.stream),
        "toxicity": toxic.toxicity,
        "attributes": toxic.attributes,
    }


def from_json(body: Mapping[str, object]) -> Toxic:
    """The toxic that Toxiproxy's HTTP API describes; its name is left out. Raises UsageError."""
    kind = _kind(body.get("type"))
    values = body.get("attributes", {})
    if not isinstance(values, Mapping):
        raise UsageError(f"{kind.kind}: expected attributes to be a mapping, got {values!r}")
    names = [one.name for one in kind._numbers()]
    for key in values:
        if key not in names:
            raise _unknown(kind.kind, str(key), names)
    outer = {key: body[key] for key in ("stream", "toxicity") if key in body}
    return _made(kind, {**values, **outer})


def _kind(word: object) -> type[Toxic]:
    if isinstance(word, str) and word in TOXICS:
        return TOXICS[word]
    raise UsageError(f"toxic: expected one of {', '.join(TOXICS)}, got {word!r}", hint=_nearest(str(word), TOXICS))


def _made(kind: type[Toxic], values: Mapping[str, object]) -> Toxic:
    for one in kind._numbers():
        if one.name not in values and one.default is dataclasses.MISSING:
            raise UsageError(f"{kind.kind}: expected {one.name} in {one.metadata['unit']}, and it is missing")
    return kind(**values)  # type: ignore[arg-type]  # each value is checked when it is made


def _unknown(kind: str, key: str, known: Collection[str]) -> UsageError:
    if kind == Down.kind:
        return UsageError(f"down: unknown key {key!r}; it takes the whole upstream away and has no parameters")
    listed = ", ".join(known)
    return UsageError(f"{kind}: unknown key {key!r}, expected {listed}", hint=_nearest(key, known))


def _nearest(word: str, known: Collection[str]) -> str:
    found = difflib.get_close_matches(word.lower().replace("-", "_"), known, n=1)
    return f"{found[0]} (the nearest word)" if found else ""


def _check_number(kind: str, one: dataclasses.Field[object], value: object) -> None:
    unit, least = one.metadata["unit"], one.metadata["least"]
    if isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63:
        return
    digits = "".join(char for char in value if char.isdigit()) if isinstance(value, str) else ""
    raise UsageError(
        f"{kind}: expected {one.name} to be a whole number of {unit}, at least {least}, got {value!r}",
        hint=f"write a plain number of {unit}, such as {one.name}: {digits}" if digits else "",
    )


def _stream(kind: str, value: object) -> Stream:
    words = [str(one) for one in Stream]
    if isinstance(value, str) and value in words:
        return Stream(value)
    raise UsageError(
        f"{kind}: expected stream to be upstream or downstream, got {value!r}", hint=_nearest(str(value), words)
    )


def _toxicity(kind: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise UsageError(f"{kind}: expected toxicity to be a number from 0 to 1, got {value!r}")
