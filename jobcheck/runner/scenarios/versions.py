"""The versions that a scenario file names, each as a rig of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ...errors import UsageError
from ...faults.where import Where
from ..rig import Rig
from ..stage import Stage
from ..versions import rig_at, version_of


async def version_rigs(rig: Rig, versions: dict[str, str], stage: Stage, base: Path, where: Where) -> dict[str, Rig]:
    """The rig of each version; the rig as it is under the empty name, too.

    Paths are relative to `base`, the scenario's folder. Raises UsageError with the version's line.
    """
    found = {"": rig}
    for name, said in versions.items():
        temp = stage.folder / f"version-{name}"
        try:
            version = await asyncio.to_thread(version_of, said, rig, base=base, temp=temp, name=name)
            found[name] = rig_at(rig, version)
        except UsageError as error:
            raise UsageError(f"{where.lead('versions')}version {name!r}: {error.message}", hint=error.hint) from None
    return found
