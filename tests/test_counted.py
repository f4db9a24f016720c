"""A number and its noun agree."""

import pytest

from exact.text import counted


@pytest.mark.parametrize(("number", "text"), [(0, "0 actions"), (1, "1 action"), (2, "2 actions")])
def test_only_one_is_singular(number: int, text: str) -> None:
    assert counted(number, "action") == text
