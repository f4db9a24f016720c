"""`gumbel` against mctx's Gumbel MuZero policy without noise: the same nodes, visited as often, and the same action."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from exact.search.algorithms.gumbel import Gumbel
from exact.search.base import Done, Selection, Wait
from exact.search.rules.improve import by_noise, by_visits
from exact.search.tree import Tree
from tests.search.parity.test_mctx import counts, jax, mctx, np, tables
from tests.search.parity.trees import State, grown, searched

TREES: dict[str, State] = {
    "arms": grown(1, branching=(4, 4), depth=1),
    "deep": grown(2, branching=(4, 4), depth=5),
    "uneven": grown(5, branching=(4, 4), depth=5, ends=0.3),
    "early ends": grown(6, branching=(4, 4), depth=4, ends=0.5),
}
"""Every state that is no end has as many actions: mctx completes Q for those that a state does not have too."""
WIDE: dict[str, State] = {"wide": grown(4, branching=(9, 9), depth=3), "very wide": grown(7, branching=(9, 9), depth=2)}
CASES = [(TREES, 8, 16), (TREES, 31, 3), (TREES, 32, 4), (WIDE, 16, 8), (WIDE, 50, 16)]
"""Trees, simulations (iterations without the root's own judgement), actions considered."""


def theirs(trees: list[State], simulations: int, considered: int) -> Any:
    graph = jax.tree.map(jax.numpy.asarray, tables(trees))
    return jax.device_get(_compiled(simulations, considered)(graph))


@functools.cache
def _compiled(simulations: int, considered: int) -> Any:
    return jax.jit(functools.partial(_policy, simulations=simulations, considered=considered))


def _policy(graph: dict[str, Any], simulations: int, considered: int) -> Any:
    batch = np.arange(len(graph["value"]))

    def step(graph: Any, key: Any, action: Any, state: Any) -> Any:
        to = graph["child"][batch, state, action]
        end, was_end = graph["end"][batch, to], graph["end"][batch, state]
        reward = jax.numpy.where(was_end, 0.0, graph["reward"][batch, to])
        output = mctx.RecurrentFnOutput(
            reward=reward,
            discount=jax.numpy.where(end, 0.0, 1.0),
            prior_logits=graph["logits"][batch, to],
            value=graph["value"][batch, to],
        )
        return output, to

    root = mctx.RootFnOutput(prior_logits=graph["logits"][:, 0], value=graph["value"][:, 0], embedding=np.zeros(len(batch), np.int32))
    return mctx.gumbel_muzero_policy(
        graph, jax.random.PRNGKey(0), root, step, simulations, max_num_considered_actions=considered, gumbel_scale=0.0
    )


class Kept(Gumbel):
    """Keeps what it decides at the end of a search."""

    chosen = -1

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        answer = super().ask(tree)
        if isinstance(answer, Done):
            self.chosen = self.decide(tree).edges[0]
        return answer


def ours(simulations: int, considered: int, **other: Any) -> Kept:
    parts: dict[str, Any] = {"sigma": by_visits(), "halving": "visits", **other}
    return Kept(iterations=simulations + 1, considered=considered, k=99, depth=99, revisit="repeat", merging="none", **parts)


@pytest.mark.parametrize(("trees", "budget", "considered"), CASES)
def test_gumbel_visits_and_chooses_what_mctx_does(trees: dict[str, State], budget: int, considered: int) -> None:
    found = theirs(list(trees.values()), budget, considered)
    for number, (name, tree) in enumerate(trees.items()):
        search = ours(budget, considered)
        one, mine = counts(found.search_tree, number, tree), searched(tree, search)
        assert mine.visits == one.visits, name
        assert mine.q == pytest.approx(one.q, abs=1e-5), name
        assert search.chosen == int(found.action[number]), name


@pytest.mark.parametrize("other", [{"halving": "phases"}, {"sigma": by_noise()}])
def test_without_mctxs_conventions_the_visits_are_others(other: dict[str, Any]) -> None:
    """Each convention that is switched makes a difference, or there would be nothing to switch."""
    same = [
        searched(tree, ours(budget, 16, **other)).visits == searched(tree, ours(budget, 16)).visits
        for tree in (*TREES.values(), *WIDE.values())
        for budget in (8, 31, 50)
    ]
    assert not all(same)
