"""The package's description names the extras that exist, and first pages are short."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_description_names_every_extra_but_that_of_tests() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"].keys()
    named = re.findall(r"^\| `(\w+)` \|", (ROOT / "PACKAGE.md").read_text("utf-8"), re.M)
    assert set(named) == extras - {"test"}, "name the extra in PACKAGE.md"


@pytest.mark.parametrize("name", ["README.md", "PACKAGE.md"])
def test_the_first_page_is_short(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert len(text.splitlines()) <= 120 and len(text.split()) <= 900
    assert [line for line in text.splitlines() if len(line) > 120] == []
