"""`python -m jobcheck` is the same as `jobcheck`."""

import sys

from .cli import command_line

sys.exit(command_line())
