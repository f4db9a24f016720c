"""Program that makes a site with its data: `seed.py SITE FOLDER`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

if __name__ == "__main__":
    importlib.import_module(f"{sys.argv[1]}_site").build(Path(sys.argv[2]))
