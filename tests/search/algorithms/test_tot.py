"""Tree of Thoughts: votes, thresholds and backtracking."""

from __future__ import annotations

from typing import Any

import pytest

from exact.context import Evaluation
from exact.environments.toy.known import ToyEdge, ToyGraph, ToyState, bandit, chain, deceptive_chain
from exact.search.algorithms.beam import Beam
from exact.search.algorithms.tot import TotBFS, TotDFS
from exact.search.base import Batched, Compared, Done, Failure, Wait
from exact.search.tree import SearchError
from tests.search.harness import Harness, check_idle, failed, graph, valued


def bfs(rating: Any = "value", **more: Any) -> TotBFS:
    return TotBFS(rating=rating, **{"iterations": 60, "k": 5, "breadth": 2, **more})


def dfs(threshold: float = 0.2, **more: Any) -> TotDFS:
    return TotDFS(threshold=threshold, **{"iterations": 60, "k": 5, **more})


def rooms() -> dict[str, ToyState]:
    """Two rooms with two ends each; the better-looking room has the worse ends."""
    ends = {"l0": 0.1, "l1": 0.3, "r0": 0.2, "r1": 0.8}
    return {
        "a": ToyState(edges={"r": ToyEdge(to="r", prior=2.0), "l": ToyEdge(to="l")}, looks=0.5),
        "l": ToyState(edges={"0": ToyEdge(to="l0"), "1": ToyEdge(to="l1")}, looks=0.6),
        "r": ToyState(edges={"0": ToyEdge(to="r0"), "1": ToyEdge(to="r1")}, looks=0.4),
        **{name: ToyState(reward=reward) for name, reward in ends.items()},
    }


# --- breadth first


def test_by_vote_siblings_are_compared_once_all_are_there() -> None:
    run = Harness(bandit(3, rewards=(0.2, 0.6, 0.2)), bfs("vote"))
    run.search()
    assert [s.needs for s in run.asked] == [("proposals",), ("step",), ("step",), ("step",), ("comparison",)]
    assert run.asked[-1].rivals == (0, 1, 2)
    assert [edge.value for edge in run.tree.root.edges] == pytest.approx([0.2, 0.6, 0.2], abs=1e-4)
    check_idle(run.tree)


def test_votes_count_up_to_the_root() -> None:
    run = Harness(rooms_environment(), bfs("vote", breadth=2))
    run.search()
    deep = [edge for edge in run.tree.root.edges if edge.child is not None and edge.child.visited]
    assert deep
    for edge in deep:
        assert edge.child is not None
        assert edge.visits == edge.child.visits and edge.total == pytest.approx(
            sum(below.total for below in edge.child.edges) + (edge.child.value or 0.0) * edge.child.backups
        )


def test_siblings_of_a_batch_are_evaluated_together_and_backed_up_to_the_root() -> None:
    run = Harness(rooms_environment(), bfs(batch=True))
    run.search()
    needs = [s.needs for s in run.asked]
    assert needs[:5] == [("value",), ("proposals",), ("step",), ("step",), ("batch",)] and run.asked[4].rivals == (0, 1)
    assert [edge.value for edge in run.tree.root.edges] == pytest.approx([(0.4 + 0.2 + 0.8) / 3, (0.6 + 0.1 + 0.3) / 3])
    assert run.tree.iterations == 7 and run.algorithm.decide(run.tree).edges == (0,)
    check_idle(run.tree)


def test_a_beam_judges_its_siblings_together_too() -> None:
    run = Harness(rooms_environment(), Beam(breadth=1, batch=True, iterations=60, k=5))
    run.search()
    assert [s.needs for s in run.asked].count(("batch",)) == 2
    check_idle(run.tree)


def test_a_batch_that_cannot_be_paid_for_is_not_asked_for() -> None:
    run = Harness(rooms_environment(), bfs(batch=True, iterations=2))
    run.search()
    assert not any("batch" in s.needs for s in run.asked)


