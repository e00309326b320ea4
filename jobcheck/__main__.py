"""`python -m jobcheck` is the same as `jobcheck`."""

import sys

from .cli import main

sys.exit(main())
