"""Decision trees: known answers, keyed outcomes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.toy.decision import DecisionTree
from exact.environments.toy.graph import gaussian, index, uniform
from exact.errors import UsageError

TREES = st.builds(
    DecisionTree, st.integers(2, 3), st.integers(1, 3), seed=st.integers(0, 10**6), rate=st.floats(0, 0.5), share=st.floats(0, 1)
)


def below(tree: DecisionTree, state: str = "") -> list[str]:
    """Yield a state and all states below it."""
    return [state, *(name for child in tree.children(state) for name in below(tree, child))]


@given(TREES)
def test_the_sure_way_wins_in_every_tree(tree: DecisionTree) -> None:
    state = ""
    for action in map(int, tree.sure.split(".")):
        assert tree.wins(state) and not tree.is_end(state)
        state = tree.child(state, action)
    assert (state, tree.outcome(state), tree.value(state)) == (tree.sure, 1.0, 1.0)


@given(TREES)
def test_a_state_can_be_won_where_an_end_below_it_succeeds_and_is_worth_something_only_there(tree: DecisionTree) -> None:
    for state in below(tree):
        wins = any(tree.outcome(end) for end in below(tree, state) if tree.is_end(end))
        assert tree.wins(state) == wins == (tree.value(state) > 0)
        assert 0 <= tree.value(state) <= 1


@given(TREES)
def test_the_right_action_keeps_the_win_within_reach_and_following_it_wins(tree: DecisionTree) -> None:
    state = ""
    while (action := tree.right(state)) is not None:
        state = tree.child(state, action)
    assert tree.outcome(state) == 1.0
    assert all(tree.right(state) is None for state in below(tree) if not tree.wins(state))


def test_without_luck_only_the_sure_end_succeeds_and_values_grow_towards_it() -> None:
    tree = DecisionTree(3, 4, rate=0.0, seed=5)
    assert [end for end in below(tree) if tree.is_end(end) and tree.outcome(end)] == [tree.sure]
    values = [tree.value(".".join(tree.sure.split(".")[:level])) for level in range(5)]
    assert values == [pytest.approx((2 / 3) ** (4 - level)) for level in range(5)]


@pytest.mark.parametrize("share, value", [(1.0, 1.0), (0.0, 1 / 4)])
def test_a_value_lies_between_the_mean_below_and_the_best(share: float, value: float) -> None:
    assert DecisionTree(2, 2, rate=0.0, share=share).value("") == value


def test_ends_succeed_about_as_often_as_configured() -> None:
    tree = DecisionTree(5, 5, rate=0.2, seed=1)
    ends = [state for state in below(tree) if tree.is_end(state)]
    assert len(ends) == 3125
    assert sum(map(tree.outcome, ends)) / len(ends) == pytest.approx(0.2, abs=0.04)


@given(st.integers(0, 999), st.randoms())
def test_values_do_not_depend_on_the_order_in_which_they_are_asked_for(seed: int, dice: object) -> None:
    one, other = DecisionTree(3, 3, seed=seed, rate=0.2), DecisionTree(3, 3, seed=seed, rate=0.2)
    states = below(one)
    dice.shuffle(states)  # type: ignore[attr-defined]
    assert {state: other.value(state) for state in states} == {state: one.value(state) for state in below(one)}


def test_other_seeds_give_other_trees() -> None:
    assert len({DecisionTree(4, 4, seed=seed).sure for seed in range(20)}) > 15


def test_more_than_ten_actions_are_distinct() -> None:
    tree = next(t for seed in range(999) if (t := DecisionTree(12, 2, rate=0.0, seed=seed)).sure.startswith("11."))
    assert tree.wins("11") and not tree.wins("1")


def test_an_invalid_tree_or_end_is_refused() -> None:
    for figures in ({"branching": 1, "depth": 2}, {"branching": 2, "depth": 0}, {"branching": 2, "depth": 2, "rate": 1.5}):
        with pytest.raises(UsageError):
            DecisionTree(**figures)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no end"):
        DecisionTree(2, 2).outcome("0")


def test_draws_are_uniform_and_normal_and_keyed_by_all_that_they_are_about() -> None:
    draws = [uniform(0, i) for i in range(4000)]
    assert all(0 <= draw < 1 for draw in draws)
    assert sum(draws) / 4000 == pytest.approx(0.5, abs=0.03)
    assert sum(gaussian(0, i) ** 2 for i in range(4000)) / 4000 == pytest.approx(1, abs=0.12)
    assert {index(3, 0, i) for i in range(50)} == {0, 1, 2}
    assert len({uniform(0, "a", 1), uniform(1, "a", 1), uniform(0, "b", 1), uniform(0, "a", 2)}) == 4
