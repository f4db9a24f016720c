"""`mcts` against mctx's MuZero policy: the same nodes, visited as often, of the same worth to single precision."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from exact.search.mcts import MCTS
from exact.search.rules import first_play, normalise, select
from tests.search.parity.trees import BUDGETS, TREES, Counts, Path, State, searched

REASON = "mctx is not installed: shells/setup.sh --parity"
jax = pytest.importorskip("jax", reason=REASON)
mctx = pytest.importorskip("mctx", reason=REASON)
np = pytest.importorskip("numpy")

NEVER = -1e9
"""Logit of an action that a state does not have: its prior is 0 in single precision."""


def tables(trees: list[State]) -> dict[str, Any]:
    """All trees as arrays [tree, state, action], of equal size: one batch, so that mctx is compiled once for each budget.

    An end pays its value on the way in, with a discount of 0 for what comes after; mctx walks on below it, in states worth nothing.
    """
    listed = [_listed(tree) for tree in trees]
    shape = (len(trees), max(map(len, listed)), max(len(s.priors) for states in listed for s in states))
    logits, child = np.full(shape, NEVER, np.float32), np.zeros(shape, np.int32)
    reward, value, end = np.zeros(shape[:2], np.float32), np.zeros(shape[:2], np.float32), np.zeros(shape[:2], bool)
    for t, states in enumerate(listed):
        number = {id(state): s for s, state in enumerate(states)}
        for s, state in enumerate(states):
            end[t, s] = not state.children
            (value if state.children else reward)[t, s] = state.value
            child[t, s] = s  # an end leads back to itself
            for a, (prior, below) in enumerate(zip(state.priors, state.children, strict=True)):
                logits[t, s, a], child[t, s, a] = np.log(prior), number[id(below)]
            if not state.children:
                logits[t, s] = 0.0
    return {"logits": logits, "child": child, "reward": reward, "value": value, "end": end}


def _listed(tree: State) -> list[State]:
    return [tree, *(state for child in tree.children for state in _listed(child))]


def muzero(graph: dict[str, Any], simulations: int, discount: float) -> Any:
    """mctx's search trees, one for each tree of the batch."""
    params = jax.tree.map(jax.numpy.asarray, {**graph, "discount": np.float32(discount)})
    return jax.device_get(_compiled(simulations)(params))


@functools.cache
def _compiled(simulations: int) -> Any:
    return jax.jit(functools.partial(_muzero, simulations=simulations))


def _muzero(graph: dict[str, Any], simulations: int) -> Any:
    batch = np.arange(len(graph["value"]))

    def step(graph: Any, key: Any, action: Any, state: Any) -> Any:
        to = graph["child"][batch, state, action]
        end, was_end = graph["end"][batch, to], graph["end"][batch, state]
        reward = jax.numpy.where(was_end, 0.0, graph["discount"] * graph["reward"][batch, to])
        keeps = jax.numpy.where(end, 0.0, graph["discount"])
        output = mctx.RecurrentFnOutput(
            reward=reward, discount=keeps, prior_logits=graph["logits"][batch, to], value=graph["value"][batch, to]
        )
        return output, to

    start = np.zeros(len(batch), np.int32)
    root = mctx.RootFnOutput(prior_logits=graph["logits"][:, 0], value=graph["value"][:, 0], embedding=start)
    return mctx.muzero_policy(graph, jax.random.PRNGKey(0), root, step, simulations, dirichlet_fraction=0.0).search_tree


def counts(found: Any, tree: int, state: State) -> Counts:
    """What mctx left behind of one tree; what it visited below ends has no counterpart."""
    result = Counts()

    def count(node: int, path: Path, state: State) -> None:
        result.visits[path] = int(found.node_visits[tree, node])
        for a, below in enumerate(state.children):
            if (child := int(found.children_index[tree, node, a])) >= 0:
                rest = found.children_discounts[tree, node, a] * found.children_values[tree, node, a]
                result.q[*path, a] = float(found.children_rewards[tree, node, a] + rest)
                count(child, (*path, a), below)

    count(0, (), state)
    return result


def ours(tree: State, iterations: int, discount: float = 1.0, **other: Any) -> Counts:
    parts: dict[str, Any] = {"explore": select.MUZERO, "first_play": first_play.lowest, "normalise": normalise.siblings(1e-8)}
    rule = select.rule(**{**parts, **other}, c=1.0)
    return searched(tree, MCTS(iterations=iterations, k=99, depth=99, rule=rule, revisit="repeat", merging="none", discount=discount))


@pytest.mark.parametrize("discount", [1.0, 0.9])
@pytest.mark.parametrize("budget", BUDGETS[2:])
def test_muzeros_rule_visits_what_mctx_visits(budget: int, discount: float) -> None:
    """mctx judges and expands the root before its first simulation: one iteration more here."""
    found = muzero(tables(list(TREES.values())), budget - 1, discount)
    for number, (name, tree) in enumerate(TREES.items()):
        one, two = counts(found, number, tree), ours(tree, budget, discount)
        assert two.visits == one.visits, name
        assert two.q == pytest.approx(one.q, abs=1e-5), name


@pytest.mark.parametrize(
    "other", [{"explore": select.PUCT}, {"first_play": first_play.parent_value}, {"normalise": normalise.siblings(0.5)}]
)
def test_without_mctxs_conventions_the_visits_are_others(other: dict[str, Any]) -> None:
    """Each convention that is switched makes a difference, or there would be nothing to switch."""
    found = muzero(tables(list(TREES.values())), BUDGETS[-1] - 1, 1.0)
    same = [ours(tree, BUDGETS[-1], **other).visits == counts(found, n, tree).visits for n, tree in enumerate(TREES.values())]
    assert not all(same)
