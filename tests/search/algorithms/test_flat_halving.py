"""Flat sequential halving: its schedule, its budget, and what it is blind to."""

from __future__ import annotations

import pytest

from exact.config import SearchConfig
from exact.environments.toy.known import ToyEdge, ToyState, bandit, deceptive_chain
from exact.errors import UsageError
from exact.search.algorithms.flat_halving import FlatHalving
from exact.search.base import Done, Result, Selection, Wait
from exact.search.registry import algorithm
from exact.search.rules.afford import Replans
from exact.search.rules.backup import generator
from tests.search.harness import Harness, check_idle, graph, valued


def made(**more: object) -> FlatHalving:
    return FlatHalving(**{"k": 16, "iterations": 16, "evaluations": 99, **more})  # type: ignore[arg-type]


class Noisy(Harness):
    """A judge that errs by up to 0.4, another way each time."""

    def result(self, selection: Selection, need: str) -> Result:
        if need != "value":
            return super().result(selection, need)  # type: ignore[arg-type]
        node, edge = self.tree.nodes[selection.node], self.edge(selection)
        about = edge.child if edge is not None else node
        assert about is not None
        dice = generator(self.tree.seed, about.id, selection.draw)
        return valued(min(1.0, max(0.0, 0.3 + 0.4 * self.looks(about) + dice.uniform(-0.3, 0.3))))


def test_karnins_schedule_visits_the_better_half_more_and_more() -> None:
    run = Harness(bandit(8, rewards=[0.1, 0.2, 0.3, 0.9, 0.4, 0.5, 0.6, 0.7]), made(iterations=48))
    run.search()
    assert [edge.visits for edge in run.tree.root.edges] == [2, 2, 2, 14, 2, 6, 6, 14]
    assert run.commit() == "arm 3"


@pytest.mark.parametrize("iterations", range(4, 33))
def test_a_budget_is_used_to_the_last_iteration_and_not_passed(iterations: int) -> None:
    run = Harness(bandit(6), made(iterations=iterations))
    run.search()
    assert run.tree.iterations == iterations
    check_idle(run.tree)


def test_repeated_evaluation_finds_what_one_evaluation_misses() -> None:
    def right(judgements: int) -> int:
        found = 0
        for seed in range(60):
            run = Noisy(bandit(4, seed=seed), made(iterations=24, evaluations=judgements))
            run.tree.seed = seed
            found += run.graph.states[run.solve()].reward == 1.0
        return found

    assert right(24) > right(1) + 3


def test_each_action_is_judged_as_often_as_it_may_be_and_then_the_search_is_over() -> None:
    run = Harness(bandit(5), made(evaluations=2))
    assert run.search() == Done("every action was evaluated as often as allowed")
    assert [edge.visits for edge in run.tree.root.edges] == [2] * 5


def test_a_phase_is_asked_for_at_once() -> None:
    run = Harness(bandit(8), made(iterations=24))
    run.meet(run.select())
    asked = [run.select() for _ in range(8)]
    assert len({selection.edge for selection in asked}) == 8 and isinstance(run.ask(), Wait)


def test_it_looks_one_step_ahead_only() -> None:
    assert Harness(deceptive_chain(3), made(iterations=60)).solve() == "left3"


def test_an_action_that_changes_nothing_is_not_committed_because_every_other_looks_worse() -> None:
    states = {
        "a": ToyState(edges={"go": ToyEdge(to="b")}, looks=0.5),
        "b": ToyState(edges={"stay": ToyEdge(to="b"), "x": ToyEdge(to="c"), "y": ToyEdge(to="lost")}, looks=0.5),
        "c": ToyState(edges={"on": ToyEdge(to="won")}, looks=0.3),
        "won": ToyState(reward=1.0),
        "lost": ToyState(reward=0.0),
    }
    assert Harness(graph(states), made(evaluations=1)).solve() == "won"


def test_the_registry_makes_it_and_says_which_options_it_takes() -> None:
    found = algorithm(SearchConfig(algorithm="flat_halving", evaluations=8, options={"considered": 3}))
    assert isinstance(found, FlatHalving) and isinstance(found, Replans) and found.most == 3 and found.evaluations == 8
    with pytest.raises(UsageError, match="considered"):
        algorithm(SearchConfig(algorithm="flat_halving", options={"considerd": 3}))
