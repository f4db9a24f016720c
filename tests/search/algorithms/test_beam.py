"""Beam search: levels, widths and scores."""

from __future__ import annotations

from typing import Any

from exact.environments.toy.known import ToyEdge, ToyState, bandit, deceptive_chain
from exact.search.algorithms.beam import Beam
from exact.search.base import Done, Wait
from tests.search.harness import Harness, graph


def beam(breadth: int = 2, **more: Any) -> Beam:
    return Beam(breadth=breadth, **{"iterations": 60, "k": 5, **more})


def wide(*looks: float) -> dict[str, ToyState]:
    """Return a root with one action to a state of each of these values, and one more step behind each."""
    ways = {f"w{i}": ToyEdge(to=f"b{i}") for i in range(len(looks))}
    rooms = {f"b{i}": ToyState(edges={"on": ToyEdge(to=f"c{i}")}, looks=look) for i, look in enumerate(looks)}
    ends = {f"c{i}": ToyState(reward=1 - look) for i, look in enumerate(looks)}
    return {"a": ToyState(edges=ways, looks=0.5), **rooms, **ends}


def looked_beyond(run: Harness) -> list[str]:
    return [run.state(node) for node in run.tree.nodes if node.expansions]


def test_the_best_states_of_a_level_are_looked_beyond() -> None:
    run = Harness(graph(wide(0.2, 0.6, 0.4, 0.5)), beam(breadth=2))
    run.search()
    assert looked_beyond(run) == ["a", "b1", "b3"]


def test_a_wider_beam_keeps_what_a_narrow_one_prunes() -> None:
    for breadth, found in [(1, False), (2, True)]:
        run = Harness(deceptive_chain(3), beam(breadth))
        run.search()
        assert any(run.state(node) == "right3" for node in run.tree.nodes) is found


def test_a_level_may_be_in_flight_as_a_whole_and_the_next_waits_for_it() -> None:
    run = Harness(graph(wide(0.2, 0.6, 0.4)), beam())
    run.meet(run.select())
    run.meet(run.select())
    steps = [run.select() for _ in range(3)]
    assert run.ask() == Wait()
    for step in reversed(steps):
        assert run.ask() == Wait()
        run.meet(step)
    assert {run.state(run.tree.nodes[run.select().node]) for _ in range(2)} == {"b1", "b2"}


def test_a_state_scores_by_its_own_value_or_by_the_mean_on_its_way() -> None:
    states = {
        "a": ToyState(edges={"l": ToyEdge(to="l"), "r": ToyEdge(to="r")}, looks=0.5),
        "l": ToyState(edges={"on": ToyEdge(to="ll")}, looks=0.9),
        "r": ToyState(edges={"on": ToyEdge(to="rr")}, looks=0.2),
        "ll": ToyState(reward=0.5),
        "rr": ToyState(reward=0.6),
    }
    for score, edge in [("state", 1), ("cumulative", 0)]:
        run = Harness(graph(states), beam(score=score))
        run.search()
        assert run.algorithm.decide(run.tree).edges == (edge,)


def test_a_pruned_state_is_chosen_where_all_that_was_kept_came_to_less() -> None:
    run = Harness(deceptive_chain(3), beam(1))
    run.search()
    assert run.commit() == "right"


def test_an_end_takes_no_place_in_the_beam_and_is_not_lost() -> None:
    states = wide(0.3, 0.2)
    states["a"] = ToyState(edges={**states["a"].edges, "end": ToyEdge(to="won")}, looks=0.5)
    run = Harness(graph(states | {"won": ToyState(reward=0.95)}), beam(breadth=2))
    run.search()
    assert looked_beyond(run) == ["a", "b0", "b1"]
    assert run.algorithm.decide(run.tree).edges == (2,)


def test_it_ends_with_the_budget_in_the_middle_of_a_level() -> None:
    run = Harness(bandit(5), beam(iterations=3))
    assert run.search() == Done("3 iterations")
    assert sum(edge.visits for edge in run.tree.root.edges) == 2


def test_states_searched_below_a_commit_are_not_requested_again() -> None:
    run = Harness(deceptive_chain(4), beam(breadth=2))
    run.search()
    asked = len(run.asked)
    run.commit()
    run.search()
    assert len(run.asked) == asked
