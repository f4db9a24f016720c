"""Actions whose effect was not seen: a write that was blocked, a state that cannot be reached again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

from exact.config import SearchConfig
from exact.environments.toy.known import ToyEdge, ToyGraph, ToyState
from exact.search.base import Stepped
from exact.search.registry import algorithm
from exact.search.rules.final import Candidate, prefers_unseen
from exact.search.tree import Edge, Node
from tests.search.harness import Harness, graph

NAMES = ("mcts", "gumbel", "abmcts", "greedy", "flat_halving", "best_first", "best_of_n", "beam", "tot_bfs", "tot_dfs")
each = pytest.mark.parametrize("name", NAMES)
Judge = Callable[[str, str], float]
"""Value of a state, given its name and, where it was not seen, the action after it; else an empty action."""


class Blocking(Harness):
    """A harness in which some actions are not seen."""

    def __init__(
        self, made: ToyGraph, unseen: set[str], judge: Judge, why: Literal["blocked", "unreached"] = "blocked", **settings: Any
    ) -> None:
        super().__init__(made, algorithm(SearchConfig(**{"iterations": 24, "k": 5, "breadth": 4, "depth": 2, **settings})))
        self.unseen, self.judge, self.why = unseen, judge, why

    def state(self, node: Node) -> str:
        return super().state(node.parent if node.unseen and node.parent else node)

    def step(self, node: Node, edge: Edge) -> Stepped:
        if str(edge.action.args[0]) in self.unseen:
            return Stepped(fingerprint="", blocked=self.why == "blocked", unreached=self.why == "unreached")
        return super().step(node, edge)

    def looks(self, node: Node) -> float:
        action = str(node.edge.action.args[0]) if node.unseen and node.edge else ""
        return self.judge(self.state(node), action)

    def chosen(self) -> str:
        self.search()
        return str(self.tree.root.edges[self.algorithm.decide(self.tree).edges[0]].action.args[0])


def page(**priors: float) -> ToyGraph:
    """A page with links of these priors, each to a page of its own with two dull links."""
    dull = {f"{name} {i}": ToyState(edges={}, looks=0.4) for name in priors for i in (1, 2)}
    pages = {name: ToyState(edges={f"{name}{i}": ToyEdge(to=f"{name} {i}") for i in (1, 2)}) for name in priors}
    return graph({"page": ToyState(edges={name: ToyEdge(to=name, prior=p) for name, p in priors.items()}), **pages, **dull}, start="page")


def flat(state: str, action: str) -> float:
    """Judge all states alike, and a little lower what lies two steps away, as most judges do of dull pages."""
    return 0.5 if " " not in state else 0.4


@each
@pytest.mark.parametrize(
    "settings", [{}, {"revisit": "repeat"}, {"final": "visits"}, {"final": "value", "evaluations": 3}, {"backup": "max"}]
)
def test_a_blocked_write_has_no_advantage_over_explored_states(name: str, settings: dict[str, Any]) -> None:
    run = Blocking(page(go=0.6, look=0.3, leave=0.1), {"leave"}, flat, algorithm=name, **settings)
    assert run.chosen() != "leave", "it cannot be refuted by exploring, which is no reason to take it"
    (blocked,) = (edge for edge in run.tree.root.edges if edge.action.args[0] == "leave") if len(run.tree.root.edges) > 2 else (None,)
    assert blocked is None or (not blocked.settled and blocked.visits <= settings.get("evaluations", 1))


@each
def test_a_blocked_write_that_the_judge_holds_to_be_right_is_committed(name: str) -> None:
    def right(state: str, action: str) -> float:
        return 0.8 if action == "save" else 0.5

    assert Blocking(page(save=0.3, look=0.4, back=0.3), {"save"}, right, algorithm=name, breadth=9).chosen() == "save"


@each
def test_a_blocked_write_that_the_judge_holds_to_be_wrong_is_not_committed(name: str) -> None:
    def wrong(state: str, action: str) -> float:
        return 0.2 if action == "delete" else 0.5

    assert Blocking(page(delete=0.6, look=0.2, back=0.2), {"delete"}, wrong, algorithm=name, breadth=9).chosen() != "delete"


@each
def test_where_nothing_can_be_tried_the_likeliest_of_the_best_is_committed(name: str) -> None:
    priors = {"talk": 0.43, "save": 0.48, "related": 0.09}
    run = Blocking(page(**priors), set(priors), flat, "unreached", algorithm=name, breadth=9)
    assert run.chosen() == "save"
    assert not any(edge.closed.startswith("drifted") for edge in run.tree.root.edges)


@each
def test_where_nothing_can_be_tried_the_judge_has_its_say(name: str) -> None:
    priors = {"save": 0.4, "related": 0.35, "talk": 0.25}

    def knows(state: str, action: str) -> float:
        return 0.9 if action == "talk" else 0.4

    assert Blocking(page(**priors), set(priors), knows, "unreached", algorithm=name, breadth=9, iterations=40).chosen() == "talk"


@each
def test_a_path_to_a_blocked_write_is_committed_for_what_was_seen_of_it(name: str) -> None:
    made = graph(
        {
            "page": ToyState(edges={"edit": ToyEdge(to="form"), "read": ToyEdge(to="text")}),
            "form": ToyState(edges={"save": ToyEdge(to="done", prior=3.0), "cancel": ToyEdge(to="page")}),
            "text": ToyState(edges={"log out": ToyEdge(to="done", prior=3.0), "back": ToyEdge(to="page")}),
            "done": ToyState(reward=1.0),
        },
        start="page",
    )
    values = {"page": 0.4, "form": 0.6, "text": 0.4}

    def judge(state: str, action: str) -> float:
        return values[state]

    if name not in ("flat_halving", "best_of_n"):  # one step deep; only the ends of sampled paths are judged
        assert Blocking(made, {"save", "log out"}, judge, algorithm=name).chosen() == "edit"


@pytest.mark.parametrize(
    ("unseen", "before", "searched", "wins"),
    [
        ((0.8, 0.1), 0.5, (0.6, 0.6, 0.9), True),  # clearly better, whatever the prior
        ((0.6, 0.9), 0.5, (0.7, 0.7, 0.1), False),  # what was seen to be better wins
        ((0.55, 0.1), 0.5, (0.5, 0.5, 0.4), False),
        ((0.55, 0.4), 0.5, (0.5, 0.5, 0.1), True),
        ((0.5, 0.05), 0.5, (0.35, 0.5, 0.43), False),  # exploring lowered the mean: no reason for the unseen one
        ((0.5, 0.48), 0.5, (0.1, 0.1, 0.52), True),  # what was seen is bad
    ],
)
def test_an_unseen_action_wins_clearly_or_by_value_and_prior(
    unseen: tuple[float, float], before: float, searched: tuple[float, float, float], wins: bool
) -> None:
    value, prior = unseen
    assert prefers_unseen(Candidate(value, value, prior), Candidate(*searched), before=before) is wins


@each
@pytest.mark.parametrize("known", ["blocked", "presumed", "done"])
@pytest.mark.parametrize("priors", [{"save": 0.5, "look": 0.5}, {"save": 0.25, "send": 0.25, "look": 0.25, "leave": 0.25}])
def test_of_actions_that_are_worth_nothing_one_that_writes_is_not_committed(name: str, known: str, priors: dict[str, float]) -> None:
    writing = priors.keys() & {"save", "send"}
    run = Blocking(page(**priors), set(writing) if known == "blocked" else set(), lambda state, action: 0.0, algorithm=name)
    run.search()
    for edge in run.tree.root.edges:
        if edge.action.args[0] in writing and known == "presumed":
            edge.writes = True
        if edge.action.args[0] in writing and known == "done" and edge.child is not None:
            edge.child.beyond = "0123abcd"
    chosen = run.tree.root.edges[run.algorithm.decide(run.tree).edges[0]]
    others = [edge.prior for edge in run.tree.root.edges if edge.action.args[0] not in writing]
    assert chosen.action.args[0] not in writing or chosen.prior > max(others), "shares of draws are not always equal"


@pytest.mark.parametrize(("looks", "priors"), [(0.2, {"save": 0.5, "look": 0.5}), (0.0, {"save": 0.6, "look": 0.4})])
def test_a_write_that_is_worth_something_or_likelier_is_committed(looks: float, priors: dict[str, float]) -> None:
    run = Blocking(page(**priors), set(), lambda state, action: looks if state == "save" else 0.0, algorithm="greedy")
    run.search()
    next(edge for edge in run.tree.root.edges if edge.action.args[0] == "save").writes = True
    assert run.tree.root.edges[run.algorithm.decide(run.tree).edges[0]].action.args[0] == "save"


def test_a_write_is_committed_if_every_other_action_writes_too() -> None:
    run = Blocking(page(save=0.5, send=0.5), set(), lambda state, action: 0.0, algorithm="greedy")
    run.search()
    for edge in run.tree.root.edges:
        edge.writes = True
    assert run.algorithm.decide(run.tree).edges == (0,)
