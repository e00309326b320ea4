"""`python -m jobcheck`: the command line, for where the script is not on PATH."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
