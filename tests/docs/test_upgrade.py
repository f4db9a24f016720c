"""The page for those who come from the version before names each old spelling with its new one."""

from __future__ import annotations

import re
from pathlib import Path

from exact.cli.main import RETIRED
from exact.config.aliases import KEYS

PAGE = (Path(__file__).parents[2] / "docs" / "upgrade.md").read_text("utf-8")
ROWS = set(re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|$", PAGE, re.M))


def test_each_command_that_was_renamed_is_on_the_page() -> None:
    assert {(f"exact {old}", f"exact {new}") for old, new in RETIRED.items()} <= ROWS


def test_each_key_that_was_renamed_is_on_the_page() -> None:
    assert set(KEYS.items()) <= ROWS
