"""Where something was said: the file and the line of a value, for errors that come later than the reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Where:
    """The place of one mapping in a file, and of each of its fields."""

    file: str = ""
    line: int = 0
    """Counted from 1; 0: it was not read from a file."""
    fields: Mapping[str, int] = field(default_factory=dict)

    def of(self, name: str = "") -> str:
        """`scenarios/x.yaml:7`, the place of the named field or of the whole; empty when there is no file."""
        return f"{self.file}:{self.fields.get(name, self.line)}" if self.file else ""

    def lead(self, name: str = "") -> str:
        """The same with `: ` behind it, to lead an error."""
        return f"{self.of(name)}: " if self.file else ""


NOWHERE = Where()