def test_a_batch_of_another_length_is_refused() -> None:
    run = Harness(bandit(2), bfs(batch=True))
    while "batch" not in (asked := run.select()).needs:
        run.meet(asked)
    with pytest.raises(SearchError, match="1 evaluations for 2 rivals"):
        run.tell(asked, Batched(evaluations=(Evaluation(value=0.5),)))
    with pytest.raises(SearchError, match=r"not all in \[0, 1\]"):
        run.tell(asked, Batched(evaluations=(Evaluation(value=0.5), Evaluation(value=1.5))))


def rooms_environment() -> ToyGraph:
    return graph(rooms())


def test_a_comparison_waits_for_the_last_sibling() -> None:
    run = Harness(bandit(2), bfs("vote"))
    run.meet(run.select())
    first, second = run.select(), run.select()
    run.meet(second)
    assert run.ask() == Wait()
    run.meet(first)
    assert run.select().needs == ("comparison",)


def test_a_state_alone_is_judged_on_its_own() -> None:
    run = Harness(bandit(1), bfs("vote"))
    run.search()
    assert [s.needs for s in run.asked] == [("proposals",), ("step",), ("value",)]


def test_a_vote_chooses_by_the_geometric_mean_of_the_shares() -> None:
    """l: 0.6 then 0.25 or 0.75; r: 0.4 then 0.2 or 0.8: 0.6 x 0.75 is the greatest."""
    run = Harness(graph(rooms()), bfs("vote"))
    run.search()
    decision = run.algorithm.decide(run.tree)
    assert run.tree.root.edges[decision.edges[0]].action.args == ("l",)


def test_by_value_the_better_end_is_chosen() -> None:
    assert Harness(graph(rooms()), bfs()).solve() == "r1"


def test_a_comparison_is_not_asked_for_where_it_would_pass_the_budget() -> None:
    run = Harness(bandit(5), bfs("vote", iterations=4))
    run.search()
    assert run.tree.iterations == 0 and not any("comparison" in s.needs for s in run.asked)
    assert run.algorithm.decide(run.tree).reason == "the highest prior: nothing was evaluated"


def test_a_comparison_that_fails_is_retried_and_then_ends_the_search() -> None:
    run = Harness(bandit(2), bfs("vote", retries=1))
    run.fault = lambda s, need: failed("model") if need == "comparison" else None
    assert run.search() == Done("model: broke")
    assert sum("comparison" in s.needs for s in run.asked) == 2


def test_a_comparison_that_was_refused_is_not_asked_for_without_end() -> None:
    run = Harness(bandit(2), bfs("vote"))
    run.fault = lambda s, need: Failure(kind="action", reason="no") if need == "comparison" else None
    assert run.search() == Done("action: no")


def test_scores_must_fit_their_rivals() -> None:
    run = Harness(bandit(2), bfs("vote"))
    for _ in range(3):
        run.meet(run.select())
    with pytest.raises(Exception, match="1 scores for 2 rivals"):
        run.tell(run.select(), Compared(scores=(1.0,)))


# --- depth first


def test_the_best_looking_way_is_gone_to_its_end_before_the_next() -> None:
    run = Harness(graph(rooms()), dfs())
    run.search()
    assert [run.state(node) for node in run.tree.nodes] == ["a", "r", "l", "l0", "l1", "r0", "r1"]


def test_states_below_the_threshold_are_not_expanded() -> None:
    for threshold, end in [(0.2, "right3"), (0.5, None)]:
        run = Harness(deceptive_chain(3), dfs(threshold))
        run.search()
        reached = {run.state(node) for node in run.tree.nodes}
        assert ("right3" in reached) == (end is not None)


def test_it_goes_back_from_an_end() -> None:
    assert Harness(deceptive_chain(3), dfs()).solve() == "right3"


def test_the_siblings_of_a_state_are_in_flight_together_and_then_it_waits() -> None:
    run = Harness(chain(3), dfs())
    run.tell(run.select(), valued(0.5))
    run.meet(run.select())
    steps = [run.select(), run.select()]
    assert run.ask() == Wait()
    for step in steps[::-1]:
        run.meet(step)
    assert run.select().needs == ("proposals",)
