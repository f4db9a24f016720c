"""Known answers: each algorithm finds the optimum of each toy environment that it should."""

from __future__ import annotations

import pytest

from tests.search.known import ALGORITHMS, ENVIRONMENTS, FILE, MISSES, SEEDS, count, page


@pytest.mark.parametrize("graph", ENVIRONMENTS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_finds_the_optimum_unless_there_is_a_reason_why_not(name: str, graph: str) -> None:
    missed = count(name, graph) < len(SEEDS)
    assert missed == ((name, graph) in MISSES)


def test_the_page_shows_what_is_found_now() -> None:
    assert FILE.read_text("utf-8") == page(), "python -m tests.search.known writes it anew"
