"""Known answers: each algorithm finds the optimum of each toy world that it should."""

from __future__ import annotations

import pytest

from tests.search.known import ALGORITHMS, FILE, MISSES, SEEDS, WORLDS, count, page


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_finds_the_optimum_unless_there_is_a_reason_why_not(name: str, world: str) -> None:
    missed = count(name, world) < len(SEEDS)
    assert missed == ((name, world) in MISSES)


def test_the_page_shows_what_is_found_now() -> None:
    assert FILE.read_text("utf-8") == page(), "python -m tests.search.known writes it anew"
