"""What the headers of a Celery message say, on any broker (Celery's message protocol 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..contract import Meaning


@dataclass(frozen=True, slots=True)
class Said:
    """One message, by its own word. Empty: it says nothing of that."""

    job: str = ""
    task: str = ""
    due: str = ""
    """ISO 8601; empty: at once."""
    parent: str = ""
    """The job in which it was sent."""
    root: str = ""
    """The job that its tree began with; its own id where it is that job."""
    text: str = ""
    """Its arguments, as Celery shows them to people."""

    def meaning(self, role: str) -> Meaning:
        return Meaning(role, self.job, self.parent, self.root, self.task, self.text)


def said(headers: Mapping[str, Any]) -> Said:
    """Reads the headers; what is no message of a job has no id."""
    text = f"{headers.get('argsrepr') or ''} {headers.get('kwargsrepr') or ''}"
    names = ("id", "task", "eta", "parent_id", "root_id")
    job, task, due, parent, root = (str(headers.get(name) or "") for name in names)
    return Said(job, task, due, parent, root, text.strip())
