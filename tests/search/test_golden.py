"""The whole tree of one search, as it was when it was looked at."""

from __future__ import annotations

from tests.search.golden import FILE, golden


def test_the_tree_is_the_golden_one() -> None:
    assert golden().decode() == FILE.read_text()
