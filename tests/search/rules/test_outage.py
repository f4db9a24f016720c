"""What failures of models and environments closed: when there is no choice for it, and how it is opened again."""

from __future__ import annotations

import pytest

from exact.environments.toy.known import ToyEdge, ToyState
from exact.search.base import Done, Failure, Need, Selection
from exact.search.intervention import prune
from exact.search.mcts import MCTS
from exact.search.rules.outage import outage, reopen_outages
from tests.search.harness import Harness, check_idle, failed, graph, two_arms

FORK = graph(
    {
        "a": ToyState(edges={"on": ToyEdge(to="b"), "end": ToyEdge(to="fair")}, looks=0.5),
        "b": ToyState(edges={"x": ToyEdge(to="won"), "y": ToyEdge(to="lost")}, looks=0.4),
        "won": ToyState(reward=1.0),
        "fair": ToyState(reward=0.6),
        "lost": ToyState(reward=0.0),
    }
)


def broken(need: Need) -> Harness:
    """Return a search in which no action could be taken, or evaluated, in the state behind `on`."""

    def fault(selection: Selection, what: Need) -> Failure | None:
        node = run.tree.nodes[selection.node]
        below = (node.fingerprint == "b" and selection.edge is not None) or (node.parent is not None and node.parent.fingerprint == "b")
        return failed("model" if need == "value" else "environment") if below and what == need else None

    run = Harness(FORK, MCTS(iterations=30, k=4, retries=1), fault)
    assert run.search() == Done("every action was tried")
    return run


@pytest.mark.parametrize("need", ["step", "value"])
def test_states_exhausted_by_an_outage_are_searched_again_with_renewed_iterations(need: Need) -> None:
    run = broken(need)
    on, took = run.tree.root.edges[0], run.tree.iterations
    assert on.closed.startswith("exhausted") and not on.settled and not outage(run.tree)
    reopen_outages(run.algorithm, run.tree)  # type: ignore[arg-type]
    assert not on.closed and run.tree.iterations == took and run.tree.allowed == 30 + 2
    run.fault = lambda selection, need: None
    run.search()
    check_idle(run.tree)
    assert on.settled and on.q == 1.0 and run.commit() == "on"


def test_actions_pruned_since_stay_closed() -> None:
    run = broken("value")
    gone = next(node for node in run.tree.nodes if node.closed.startswith("model"))
    prune(run.tree, gone)
    reopen_outages(run.algorithm, run.tree)  # type: ignore[arg-type]
    assert gone.closed.startswith("pruned") and gone.edge is not None and gone.edge.futile


def test_a_choice_exists_with_some_knowledge_or_for_another_reason() -> None:
    assert outage(broken("step").tree) == ""
    refused = Harness(two_arms(), MCTS(iterations=9, k=2), lambda selection, need: failed("drifted") if need == "step" else None)
    refused.search()
    assert outage(refused.tree) == ""
    down = Harness(two_arms(), MCTS(iterations=9, k=2), lambda selection, need: failed("environment") if need == "step" else None)
    down.search()
    assert outage(down.tree) == "environment: broke"
