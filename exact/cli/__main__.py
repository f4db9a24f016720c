"""`python -m exact.cli`, where the command `exact` is not on PATH."""

import sys

from exact.cli.main import main

sys.exit(main())
