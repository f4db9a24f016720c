"""What is known of an action below which nothing is left to try, and what a commit opens again."""

from __future__ import annotations

import itertools

import pytest

from exact.environments.toy.known import ToyEdge, ToyState
from exact.search.base import Diverged, Done, Selection, Stepped
from exact.search.mcts import MCTS
from exact.search.rules.backup import Backup, maximum, mean
from exact.search.rules.exhaust import is_exhausted, settle
from exact.search.tree import Edge, Node
from tests.search.harness import Harness, go, graph


def test_settled_values_are_discounted_like_backed_up_ones() -> None:
    way = ["far", "far1", "far2", "far end"]
    states = {name: ToyState(edges={"on": ToyEdge(to=after)}, looks=0.5) for name, after in itertools.pairwise(way)}
    states["a"] = ToyState(edges={"far": ToyEdge(to="far"), "near": ToyEdge(to="near end")}, looks=0.5)
    ends = {"far end": ToyState(reward=0.85), "near end": ToyState(reward=0.8)}
    run = Harness(graph({**states, **ends}), MCTS(iterations=60, k=4, discount=0.9))
    run.search()
    assert [edge.q for edge in run.tree.root.edges] == pytest.approx([0.9**4 * 0.85, 0.9 * 0.8])
    assert all(edge.settled for edge in run.tree.root.edges) and run.commit() == "near"


ICE = {
    "a": ToyState(edges={"ice": ToyEdge(to="shore", prior=3.0), "bridge": ToyEdge(to="over")}, looks=0.5),
    "shore": ToyState(edges={"on": ToyEdge(to="dull"), "off": ToyEdge(to="lost")}, looks=0.5),
    "water": ToyState(edges={"down": ToyEdge(to="lost"), "under": ToyEdge(to="lost"), "up": ToyEdge(to="won")}, looks=0.1),
    "won": ToyState(reward=1.0),
    "over": ToyState(reward=0.6),
    "dull": ToyState(reward=0.5),
    "lost": ToyState(reward=0.0),
}


class Ice(Harness):
    """The ice breaks the second time that somebody steps on it."""

    broken = False

    def state(self, node: Node) -> str:
        edge = node.edge
        return node.fingerprint or self.graph.states[self.state(node.parent)].edges[str(edge.action.args[0])].to  # type: ignore

    def meet(self, selection: Selection) -> None:
        if self.tree.nodes[selection.node].fingerprint == "shore" and selection.edge is not None and not self.broken:
            self.broken = True
            self.tell(selection, Diverged(node=0, edge=0, stepped=Stepped(fingerprint="water")))
        else:
            super().meet(selection)


def test_an_action_is_over_only_when_all_its_outcomes_are() -> None:
    run = Ice(graph(ICE), MCTS(iterations=60, k=4))
    assert run.search() == Done("every action was tried")
    ice = run.tree.root.edges[0]
    assert [(child.fingerprint, len(child.edges), bool(child.closed)) for child in ice.outcomes] == [("shore", 2, True), ("water", 3, True)]
    assert ice.settled and ice.q == pytest.approx((0.5 + 1.0) / 2), "each outcome as often as it was seen"
    assert run.commit() == "ice"


def test_an_exhausted_outcome_continues_counting_beside_an_open_one() -> None:
    way = [f"w{i}" for i in range(40)]
    long = {name: ToyState(edges={"on": ToyEdge(to=after)}, looks=0.9) for name, after in itertools.pairwise(way)}
    states = {**ICE, **long, "w39": ToyState(reward=0.9), "water": ToyState(edges={"on": ToyEdge(to="w0")}, looks=0.9)}
    run = Ice(graph(states), MCTS(iterations=50, k=4, depth=60))
    run.search()
    shore, water = run.tree.root.edges[0].outcomes
    assert run.tree.iterations == 50 and shore.closed and not water.closed
    assert abs(shore.visits - water.visits) <= 2 and run.tree.root.edges[0].q < 0.75


def test_an_outcome_that_was_met_and_neither_judged_nor_expanded_settles_nothing() -> None:
    judged = Node(1, fingerprint="lost", terminated=True, evaluations=1, value_sum=0.5, arrivals=1)
    met = Node(2, fingerprint="water", closed="pruned", arrivals=1)
    edge = Edge(go("ice"), 1.0, child=judged)
    edge.others = (met,)
    assert is_exhausted(edge, evaluations=1, deepest=8)
    settle(edge, discount=1.0, deepest=8)
    assert not edge.settled
    met.evaluations, met.value_sum = 1, 0.1
    settle(edge, discount=1.0, deepest=8)
    assert not edge.settled, "something may follow"
    settle(edge, discount=1.0, deepest=0)
    assert edge.settled and edge.q == pytest.approx(0.3)


ENDS = {f"end{i}": ToyState(reward=reward) for i, reward in enumerate((0.95, 0.1, 0.0, 0.0, 0.5))}
FORK = {
    "a": ToyState(edges={"on": ToyEdge(to="b")}, looks=0.5),
    "b": ToyState(edges={"ways": ToyEdge(to="c"), "end": ToyEdge(to="end4")}, looks=0.3),
    "c": ToyState(edges={f"way {i}": ToyEdge(to=f"end{i}") for i in range(4)}, looks=0.2),
    **ENDS,
}


def test_fully_exhausted_states_stay_settled_after_a_commit() -> None:
    run = Harness(graph(FORK), MCTS(iterations=60, k=4))
    run.search()
    assert run.commit() == "on"
    ways = run.tree.root.edges[0]
    assert ways.settled and ways.q == 0.95 and run.algorithm.decide(run.tree).edges == (0,), "before any further search"
    asked = len(run.asked)
    assert run.search() == Done("every action was tried") and len(run.asked) == asked


@pytest.mark.parametrize(("backup", "q"), [(mean, 0.25), (maximum, 0.3)])
def test_states_exhausted_by_the_depth_limit_reopen_after_a_commit_with_q_by_the_rule(backup: Backup, q: float) -> None:
    way = {"a": 0.5, "b": 0.1, "c": 0.2, "d": 0.3, "e": 0.4}
    states = {name: ToyState(edges={"on": ToyEdge(to=after)}, looks=way[name]) for name, after in itertools.pairwise([*way, "won"])}
    run = Harness(graph({**states, "won": ToyState(reward=1.0)}), MCTS(iterations=20, k=4, depth=3, backup=backup))
    assert run.search() == Done("every action was tried")
    run.commit()
    on = run.tree.root.edges[0]
    assert not on.closed and not on.settled and not on.distance and on.q == pytest.approx(q)
    run.search()
    assert on.settled and on.q == 0.4
