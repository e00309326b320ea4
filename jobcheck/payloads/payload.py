"""A recorded payload, and the folder that keeps them: `payloads/<version>/<task>/<shape>.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..store.files import refused, write_whole
from ..store.folder import slug
from ..store.redact import Redactor
from .messages import Message, renewed
from .shape import Parameter, payload_shape, shape_id

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Payload:
    """One payload as it was seen on the wire, with all that is needed to send it again."""

    task: str
    version: str
    """Of the code that sent it."""
    recorded: str
    """ISO 8601, UTC."""
    function: str
    """The enqueue function of the case: `new_invoice`. Run again, it makes the rows that the arguments name."""
    system: str
    queue: str
    """The list on Redis that it was put into, or its routing key on RabbitMQ."""
    ids: Mapping[str, str]
    """The business ids of that case by name; they occur in the arguments, and are replaced when it is sent again."""
    args: Sequence[Any] | None
    """None: the body is not JSON, see `content_type`."""
    kwargs: Mapping[str, Any] | None
    parameters: Sequence[Parameter]
    """What the task's function takes in this version; empty where it could not be asked."""
    content_type: str
    size: int
    """Bytes of the body."""
    redacted: Sequence[str]
    """Where a secret was taken out: `kwargs.token`."""
    unfit: str
    """Why it cannot be sent again as it was; empty when it can."""
    raw: str
    """The whole message."""

    @property
    def shape(self) -> Mapping[str, Any]:
        return payload_shape(self.args, self.kwargs, self.content_type)

    @property
    def id(self) -> str:
        return shape_id(self.task, self.shape)

    def to_json(self) -> str:
        """The file's text: the format first, and the shape for people who read diffs."""
        told = {"format": FORMAT, "id": self.id, "shape": self.shape, **asdict(self)}
        return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def from_json(text: str, where: str) -> Payload:
    """Reads a payload file. Unknown keys are ignored. Raises UsageError, which names `where`."""
    try:
        told = json.loads(text)
        if told["format"] != FORMAT:
            raise UsageError(f"{where} has format {told['format']!r}, this jobcheck reads {FORMAT}")
        fields = {name: told[name] for name in Payload.__dataclass_fields__}
        fields["parameters"] = tuple(
            Parameter(one["name"], one["required"], one.get("kind", "positional")) for one in told["parameters"]
        )
        return Payload(**fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{where} is no recorded payload: {type(error).__name__}: {error}",
            hint="remove it and record again: jobcheck payloads record",
        ) from None


def from_message(
    raw: str, message: Message, *, version: str, recorded: str, function: str, system: str, queue: str,
    ids: Mapping[str, str], parameters: Sequence[Parameter],
) -> Payload:  # fmt: skip
    """The payload of a message, without its secrets.

    A secret becomes `<redacted>`, so the payload can be sent again as long as a text stands for a text; a number that
    became a text is another shape, and makes it unfit.
    """
    args, kwargs = message.args, message.kwargs
    redacted: list[str] = []
    unfit = ""
    if args is not None and kwargs is not None:
        args, kwargs, redacted = _without_secrets(args, kwargs, parameters)
        if redacted:
            raw = renewed(raw, job=message.id, tag="recorded", args=args, kwargs=kwargs)
            fresh = payload_shape(args, kwargs, "")
            if fresh != payload_shape(message.args, message.kwargs, ""):
                unfit = f"a number was a secret and is now a text: {', '.join(redacted)}"
    return Payload(
        task=message.task,
        version=version,
        recorded=recorded,
        function=function,
        system=system,
        queue=queue,
        ids=dict(ids),
        args=args,
        kwargs=kwargs,
        parameters=tuple(parameters),
        content_type=message.content_type,
        size=message.size,
        redacted=tuple(redacted),
        unfit=unfit,
        raw=raw,
    )


def _without_secrets(
    args: Sequence[Any], kwargs: Mapping[str, Any], parameters: Sequence[Parameter]
) -> tuple[list[Any], dict[str, Any], list[str]]:
    redactor = Redactor(salt=b"payloads are kept, so equal secrets must not look equal")
    places = [one.name for one in parameters if one.kind == "positional"]
    redacted: list[str] = []

    def clean(where: str, name: str, value: Any) -> Any:
        before = redactor.count
        # The name decides whether a value is a secret, and a positional argument has the name of its parameter.
        done = redactor.json({name: value})[name] if name else redactor.json(value)
        if redactor.count == before:
            return value
        redacted.append(where)
        return _nameless(done)

    cleaned = [
        clean(f"args[{number}]", places[number] if number < len(places) else "", value)
        for number, value in enumerate(args)
    ]
    named = {name: clean(f"kwargs.{name}", name, value) for name, value in kwargs.items()}
    return cleaned, named, redacted


def _nameless(value: Any) -> Any:
    """`<redacted:1a2b3c4d>` is another in each run, and a short hash tells more than a file in a repository should."""
    if isinstance(value, str):
        parts = value.split("<redacted:")
        return parts[0] + "".join("<redacted>" + part.partition(">")[2] for part in parts[1:])
    if isinstance(value, Mapping):
        return {name: _nameless(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_nameless(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of a payload that was to be written."""

    payload: Payload
    path: Path
    fresh: bool
    """False: this version had a payload of this shape already, and its file was left as it is."""


def write(folder: Path, payloads: Iterable[Payload]) -> list[Kept]:
    """Writes each payload whose shape its version does not have yet. Raises UsageError or Aborted for the disk."""
    kept = []
    for payload in payloads:
        path = folder / slug(payload.version) / slug(payload.task) / f"{payload.id}.json"
        fresh = not path.exists()
        if fresh:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise refused(path.parent, error, "make") from error
            write_whole(path, payload.to_json())
        kept.append(Kept(payload, path, fresh))
    return kept


def read(folder: Path, version: str = "") -> list[Payload]:
    """The recorded payloads of one version, by task and shape; by default of the version that was recorded last.

    Empty when there are none. Raises UsageError for a file that is none, naming it.
    """
    if version:
        return _read_version(folder / slug(version))
    by_version = [found for one in versions(folder) if (found := _read_version(folder / one))]
    return max(by_version, key=lambda found: max(payload.recorded for payload in found), default=[])


def versions(folder: Path) -> list[str]:
    """Names of the recorded versions."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _read_version(folder: Path) -> list[Payload]:
    return [from_json(path.read_text("utf-8"), str(path)) for path in sorted(folder.glob("*/*.json"))]
