"""What the searches for one good state share, and that every setting of theirs is connected."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from exact.config import SearchConfig
from exact.environments.toy.known import ToyEdge, ToyState, bandit, chain, deceptive_chain
from exact.errors import UsageError
from exact.search.algorithms import lookahead
from exact.search.algorithms.beam import Beam
from exact.search.algorithms.best_first import BestFirst
from exact.search.algorithms.best_of_n import BestOfN
from exact.search.algorithms.tot import TotBFS, TotDFS
from exact.search.base import Stepped
from exact.search.inspect.export import to_json
from exact.search.registry import algorithm
from exact.search.tree import Edge, Node, SearchError, Tree
from tests.search.harness import Harness, check_idle, failed, go, graph

KINDS = {"best_first": BestFirst, "best_of_n": BestOfN, "beam": Beam, "tot_bfs": TotBFS, "tot_dfs": TotDFS}
each = pytest.mark.parametrize("name", KINDS)


def searched(name: str, made: Any = None, **settings: Any) -> Harness:
    run = Harness(made or deceptive_chain(3), algorithm(SearchConfig(algorithm=name, **{"iterations": 40, "breadth": 6, **settings})))
    run.search()
    return run


@each
def test_a_name_gives_its_algorithm(name: str) -> None:
    assert type(algorithm(SearchConfig(algorithm=name))) is KINDS[name]


@each
def test_iterations_bound_the_evaluations(name: str) -> None:
    for iterations in (3, 5):
        assert searched(name, iterations=iterations).tree.iterations <= iterations


@each
def test_depth_bounds_how_far_is_looked(name: str) -> None:
    for depth in (1, 2):
        assert max(node.depth for node in searched(name, depth=depth).tree.nodes) == depth


@each
def test_retries_bound_how_often_failed_work_is_asked_for(name: str) -> None:
    run = Harness(bandit(2), algorithm(SearchConfig(algorithm=name, retries=4, breadth=1)), lambda s, need: failed("model"))
    run.search()
    assert len(run.asked) == 5
    with pytest.raises(SearchError, match="no action is left"):
        run.algorithm.decide(run.tree)


@each
def test_a_plan_goes_to_the_end_and_a_replan_one_action(name: str) -> None:
    for commit, length in [("plan", 3), ("replan", 1)]:
        run = searched(name, commit=commit)
        decision = run.algorithm.decide(run.tree)
        assert len(decision.edges) == length and run.tree.root.edges[decision.edges[0]].action.args == ("right",)


@each
def test_a_good_enough_end_ends_the_search_once_it_is_confirmed(name: str) -> None:
    run = searched(name, chain(1), enough=0.9)
    assert run.tree.confirmed and run.algorithm.decide(run.tree).reason == "a confirmed end"
    assert not searched(name, chain(1)).tree.confirmed


@each
def test_another_state_than_was_foreseen_is_searched_anew(name: str) -> None:
    run = searched(name)
    edge = run.algorithm.decide(run.tree).edges[0]
    assert not run.algorithm.advance(run.tree, edge, Stepped(fingerprint="elsewhere"))
    assert run.tree.root.fingerprint == "elsewhere" and run.tree.allowed >= 80
    check_idle(run.tree)


@pytest.mark.parametrize("name, narrow", [("beam", 1), ("tot_bfs", 1), ("best_of_n", 1)])
def test_breadth_is_how_much_is_kept_or_drawn(name: str, narrow: int) -> None:
    assert len(searched(name, breadth=narrow).asked) < len(searched(name, breadth=6).asked)


@pytest.mark.parametrize(
    "name, option, one, other",
    [("tot_dfs", "threshold", 0.1, 0.5), ("tot_bfs", "rating", "value", "vote"), ("beam", "score", "state", "cumulative")],
)
def test_each_option_has_an_effect(name: str, option: str, one: object, other: object) -> None:
    made = {
        "a": ToyState(edges={"l": ToyEdge(to="l"), "r": ToyEdge(to="r")}, looks=0.5),
        "l": ToyState(edges={"on": ToyEdge(to="ll")}, looks=0.9),
        "r": ToyState(edges={"on": ToyEdge(to="rr")}, looks=0.2),
        "ll": ToyState(reward=0.4),
        "rr": ToyState(reward=0.5),
    }
    runs = [searched(name, graph(made), k=2, options={option: value}) for value in (one, other)]
    first, second = (([s.needs for s in run.asked], run.algorithm.decide(run.tree).edges) for run in runs)
    assert first != second


@pytest.mark.parametrize(
    "name, options, says",
    [
        ("tot_dfs", {"treshold": 0.5}, "did you mean 'threshold'"),
        ("tot_dfs", {"threshold": 2}, "search.options.threshold is 2: give a number, 0 to 1"),
        ("tot_bfs", {"rating": "votes"}, "search.options.rating is votes: give one of value, vote"),
        ("best_first", {"score": "state"}, "best_first takes none"),
    ],
)
def test_a_wrong_option_is_one_line_with_the_way_out(name: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        algorithm(SearchConfig(algorithm=name, options=options))


@each
def test_where_nothing_could_be_judged_the_likeliest_is_committed(name: str) -> None:
    run = Harness(bandit(3), algorithm(SearchConfig(algorithm=name, retries=0, breadth=1)))
    run.fault = lambda s, need: failed("model") if need in ("value", "comparison") and s.id > 1 else None
    run.search()
    assert run.algorithm.decide(run.tree).edges


@each
def test_the_forecast_names_states_to_act_in_and_changes_nothing(name: str) -> None:
    run = Harness(chain(6), algorithm(SearchConfig(algorithm=name, iterations=4)))
    assert run.algorithm.forecast(run.tree, 2) == [run.tree.root]
    run.search()
    before = to_json(run.tree)
    likely = run.algorithm.forecast(run.tree, 2)
    assert len(likely) <= 2 and all(not node.leaf and not node.closed for node in likely)
    assert to_json(run.tree) == before


def test_best_first_acts_where_it_was_forecast() -> None:
    run = searched("best_first", chain(6), iterations=4)
    run.tree.allowed += 4
    [likely] = run.algorithm.forecast(run.tree, 1)
    assert run.select().node == likely.id


def test_the_way_to_a_merged_state_is_looked_for_in_each_state_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the first action is the state; behind the second ten states in a row, with two ways from each to the next."""
    tree, looked, real = Tree(), list[Node](), lookahead.transitions
    aside, row = Node(99), [tree.root, *(Node(i) for i in range(1, 11))]
    tree.root.edges = [Edge(go("aside"), 0.5, child=aside), Edge(go("on"), 0.5, child=row[1])]
    for here, after in itertools.pairwise(row[1:]):
        here.edges = [Edge(go(name), 0.5, child=after) for name in ("left", "right")]
    monkeypatch.setattr(lookahead, "transitions", lambda node: looked.append(node) or real(node))
    assert [edge.action for _, edge in lookahead.path_to(tree, aside)] == [go("aside")]
    assert len(looked) == len(row)
