"""Where Celery's own code lies that the agent runs in the app's environment."""

from pathlib import Path

RECOVER = str(Path(__file__).parent / "recover.py")
INSIDE = str(Path(__file__).parent / "inside")
"""Folder of modules that workers find, such as the canary."""
