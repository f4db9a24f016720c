"""PUCT and the final choices, against numbers worked out by hand."""

from __future__ import annotations

import math
import random

import pytest

from exact.context import Evaluation, Proposal
from exact.search.rules.backup import record_noise
from exact.search.rules.final import first_value, most_likely, most_valued, most_visited
from exact.search.rules.select import UCT, SelectionRule, puct, rule
from exact.search.tree import Edge, Edges, Node, Tree, touched
from tests.search.harness import go


def node(value: float | None = 0.5, visits: int = 1, **edges: Edge) -> Node:
    judged = {} if value is None else {"evaluation": Evaluation(value=value), "evaluations": 1, "value_sum": value}
    return Node(0, **judged, visits=visits, edges=list(edges.values()))  # type: ignore[arg-type]


def edge(prior: float = 0.5, visits: int = 0, total: float = 0.0, **more: object) -> Edge:
    made = Edge(go("on"), prior, visits=visits, total=total, q=total / visits if visits else 0.0)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def scores(rule: SelectionRule, state: Node, about: Edge, score: float) -> bool:
    """Return whether an edge has this score: it is followed beside one that scores a little less, and not beside one a little more."""
    state.edges = [edge(0.0, 10**9, (score - 1e-6) * 10**9), about]
    above = rule(Tree(), state) == 1
    state.edges = [edge(0.0, 10**9, (score + 1e-6) * 10**9), about]
    return above and rule(Tree(), state) == 0


def test_puct_of_an_unvisited_action_starts_at_the_value_of_its_state() -> None:
    assert scores(puct(0.5), node(0.3, visits=1), edge(0.4), 0.3 + 0.5 * 0.4 * 1 / 1)
    assert scores(puct(0.5), node(0.3, visits=9), edge(0.4), 0.3 + 0.5 * 0.4 * 3 / 1)


def test_puct_of_a_visited_action_starts_at_its_own_mean() -> None:
    assert scores(puct(2.0), node(0.3, visits=16), edge(0.25, visits=3, total=2.4), 0.8 + 2.0 * 0.25 * 4 / 4)


def test_selections_in_flight_count_as_visits_and_leave_the_mean_alone() -> None:
    state = node(0.3, visits=7)
    state.in_flight = 2
    assert scores(puct(0.5), state, edge(0.5, visits=1, total=0.9, in_flight=2, child=node()), 0.9 + 0.5 * 0.5 * 3 / 4)


def test_without_exploration_puct_is_the_mean() -> None:
    assert scores(puct(0.0), node(visits=100), edge(1.0, visits=2, total=0.5), 0.25)


def test_a_mean_of_zero_is_not_an_unvisited_action() -> None:
    assert first_value(node(0.7), edge(visits=3, total=0.0)) == 0.0
    assert first_value(node(0.0), edge()) == 0.0
    assert first_value(node(None), edge()) == 0.5


def test_the_first_of_equals_is_followed_so_ties_are_broken_by_order() -> None:
    assert puct(0.5)(Tree(), node(0.5, a=edge(0.5), b=edge(0.5))) == 0


def test_where_nothing_is_open_nothing_is_followed() -> None:
    state = node(a=edge(closed="refused"), b=edge(in_flight=1))
    state.in_flight = 1
    assert puct(0.5)(Tree(), state) == -1


def test_the_robust_child_is_ordered_by_visits_then_value_then_prior_then_place() -> None:
    state = node(a=edge(0.1, 2, 1.0), b=edge(0.2, 2, 1.8), c=edge(0.3, 3, 0.0), d=edge(0.4), e=edge(0.2, 2, 1.0), f=edge(0.1, 2, 1.0))
    assert most_visited(state) == [2, 1, 4, 0, 5]


def test_the_max_child_is_ordered_by_value_then_prior() -> None:
    state = node(a=edge(0.1, 9, 4.5), b=edge(0.2, 1, 0.9), c=edge(0.7, 2, 1.0), d=edge(0.9))
    assert most_valued(state) == [1, 2, 0]


def test_futile_actions_are_never_chosen_and_those_without_a_visible_effect_come_last() -> None:
    state = node(a=edge(0.9, 5, 5.0, closed="no-op", futile=True), b=edge(0.5, closed="no-op: leads back"), c=edge(0.1), d=edge(0.2))
    assert most_visited(state) == [] == most_valued(state)
    assert most_likely(state) == [3, 2, 1]


