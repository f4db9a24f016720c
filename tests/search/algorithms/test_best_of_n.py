"""Best of n: trajectories as a flow down the tree."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from exact.action import Action
from exact.context import Proposal
from exact.environments.toy.factory import TOY_ACTIONS
from exact.environments.toy.known import ToyEdge, ToyState, bandit, chain, deceptive_chain
from exact.search.algorithms.best_of_n import BestOfN
from exact.search.base import Done, Proposed, Result, Stepped, Wait
from tests.search.harness import Harness, check_idle, failed, go, graph, valued


def best_of(n: int, **more: Any) -> BestOfN:
    return BestOfN(n=n, **{"iterations": 60, "k": 1, **more})


def drawn(action: Action | str) -> Proposed:
    return Proposed(proposals=(Proposal(action=go(action) if isinstance(action, str) else action, prior=1.0),))


def begun(*actions: Action | str, **more: Any) -> Harness:
    """Return a search of a bandit whose root has drawn these actions."""
    run = Harness(bandit(5), best_of(len(actions), **more))
    selections = [run.select() for _ in actions]
    for selection, action in zip(selections, actions, strict=True):
        run.tell(selection, drawn(action))
    return run


def test_all_trajectories_begin_at_once() -> None:
    run = Harness(bandit(3), best_of(4))
    selections = [run.select() for _ in range(4)]
    assert [(s.needs, s.draw) for s in selections] == [(("sample",), draw) for draw in range(4)]
    assert run.ask() == Wait()


def test_the_share_of_draws_is_the_prior() -> None:
    run = begun("arm 0", "arm 1", "arm 0", "arm 0")
    assert [edge.prior for edge in run.tree.root.edges] == pytest.approx([0.75, 0.25])


def test_equal_draws_share_their_step_and_their_evaluation() -> None:
    run = begun("arm 0", "arm 1", "arm 0")
    run.search()
    assert sum("step" in s.needs for s in run.asked) == 2
    assert [node.evaluations for node in run.tree.nodes] == [0, 1, 1]


def test_each_trajectory_draws_for_itself_where_it_comes_to() -> None:
    run = Harness(deceptive_chain(3), best_of(6))
    run.search()
    draws = Counter(s.node for s in run.asked if "sample" in s.needs)
    assert sum(draws[child.id] for edge in run.tree.root.edges for child in edge.outcomes) == 6


def test_only_ends_are_judged() -> None:
    run = Harness(chain(3), best_of(8))
    run.search()
    judged = [node for node in run.tree.nodes if node.evaluations]
    assert judged and all(node.terminated for node in judged)


def test_a_trajectory_is_judged_where_it_is_as_long_as_it_may_be() -> None:
    run = Harness(deceptive_chain(4), best_of(4, depth=2))
    run.search()
    assert {node.depth for node in run.tree.nodes if node.evaluations} == {2}


def test_the_best_end_is_committed_by_its_way() -> None:
    run = Harness(deceptive_chain(3), best_of(8, plan=True))
    run.search()
    decision = run.algorithm.decide(run.tree)
    assert run.tree.root.edges[decision.edges[0]].action.args == ("right",) and len(decision.edges) == 3


def test_a_refused_draw_is_replaced_as_often_as_retries_allow() -> None:
    run = Harness(graph({"a": ToyState(edges={"x": ToyEdge(to="a")})}), best_of(3, retries=2))
    run.fault = lambda s, need: failed("action") if need == "step" else None
    run.search()
    assert sum("sample" in s.needs for s in run.asked) == 5


def test_ends_with_the_same_answer_pool_their_value() -> None:
    """Two ways to answer 1 (0.9 and 0.1, pooled 0.5), one to answer 2 (0.6)."""
    states = {name: ToyState(edges={"x": ToyEdge(to="a")}, looks=0.5) for name in ("b", "c", "d")}
    states["a"] = ToyState(edges={link: ToyEdge(to=link) for link in states}, looks=0.5)
    run = Harness(graph(states), best_of(3))
    for selection, link in zip([run.select() for _ in range(3)], "bcd", strict=True):
        run.tell(selection, drawn(link))
    said = [(0.9, "1"), (0.1, "1"), (0.6, "2")]
    results: list[Result] = [Stepped(fingerprint=f"at {value}") for value, _ in said]
    for _, answer in said:
        results += [drawn(TOY_ACTIONS.action("stop", answer)), Stepped(fingerprint="", terminated=True)]
    for result in [*results, *(valued(value) for value, _ in said)]:
        run.tell(run.select(), result)
    assert isinstance(run.ask(), Done)
    assert run.algorithm.decide(run.tree).edges == (2,)


def test_trajectories_that_went_the_committed_way_are_kept() -> None:
    run = Harness(deceptive_chain(3), best_of(4))
    run.search()
    run.commit()
    kept = run.tree.root.expansions
    run.asked.clear()
    run.search()
    assert kept and sum(s.node == run.tree.root.id for s in run.asked if "sample" in s.needs) == 4 - kept
    check_idle(run.tree)


def test_a_draw_that_failed_is_made_again() -> None:
    run = Harness(bandit(2), best_of(1, retries=2))
    run.fault = lambda s, need: failed("model") if need == "sample" and s.id == 0 else None
    run.search()
    assert [s.draw for s in run.asked if "sample" in s.needs] == [0, 1] and run.tree.root.expansions == 1
