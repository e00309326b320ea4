"""The next version of the club: what does not stand here is as it was."""

from pathlib import Path

__path__.append(str(Path(__file__).resolve().parents[2] / "club"))
