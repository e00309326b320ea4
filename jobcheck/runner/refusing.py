"""Has one held request refused: by the server itself, by the tap, or by a stand-in that is told to."""

from __future__ import annotations

from ..effects.mail import SmtpSink
from ..errors import UsageError
from ..tap.sight import OUT, Sight
from ..wire.refusals import refusal
from .lane import Lane

SMTP_REPLIES = {"451": "451 4.3.0 Refused by jobcheck"}


def refuse(lane: Lane, held: Sight, how: str) -> None:
    """Raises UsageError when this message cannot be refused so."""
    sink = lane.stand_in(held.upstream)
    if isinstance(sink, SmtpSink):
        sink.refuse(SMTP_REPLIES[how])
        held.link.release(OUT)
        return
    try:
        held.link.refuse(refusal(held.unit, how))
    except ValueError as error:
        raise UsageError(f"no error reply for {held.upstream} {held.unit.shape}: {error}") from None
