"""Best-first search: the order of its frontier, its budget, and what it commits."""

from __future__ import annotations

from typing import Any

import pytest

from exact.environments.toy.known import ToyEdge, ToyState, bandit, chain, deceptive_chain
from exact.search.algorithms.best_first import BestFirst
from exact.search.base import Done, Stepped
from tests.search.harness import Harness, failed, graph


def fork() -> dict[str, ToyState]:
    """Two ways; the second is better, and has two ways on."""
    return {
        "a": ToyState(edges={"l": ToyEdge(to="l", prior=2.0), "r": ToyEdge(to="r")}, looks=0.5),
        "l": ToyState(edges={"x": ToyEdge(to="lx")}, looks=0.3),
        "r": ToyState(edges={"x": ToyEdge(to="rx", prior=2.0), "y": ToyEdge(to="ry")}, looks=0.7),
        "lx": ToyState(reward=1.0),
        "rx": ToyState(reward=0.2),
        "ry": ToyState(reward=0.6),
    }


def best_first(iterations: int = 20, **more: Any) -> BestFirst:
    return BestFirst(iterations=iterations, k=5, **more)


def test_an_action_is_due_by_the_value_of_the_state_it_starts_in() -> None:
    run = Harness(graph(fork()), best_first())
    run.search()
    assert [run.state(node) for node in run.tree.nodes] == ["a", "l", "r", "rx", "ry", "lx"]


def test_a_state_is_proposed_in_when_its_first_action_is_due() -> None:
    run = Harness(graph(fork()), best_first(iterations=5))
    run.search()
    proposed = [run.state(run.tree.nodes[s.node]) for s in run.asked if "proposals" in s.needs]
    assert proposed == ["a", "r"], "l, of value 0.3, was never due"


def test_it_ends_after_the_granted_number_of_evaluations() -> None:
    run = Harness(chain(6), best_first(iterations=4))
    assert run.search() == Done("4 iterations")
    assert sum(node.evaluations for node in run.tree.nodes) == 4


def test_it_looks_no_deeper_than_told() -> None:
    run = Harness(chain(6), best_first(iterations=40, depth=2))
    run.search()
    assert max(node.depth for node in run.tree.nodes) == 2


def test_a_plan_is_the_whole_way_to_the_best_state_and_replan_its_first_action() -> None:
    for plan, edges in [(True, (1, 1)), (False, (1,))]:
        run = Harness(graph(fork()), best_first(iterations=5, plan=plan))
        run.tree.nodes[0].value_sum = 0.0
        run.search()
        run.tree.nodes[2].value_sum = 0.1  # r itself: the end below it is better
        assert run.algorithm.decide(run.tree).edges == edges


def test_the_first_found_of_equal_states_is_chosen() -> None:
    run = Harness(bandit(3, rewards=(0.4, 0.4, 0.4)), best_first())
    run.search()
    assert run.algorithm.decide(run.tree).edges == (0,)


def test_the_frontier_below_a_commit_is_kept() -> None:
    run = Harness(deceptive_chain(3), best_first(iterations=8))
    run.search()
    before = len(run.tree.nodes)
    assert run.commit() == "right"
    run.search()
    assert len(run.tree.nodes) == before, "all of the corridor was known"


def test_several_workers_try_the_next_most_valuable_actions() -> None:
    run = Harness(bandit(3), best_first())
    run.meet(run.select())
    run.meet(run.select())
    assert [run.select().edge for _ in range(3)] == [0, 1, 2]


def test_an_end_that_is_good_enough_is_confirmed_and_then_ends_the_search() -> None:
    run = Harness(bandit(4, rewards=(0.9, 0.2, 0.2, 0.2)), best_first(enough=0.8))
    assert run.search() == Done("an end was good enough, and confirmed")
    assert [s.confirms for s in run.asked] == [False, False, False, True]
    assert run.algorithm.decide(run.tree).reason == "a confirmed end"


def test_a_lost_evaluation_is_requested_again_without_another_step() -> None:
    run = Harness(bandit(1), best_first())
    run.meet(run.select())
    run.meet(run.select())
    step = run.select()
    run.tell(step, Stepped(fingerprint="", terminated=True))
    run.algorithm.release(run.tree, step)
    again = run.select()
    assert (again.node, again.needs) == (1, ("value",))


@pytest.mark.parametrize("kind", ["action", "model", "environment", "drifted"])
def test_an_action_that_fails_leaves_the_frontier_to_the_others(kind: str) -> None:
    run = Harness(bandit(2, rewards=(1.0, 0.3)), best_first())
    run.fault = lambda s, need: failed(kind) if need == "step" and s.edge == 0 else None  # type: ignore[arg-type]
    run.search()
    assert run.tree.root.edges[0].closed.startswith(kind) and run.tree.root.edges[1].visits == 1


def test_a_refused_commit_is_not_chosen_again() -> None:
    run = Harness(bandit(2, rewards=(1.0, 0.3)), best_first())
    run.search()
    run.algorithm.refuse(run.tree, 0, "refused")
    assert run.algorithm.decide(run.tree).edges == (1,)
