"""The states in which a search is likely to act next."""

from __future__ import annotations

from exact.environments.toy.known import ToyEdge, ToyState
from exact.search.mcts import MCTS
from tests.search.harness import Harness, graph


def test_an_evaluation_in_flight_may_turn_out_low_or_high() -> None:
    onward = {name: ToyState(edges={"on": ToyEdge(to=f"{name}2")}, looks=0.5) for name in ("left", "right")}
    ends = {f"{name}2": ToyState(reward=1.0) for name in onward}
    start = ToyState(edges={name: ToyEdge(to=name) for name in onward}, looks=0.5)
    run = Harness(graph({"start": start, **onward, **ends}, start="start"), MCTS(iterations=9, k=2, c=0.1))
    step = run.select()
    while step.edge is None:
        run.meet(step)
        step = run.select()
    run.tell(step, run.result(step, "step"))
    root, child = run.tree.nodes
    run.tree.low, run.tree.high = 0.0, 1.0
    assert run.algorithm.forecast(run.tree, 4)[:2] == [root, child], "the other action is tried if it is low"
