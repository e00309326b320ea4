"""What a worker's first job changes and later ones do not: caches that are filled once. Pure."""

from __future__ import annotations

from .points import Recorded, address, name


def first_only(warm_up: Recorded, recording: Recorded) -> list[str]:
    """One sentence for each change that came in the first job only: no point stands there, so no strike tries it."""
    known = {address(point) for point in recording.points}
    shapes = {(point.upstream, point.shape) for point in recording.points}
    return [
        f"{name(point)} came in the first job only, so it is no point: a cache that is filled once? "
        "A worker that dies there is not tried"
        for point in warm_up.points
        if address(point) not in known and (point.upstream, point.shape) not in shapes
    ]
