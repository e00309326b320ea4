"""What all actions have in common."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Base:
    """What all actions have in common."""

    fault: int = field(default=-1, compare=False, kw_only=True)
    """Number of the fault that it belongs to, from 0; -1: none."""
