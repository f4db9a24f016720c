"""The settings of examples/browsergym_grpo.py are those of the page."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_page_has_every_setting_of_the_example_with_its_default() -> None:
    settings = runpy.run_path(str(ROOT / "examples/browsergym_grpo.py"))["SETTINGS"]
    rows = re.findall(r"^\| `([A-Z_]+)` \| (?:`([^`]*)` )?\|", (ROOT / "docs/training.md").read_text(), flags=re.M)
    assert dict(rows) == settings