@pytest.mark.parametrize("kind", ["drifted", "environment", "model", "answer", "budget"])
def test_a_failure_leaves_an_action_its_rank(kind: str) -> None:
    state = node(save=edge(0.48, closed=f"{kind}: x"), talk=edge(0.43, closed=f"{kind}: x"), related=edge(0.09))
    assert most_likely(state) == [0, 1, 2]


def test_an_exhausted_action_may_still_be_committed() -> None:
    assert most_visited(node(a=edge(0.5, 4, 4 * math.pi / 4, closed="exhausted: every action was tried"))) == [0]


def judged(between: float = 0.0, within: float = 0.0, order_effect: float = 0.0) -> Node:
    return Node(
        1, evaluation=Evaluation(value=0.5, between=between, within=within, order_effect=order_effect), evaluations=1, value_sum=0.5
    )


def test_only_a_spread_between_judges_raises_exploration() -> None:
    doubting = rule(c=1.0, disagreement_bonus=2.0)
    plain = 0.5 + 0.4 * 2 / 2
    assert scores(doubting, node(0.5, visits=4), edge(0.4, visits=1, total=0.5, child=judged(between=0.25)), 0.5 + 1.5 * 0.4 * 2 / 2)
    assert scores(doubting, node(0.5, visits=4), edge(0.4, visits=1, total=0.5, child=judged(within=0.4, order_effect=0.6)), plain)
    assert scores(puct(1.0), node(0.5, visits=4), edge(0.4, visits=1, total=0.5, child=judged(between=0.25)), plain)


def test_the_effect_of_the_reading_order_is_no_noise() -> None:
    tree, opinions = Tree(), (0.2, 0.8, 0.2, 0.8)
    record_noise(tree, Node(1), Evaluation(value=0.5, samples=opinions, disagreement=0.3, order_effect=0.6))
    record_noise(tree, Node(2), Evaluation(value=0.5, samples=opinions, disagreement=0.3, between=0.3))
    assert tree.noise == 0.0 and tree.repeats == 2
    record_noise(tree, Node(3), Evaluation(value=0.5, samples=opinions, disagreement=0.3, within=0.4))
    assert tree.squares == 0.4**2 / 4


RULES = [puct(0.5), puct(0.0), rule(UCT), rule(disagreement_bonus=2.0)]


@pytest.mark.parametrize("chosen_by", RULES)
def test_an_action_that_nobody_looked_at_is_chosen_as_one_that_somebody_did(chosen_by: SelectionRule) -> None:
    dice = random.Random(1)
    for _ in range(200):
        priors = [dice.choice([0.0, 0.1, 1 / 3, 1 - 2 / 3, 0.5]) for _ in range(5)]  # equal but for rounding, too
        lazy, plain = (node(0.4, visits=dice.randint(1, 9)) for _ in range(2))
        lazy.edges = Edges(lazy, [Proposal(action=go(str(i)), prior=prior) for i, prior in enumerate(priors)], priors)
        tried = dice.sample(range(5), dice.randint(0, 4))
        plain.edges, plain.visits = [edge(prior) for prior in priors], lazy.visits
        plain.in_flight = lazy.in_flight = dice.randint(0, 1)
        for i in tried:
            visits, q, closed = dice.randint(0, 2), dice.choice([0.0, 0.4, 0.6]), dice.choice(["", "", "no-op"])
            for state in (lazy, plain):
                state.edges[i].visits, state.edges[i].q, state.edges[i].closed = visits, q, closed
        assert chosen_by(Tree(), lazy) == chosen_by(Tree(), plain)
        assert [e.visits for e in touched(lazy)] == [plain.edges[i].visits for i in sorted(tried)]


def test_a_visited_end_is_scored_by_its_mean_alone_unless_it_may_come_out_otherwise() -> None:
    end = Node(1, terminated=True)
    state = node(0.5, visits=9, end=edge(0.5, 2, 1.0, child=end), other=edge(0.5, 2, 0.9, child=Node(2)))
    assert rule(ends="value")(Tree(), state) == 1 and rule(ends="explore")(Tree(), state) == 0
    chance = Tree()
    chance.stochastic = True
    assert rule(ends="value")(chance, state) == 0
