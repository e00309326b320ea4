"""What each provider of a scenario was asked, and what it refused, as a line for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .scenario_parts import number_of, whole_of
from .text import plural


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """What one provider was asked, and what it refused."""

    name: str
    counted: int
    replayed: int
    refused: tuple[tuple[str, int], ...]
    """Why, and how often."""
    waited: int
    longest_wait: float

    @property
    def quiet(self) -> bool:
        """Nothing is to be told: every call counted at once."""
        return not (self.replayed or self.refused or self.waited)

    @property
    def words(self) -> str:
        """`16 calls counted, 2 answered again, 5 refused (503: 4, 429 beyond capacity: 1)`."""
        parts = [f"{plural(self.counted, 'call')} counted"]
        parts += [f"{self.replayed} answered again"] if self.replayed else []
        if self.refused:
            why = ", ".join(f"{reason}: {number}" for reason, number in self.refused)
            parts.append(f"{sum(number for _, number in self.refused)} refused ({why})")
        parts += [f"{self.waited} waited, up to {self.longest_wait:.1f} s"] if self.waited else []
        return f"{self.name}: {', '.join(parts)}"


def provider_of(row: Mapping[str, Any]) -> ProviderRow:
    """One row of the report's `providers`, whatever is missing in it."""
    refused = row.get("refused")
    return ProviderRow(
        name=str(row.get("name", "")),
        counted=whole_of(row, "counted"),
        replayed=whole_of(row, "replayed"),
        refused=tuple((str(why), whole_of(refused, why)) for why in refused) if isinstance(refused, Mapping) else (),
        waited=whole_of(row, "waited"),
        longest_wait=number_of(row, "longest_wait"),
    )
