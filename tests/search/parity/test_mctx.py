"""`mcts` and `gumbel` against mctx's MuZero and Gumbel MuZero (without noise): the same nodes, visited as often, the same action."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from exact.search.algorithms.gumbel import Gumbel
from exact.search.base import Done, Selection, Wait
from exact.search.mcts import MCTS
from exact.search.rules import select
from exact.search.rules.improve import by_noise, by_visits
from exact.search.tree import Tree
from tests.search.parity.recorded import Peer, peer
from tests.search.parity.trees import BUDGETS, GUMBEL_TREES, TREES, Counts, State, searched


@pytest.fixture(scope="module")
def mctx(request: pytest.FixtureRequest) -> Iterator[Peer]:
    with peer(request.config, "mctx", ("mctx", "jax", "jaxlib", "numpy"), digits=7) as found:
        yield found


def muzero(tree: State, iterations: int, discount: float = 1.0, **other: Any) -> Counts:
    parts: dict[str, Any] = {"explore": select.MUZERO, "first_play": select.lowest, "normalise": select.siblings(1e-8)}
    rule = select.rule(**{**parts, **other}, c=1.0)
    return searched(tree, MCTS(iterations=iterations, k=99, depth=99, rule=rule, revisit="repeat", merging="none", discount=discount))


@pytest.mark.parametrize("discount", [1.0, 0.9])
@pytest.mark.parametrize("budget", BUDGETS[2:])
def test_muzeros_rule_visits_what_mctx_visits(mctx: Peer, budget: int, discount: float) -> None:
    """mctx evaluates and expands the root before its first simulation: one iteration more here."""
    for name, one in mctx("muzero", discount, budget - 1).items():
        two = muzero(TREES[name], budget, discount)
        assert two.visits == one.visits, name
        assert two.q == pytest.approx(one.q, abs=1e-5), name


@pytest.mark.parametrize("other", [{"explore": select.PUCT}, {"first_play": select.parent_value}, {"normalise": select.siblings(0.5)}])
def test_without_mctxs_conventions_the_visits_are_others(mctx: Peer, other: dict[str, Any]) -> None:
    """Each convention that is switched makes a difference, or there would be nothing to switch."""
    found = {name: counts.visits for name, counts in mctx("muzero", 1.0, BUDGETS[-1] - 1).items()}
    assert {name: muzero(tree, BUDGETS[-1], **other).visits for name, tree in TREES.items()} != found


class Recorded(Gumbel):
    """Records what it decides at the end of a search."""

    chosen = -1

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        answer = super().ask(tree)
        if isinstance(answer, Done):
            self.chosen = self.decide(tree).edges[0]
        return answer


def gumbel(simulations: int, considered: int, **other: Any) -> Recorded:
    parts: dict[str, Any] = {"sigma": by_visits(), "halving": "visits", **other}
    return Recorded(iterations=simulations + 1, considered=considered, k=99, depth=99, revisit="repeat", merging="none", **parts)


@pytest.mark.parametrize(
    ("trees", "simulations", "considered"), [("even", 8, 16), ("even", 31, 3), ("even", 32, 4), ("wide", 16, 8), ("wide", 50, 16)]
)
def test_gumbel_visits_and_chooses_what_mctx_does(mctx: Peer, trees: str, simulations: int, considered: int) -> None:
    """Simulations are iterations without the root's own evaluation."""
    for name, one in mctx("gumbel", trees, simulations, considered).items():
        search = gumbel(simulations, considered)
        two = searched(GUMBEL_TREES[trees][name], search)
        assert two.visits == one.visits, name
        assert two.q == pytest.approx(one.q, abs=1e-5), name
        assert search.chosen == one.action, name


@pytest.mark.parametrize("other", [{"halving": "phases"}, {"sigma": by_noise()}])
def test_without_mctxs_conventions_gumbels_visits_are_others(other: dict[str, Any]) -> None:
    """Each convention that is switched makes a difference, or there would be nothing to switch."""
    same = [
        searched(tree, gumbel(budget, 16, **other)).visits == searched(tree, gumbel(budget, 16)).visits
        for trees in GUMBEL_TREES.values()
        for tree in trees.values()
        for budget in (8, 31, 50)
    ]
    assert not all(same)
