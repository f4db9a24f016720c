"""The difference of two trees."""

from __future__ import annotations

from exact.environments.toy.known import chain
from exact.search.base import Diverged, Stepped
from exact.search.inspect.diff import Change, diff
from exact.search.mcts import MCTS
from tests.search.harness import Harness


def searched(iterations: int = 8, c: float = 0.5) -> Harness:
    run = Harness(chain(4), MCTS(iterations=iterations, k=2, c=c))
    run.search()
    return run


def test_the_same_search_twice_differs_in_nothing() -> None:
    assert not diff(searched().tree, searched().tree)


def test_more_iterations_add_states_and_take_none() -> None:
    found = diff(searched(4).tree, searched(12).tree)
    assert found.only_other and not found.only_one
    assert all(way[0].startswith("go ") for way in found.only_other)


def test_the_other_way_round_is_the_other_way_round() -> None:
    one, other = searched(4).tree, searched(12).tree
    there, back = diff(one, other), diff(other, one)
    assert there.only_other == back.only_one and len(there.changes) == len(back.changes)


def test_a_changed_figure_is_named_with_both_values() -> None:
    one, other = searched(), searched()
    child = other.tree.root.edges[0].child
    assert child is not None
    child.fingerprint = "elsewhere"
    change = Change(path=('go "on"',), field="fingerprint", one="s1", other="elsewhere")
    assert diff(one.tree, other.tree).changes == (change,)


def test_a_state_that_was_not_reached_is_told_from_one_that_was() -> None:
    one, other = searched(), searched()
    child = other.tree.root.edges[0].child
    assert child is not None
    child.unreached = True
    assert [change.field for change in diff(one.tree, other.tree).changes] == ["unreached"]


def test_figures_within_the_tolerance_are_equal() -> None:
    one, other = searched(), searched()
    other.tree.root.edges[0].q += 0.01
    assert len(diff(one.tree, other.tree).changes) == 1
    assert not diff(one.tree, other.tree, tolerance=0.1)


def test_a_further_outcome_of_an_action_is_a_state_of_its_own() -> None:
    one, other = searched(), searched()
    step = Diverged(node=0, edge=0, stepped=Stepped(fingerprint="another"))
    other.algorithm.grant(other.tree)  # type: ignore[attr-defined]
    other.tell(other.select(), step)
    assert diff(one.tree, other.tree).only_other == (('go "on" #1',),)
