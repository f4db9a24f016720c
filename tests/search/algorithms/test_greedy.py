"""Greedy tries every proposal once, one step deep."""

from __future__ import annotations

import pytest

from exact.config import SearchConfig
from exact.environments.toy.known import ToyEdge, ToyState, bandit, deceptive_chain, form
from exact.search.algorithms.greedy import Greedy
from exact.search.base import Done, Selection, Wait
from exact.search.registry import algorithm
from exact.search.tree import SearchError
from tests.search.harness import Harness, check_idle, failed, graph


def test_each_action_is_tried_once_and_the_best_is_taken() -> None:
    run = Harness(bandit(4, rewards=(0.1, 0.9, 0.3, 0.2)), Greedy(k=4))
    assert run.search() == Done("every proposal was evaluated")
    assert [edge.visits for edge in run.tree.root.edges] == [1, 1, 1, 1]
    assert run.commit() == "arm 1"
    check_idle(run.tree)


def test_only_as_many_as_asked_for_are_tried() -> None:
    run = Harness(bandit(4, rewards=(0.1, 0.9, 0.3, 1.0)), Greedy(k=3))
    run.search()
    assert [selection.k for selection in run.asked] == [3, 3, 3, 3]
    assert run.commit() == "arm 1"


def test_a_deception_one_step_ahead_is_believed() -> None:
    assert Harness(deceptive_chain(3), Greedy(k=4)).solve() == "left3"


def test_a_form_whose_looks_are_honest_is_solved() -> None:
    assert Harness(form(3, seed=1), Greedy(k=6)).solve() == "right"


def test_all_are_tried_at_once_and_then_it_waits() -> None:
    run = Harness(bandit(3), Greedy(k=3))
    proposals = run.select()
    assert run.ask() == Wait()
    run.meet(proposals)
    steps = [run.select() for _ in range(3)]
    assert run.ask() == Wait()
    for step in reversed(steps):
        run.meet(step)
    assert isinstance(run.ask(), Done)


def test_a_step_with_a_lost_evaluation_is_evaluated_without_another_step() -> None:
    run = Harness(bandit(1), Greedy(k=1))
    run.meet(run.select())
    step = run.select()
    run.tell(step, run.result(step, "step"))
    run.algorithm.release(run.tree, step)
    assert run.select().needs == ("value",)


def test_where_all_proposals_are_refused_others_are_asked_for_a_few_times() -> None:
    def fault(selection: Selection, need: str) -> object:
        return failed("action") if need == "step" else None

    made = graph({"a": ToyState(edges={"stay": ToyEdge(to="a")})})
    run = Harness(made, Greedy(k=2, retries=2), fault)  # type: ignore[arg-type]
    run.search()
    assert run.tree.root.expansions == 3
    with pytest.raises(SearchError, match="no action is left"):
        run.algorithm.decide(run.tree)


def test_untried_actions_are_committed_last() -> None:
    def fault(selection: Selection, need: str) -> object:
        return failed("drifted") if need == "step" else None

    run = Harness(bandit(3), Greedy(k=3), fault)  # type: ignore[arg-type]
    run.search()
    decision = run.algorithm.decide(run.tree)
    assert decision.edges == (0,) and decision.value is None


@pytest.mark.parametrize(("merging", "evaluated"), [("siblings", 1), ("none", 2)])
def test_merging_decides_whether_actions_with_one_result_are_evaluated_apart(merging: str, evaluated: int) -> None:
    made = graph({"a": ToyState(edges={"one": ToyEdge(to="b"), "other": ToyEdge(to="b")}), "b": ToyState(edges={"back": ToyEdge(to="a")})})
    run = Harness(made, algorithm(SearchConfig(algorithm="greedy", k=2, merging=merging)))  # type: ignore[arg-type]
    run.search()
    assert sum(node.evaluations for node in run.tree.nodes) == evaluated
