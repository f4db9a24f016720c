"""The pages for those who come from ExACT, and the comparison, name what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "docs" / "configuration.md", *(ROOT / "docs" / "configuration").glob("*.md"))
KEYS = {key for page in REFERENCE for key in re.findall(r"^\| `([^`]+)`", page.read_text("utf-8"), re.M)}
SHARED = {"models.value": "models.policy", "models.reflection": "models.policy", "models.embedding": "models.policy"}
PAGE = (ROOT / "docs" / "from_exact.md").read_text("utf-8")


@pytest.mark.parametrize("key", sorted(set(re.findall(r"`((?:search|policy|value|models|reflection|limits|browser)\.[a-z_.]+)", PAGE))))
def test_a_key_of_the_page_exists(key: str) -> None:
    for section, same in SHARED.items():
        key = key.replace(section, same) if key.startswith(f"{section}.") else key
    assert key in KEYS


@pytest.mark.parametrize("name", sorted(set(re.findall(r"--config ([a-z_0-9.-]+)", PAGE))))
def test_a_configuration_of_the_page_is_shipped(name: str) -> None:
    assert (ROOT / "shells" / "configs" / f"{name}.yaml").is_file()
