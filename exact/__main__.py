"""The command `exact` as `python -m exact`."""

import sys

from exact.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
