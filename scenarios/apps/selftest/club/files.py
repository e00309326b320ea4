"""Statements of members, as files."""

from pathlib import Path

from . import settings


def statement_of(member_id: int) -> Path:
    """Where the member's statement belongs; its folder is made."""
    folder = Path(settings.STATEMENTS)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"statement-{member_id}.txt"
