"""The package's description names the extras that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_description_names_every_extra_but_that_of_tests() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"].keys()
    named = re.findall(r"^\| `(\w+)` \|", (ROOT / "PACKAGE.md").read_text("utf-8"), re.M)
    assert set(named) == extras - {"test"}, "name the extra in PACKAGE.md"
