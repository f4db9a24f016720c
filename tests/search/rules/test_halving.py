"""The schedule of sequential halving."""

from __future__ import annotations

import pytest

from exact.search.rules.halving import begin, considered, following, phases, visits_each


@pytest.mark.parametrize(("budget", "begun"), [(1, 1), (3, 2), (7, 4), (15, 8), (31, 16), (500, 16)])
def test_the_number_of_considered_actions_leaves_budget_for_all_phases(budget: int, begun: int) -> None:
    assert considered(budget, 99) == begun


def test_the_phases_lead_to_one_action() -> None:
    assert [phases(n) for n in (1, 2, 3, 4, 5, 8, 9, 16)] == [1, 1, 2, 2, 3, 3, 4, 4]


def test_each_phase_gets_an_equal_share_of_the_budget() -> None:
    assert visits_each(64, 8, 3) == 2 and visits_each(64, 4, 3) == 5 and visits_each(3, 8, 3) == 1


def test_the_better_half_remains() -> None:
    first = begin(0, [4, 2, 0, 1, 3], [0] * 5, 30, 5)
    assert first.actions == (4, 2, 0, 1, 3) and first.visits == 2
    down, up = (following(first, [0, 1, 2, 3, 4], [2] * 5, 20, up=up) for up in (False, True))
    assert down is not None and down.actions == (0, 1) and down.visits == 10
    assert up is not None and up.actions == (0, 1, 2) and up.visits == 3
    assert following(first, [], [2] * 5, 20) is None


def test_a_phase_may_be_as_long_as_the_first_budget_says() -> None:
    first = begin(0, [0, 1, 2, 3], [0] * 4, 32, 4, late=True)
    fixed, anew = (following(first, [0, 1, 2, 3], [4] * 4, 10, fixed=fixed) for fixed in (True, False))
    assert fixed is not None and fixed.visits == 8 and fixed.actions == (0, 1, 2, 3) and fixed.size == 2
    assert anew is not None and anew.visits == 5 and anew.actions == (0, 1)


def test_the_least_visited_is_due_first_and_a_visit_in_flight_counts() -> None:
    phase = begin(0, [1, 0, 2], [5, 0, 0], 12, 3)
    assert phase.visits == 2
    assert phase.due({1: 1, 0: 0, 2: 0}, [], phase.actions.index) == [0, 2, 1]
    assert phase.due({1: 2, 0: 1, 2: 0}, [2], phase.actions.index) == [0]


def test_a_budget_below_one_visit_each_reaches_for_the_best_only() -> None:
    phase = begin(0, [2, 1, 0], [0, 0, 0], 2, 3)
    assert phase.due({2: 0, 1: 0, 0: 0}, [], phase.actions.index) == [2, 1, 0]
    assert phase.due({2: 1, 1: 1, 0: 0}, [], phase.actions.index) == []
