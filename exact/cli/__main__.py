"""`python -m exact.cli`, for systems without the command `exact` on PATH."""

import sys

from exact.cli.main import main

sys.exit(main())
