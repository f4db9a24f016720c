"""mctx's MuZero policy, and its Gumbel MuZero policy without noise, on explicit trees: all trees of a search are one batch."""

from __future__ import annotations

import functools
from typing import Any

import jax
import mctx
import numpy as np

from tests.search.parity.trees import GUMBEL_TREES, TREES, Counts, Path, State

NEVER = -1e9
"""Logit of an action that a state does not have: its prior is 0 in single precision."""
START = np.int32(0)
"""The root's row in the tables."""


def muzero(discount: float, simulations: int) -> dict[str, Counts]:
    return _counted(TREES, _found("muzero", list(TREES.values()), discount, simulations).search_tree)


def gumbel(trees: str, simulations: int, considered: int) -> dict[str, Counts]:
    chosen = GUMBEL_TREES[trees]
    output = _found("gumbel", list(chosen.values()), 1.0, simulations, considered)
    found = _counted(chosen, output.search_tree)
    for counts, action in zip(found.values(), output.action, strict=True):
        counts.action = int(action)
    return found


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


def _found(policy: str, trees: list[State], discount: float, *settings: int) -> Any:
    """mctx's output, with one search tree for each tree of the batch."""
    params = jax.tree.map(jax.numpy.asarray, {**tables(trees), "discount": np.float32(discount)})
    return jax.device_get(_compiled(policy, *settings)(params))


@functools.cache
def _compiled(policy: str, *settings: int) -> Any:
    return jax.jit(functools.partial({"muzero": _muzero, "gumbel": _gumbel}[policy], settings=settings))


def _muzero(graph: dict[str, Any], settings: tuple[int, ...]) -> Any:
    return mctx.muzero_policy(graph, jax.random.PRNGKey(0), _root(graph), _step, *settings, dirichlet_fraction=0.0)


def _gumbel(graph: dict[str, Any], settings: tuple[int, ...]) -> Any:
    simulations, considered = settings
    return mctx.gumbel_muzero_policy(
        graph, jax.random.PRNGKey(0), _root(graph), _step, simulations, max_num_considered_actions=considered, gumbel_scale=0.0
    )


def _root(graph: dict[str, Any]) -> Any:
    start = np.full(len(graph["value"]), START)
    return mctx.RootFnOutput(prior_logits=graph["logits"][:, 0], value=graph["value"][:, 0], embedding=start)


def _step(graph: Any, key: Any, action: Any, state: Any) -> Any:
    batch = np.arange(len(graph["value"]))
    to = graph["child"][batch, state, action]
    end, was_end = graph["end"][batch, to], graph["end"][batch, state]
    output = mctx.RecurrentFnOutput(
        reward=jax.numpy.where(was_end, 0.0, graph["discount"] * graph["reward"][batch, to]),
        discount=jax.numpy.where(end, 0.0, graph["discount"]),
        prior_logits=graph["logits"][batch, to],
        value=graph["value"][batch, to],
    )
    return output, to


def _counted(trees: dict[str, State], found: Any) -> dict[str, Counts]:
    """What mctx left behind of each tree; what it visited below ends has no counterpart."""
    counted = {}
    for number, (name, tree) in enumerate(trees.items()):
        _count(found, number, 0, (), tree, counted.setdefault(name, Counts()))
    return counted


def _count(found: Any, tree: int, node: int, path: Path, state: State, counts: Counts) -> None:
    counts.visits[path] = int(found.node_visits[tree, node])
    for a, below in enumerate(state.children):
        if (child := int(found.children_index[tree, node, a])) >= 0:
            rest = found.children_discounts[tree, node, a] * found.children_values[tree, node, a]
            counts.q[*path, a] = float(found.children_rewards[tree, node, a] + rest)
            _count(found, tree, child, (*path, a), below, counts)
