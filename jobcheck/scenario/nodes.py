"""YAML with its lines: every value knows where it stands, and a wrong one says what was expected there.

Problems are collected, so that one reading shows all of them: a wrong value is noted and the reading goes on beside it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import yaml

from ..errors import UsageError
from ..faults.where import Where
from .units import NoUnit

T = TypeVar("T")

_KINDS: dict[type[yaml.Node], str] = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}


class Problem(Exception):
    """One value is wrong: line and sentence. Caught at the field that it spoils."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line
        self.text = text


class Source:
    """One file being read, and what is wrong with it."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def attempt(self, read: Callable[[], T], otherwise: T) -> T:
        """What `read` gives; where it finds a problem, that is noted and `otherwise` is given."""
        try:
            return read()
        except Problem as problem:
            self.problems.append(problem)
            return otherwise

    def check(self) -> None:
        """Raises UsageError with a line for each problem, in the order of the file."""
        if self.problems:
            ordered = sorted(self.problems, key=lambda problem: problem.line)
            raise UsageError("\n".join(dict.fromkeys(f"{self.file}:{one.line}: {one.text}" for one in ordered)))


class Value:
    """One node of the file."""

    def __init__(self, source: Source, node: yaml.Node) -> None:
        self.source = source
        self.node = node

    @property
    def line(self) -> int:
        return int(self.node.start_mark.line) + 1

    @property
    def source_where(self) -> Where:
        """The place of the value itself."""
        return Where(self.source.file, self.line)

    @property
    def is_text(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    @property
    def shown(self) -> str:
        """The value as an error quotes it."""
        if isinstance(self.node, yaml.ScalarNode):
            return repr(self.node.value) if self.node.value else "nothing"
        return _KINDS[type(self.node)]

    def wrong(self, expected: str, near: str = "") -> Problem:
        """`expected a list, got 'x'; did you mean ...?`"""
        meant = f"; did you mean {near}?" if near else ""
        return Problem(self.line, f"expected {expected}, got {self.shown}{meant}")

    # Scalars

    def text(self, expected: str = "a text") -> str:
        if not isinstance(self.node, yaml.ScalarNode) or not self.node.value.strip():
            raise self.wrong(expected)
        return str(self.node.value).strip()

    def whole(self, expected: str, least: int = 1) -> int:
        text = self.text(expected)
        if not text.isdigit() or int(text) < least:
            raise self.wrong(expected)
        return int(text)

    def truth(self) -> bool:
        text = self.text("true or false").lower()
        if text not in ("true", "false", "yes", "no"):
            raise self.wrong("true or false")
        return text in ("true", "yes")

    def unit(self, read: Callable[[str], float]) -> float:
        """A duration, a rate or a share; `read` is one of `units`."""
        if not self.is_text:
            raise self.wrong(_expected(read))
        try:
            return read(self.text(_expected(read)))
        except NoUnit as error:
            raise self.wrong(error.args[0], error.near) from None

    def one_of(self, words: Sequence[str], what: str) -> str:
        """One of these words; dashes and underscores count as spaces where the word has spaces."""
        text = self.text(_alternatives(words))
        for word in words:
            if text == word or text.replace("_", " ").replace("-", " ") == word:
                return word
        raise unknown(self.line, what, text, words)

    def scalar(self) -> Any:
        """The scalar as YAML types it: a number, true, null, a text."""
        try:
            return yaml.SafeLoader("").construct_object(self.node)
        except (yaml.YAMLError, ValueError):
            raise self.wrong("a plain value") from None

    # Collections

    def items(self, expected: str = "a list") -> list[Value]:
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wrong(expected)
        return [Value(self.source, item) for item in self.node.value]

    def each(self, expected: str, read: Callable[[Value], T]) -> tuple[T, ...]:
        """What `read` makes of each item; those that are wrong are noted and left out."""
        out: list[T] = []
        for item in self.items(expected):
            try:
                out.append(read(item))
            except Problem as problem:
                self.source.problems.append(problem)
        return tuple(out)

    def fields(self, what: str) -> Fields:
        """The mapping's fields by name. A key that comes twice, or that is no text, is a problem."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong(what)
        found: dict[str, Value] = {}
        lines: dict[str, int] = {}
        for key, node in self.node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise Problem(line, f"expected a name as key, got {_KINDS[type(key)]}")
            if key.value in found:
                raise Problem(line, f"{key.value!r} is there twice, first in line {lines[key.value]}")
            found[key.value] = Value(self.source, node)
            lines[key.value] = line
        return Fields(self, found, lines)


class Fields:
    """The fields of one mapping."""

    def __init__(self, owner: Value, values: dict[str, Value], lines: dict[str, int]) -> None:
        self.owner = owner
        self.source = owner.source
        self.values = values
        self.lines = lines

    @property
    def names(self) -> list[str]:
        return list(self.values)

    @property
    def where(self) -> Where:
        return Where(self.source.file, self.owner.line, dict(self.lines))

    def only(self, known: Iterable[str], what: str) -> None:
        """Notes a problem for each field that is not known; `what` is what such a field is called."""
        names = list(known)
        for name in self.values:
            if name not in names:
                self.source.problems.append(unknown(self.lines[name], what, name, names))

    def get(self, name: str, read: Callable[[Value], T], otherwise: T) -> T:
        """The field as `read` understands it; `otherwise` where it is not there or is wrong."""
        value = self.values.get(name)
        return otherwise if value is None else self.source.attempt(lambda: read(value), otherwise)

    def need(self, name: str, read: Callable[[Value], T], otherwise: T, what: str) -> T:
        """The same for a field that must be there; `what` says what it is for."""
        if name not in self.values:
            self.source.problems.append(Problem(self.owner.line, f"expected {name!r}: {what}"))
            return otherwise
        return self.get(name, read, otherwise)


def unknown(line: int, what: str, word: str, words: Iterable[str]) -> Problem:
    """`unknown fault 'kil'; did you mean 'kill'?`, or the list of words where none is near."""
    known = list(words)
    near = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    rest = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return Problem(line, f"unknown {what} {word!r}; {rest}")


def compose(text: str, source: Source) -> Value:
    """The file's one document. Raises UsageError where it is no YAML, or empty."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise UsageError(f"{source.file}:{line}: this is no YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{source.file}:1: this is no YAML: {' '.join(str(error).split())}") from None
    if node is None:
        raise UsageError(f"{source.file}:1: the file is empty; a scenario has a title, a rig and a workload")
    return Value(source, node)


def _alternatives(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + f" or {words[-1]}" if len(words) > 1 else words[0]


def _expected(read: Callable[[str], float]) -> str:
    try:
        read("")
    except NoUnit as error:
        return str(error.args[0])
    return "a value"
