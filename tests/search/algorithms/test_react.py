"""ReAct takes the first proposal, without looking ahead."""

from __future__ import annotations

import pytest

from exact.environments.toy.known import ToyEdge, ToyState, chain
from exact.search.algorithms.react import React
from exact.search.base import Done, Wait
from exact.search.tree import SearchError
from tests.search.harness import Harness, failed, graph, proposed, valued

WORLD = graph(
    {
        "a": ToyState(edges={"x": ToyEdge(to="won", prior=3.0), "y": ToyEdge(to="lost")}),
        "won": ToyState(reward=1.0),
        "lost": ToyState(reward=0.0),
    }
)


def test_one_proposal_a_step_and_no_value() -> None:
    run = Harness(chain(3), React())
    assert run.solve() == "s3"
    assert [(selection.needs, selection.k) for selection in run.asked] == [(("proposals",), 1)] * 3
    assert all(node.evaluation is None for node in run.tree.nodes)


def test_it_is_done_as_soon_as_something_is_proposed() -> None:
    run = Harness(WORLD, React())
    proposals = run.select()
    assert run.ask() == Wait()
    with pytest.raises(SearchError, match="does not fit"):
        run.tell(proposals, valued(0.5))
    run.meet(proposals)
    assert run.ask() == Done("proposed")


def test_a_refused_action_is_not_committed_again_and_another_is_asked_for() -> None:
    run = Harness(WORLD, React(retries=0))
    run.search()
    run.algorithm.refuse(run.tree, 0, "covered by a dialog")
    run.tell(run.select(), proposed(y=1.0))
    assert run.algorithm.decide(run.tree).edges == (1,)


def test_a_policy_that_proposes_only_what_was_refused_is_asked_a_few_times() -> None:
    run = Harness(WORLD, React(retries=2))
    run.search()
    run.algorithm.refuse(run.tree, 0, "gone")
    assert run.search() == Done("the policy proposes only refused actions")
    assert len(run.tree.root.edges) == 1 and run.tree.root.expansions == 1 + 3
    with pytest.raises(SearchError, match="no action is left"):
        run.algorithm.decide(run.tree)


def test_a_policy_that_keeps_failing_ends_it_with_the_reason() -> None:
    run = Harness(WORLD, React(retries=2), lambda selection, need: failed("model"))
    assert run.search() == Done("model: broke")
    assert len(run.asked) == 3
