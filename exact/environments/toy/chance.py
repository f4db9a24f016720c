"""Environments with stochastic steps: the same action in the same state does not always lead to the same state.

The outcome is keyed by (seed, state, action, number of earlier tries in this environment): two fresh environments repeat each other, and
an environment that is reset continues its counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from exact.environments.toy.draw import probability
from exact.environments.toy.graph import ToyEdge, ToyGraph, ToyState
from exact.errors import UsageError


def ice(n: int = 3, *, slip: float = 0.4, seed: int = 0) -> ToyGraph:
    """Return a river: two steps over ice, which breaks with probability `slip`, or n + 1 over a bridge, which holds.

    Known answer: the bridge is worth 1.0, the ice 1 - slip (`expected_rewards`). The policy prefers the ice, and one lucky crossing
    looks perfect: only repeated tries show the second outcome of the step.
    """
    probability("slip", slip)
    if n < 1:
        raise UsageError(f"a bridge of {n} steps: it has one at least")
    bridge = {
        f"bridge {i}": ToyState(
            text=f"On the bridge, {i} of {n}", edges={"on": ToyEdge(to=f"bridge {i + 1}" if i < n else "over")}, looks=0.6
        )
        for i in range(1, n + 1)
    }
    fork = {"ice": ToyEdge(to="shore", prior=0.7, slips={"water": slip} if slip else {}), "bridge": ToyEdge(to="bridge 1", prior=0.3)}
    states = {
        "bank": ToyState(text="A frozen river, and a bridge", edges=fork, looks=0.5),
        "shore": ToyState(text="At the other shore", edges={"on": ToyEdge(to="over")}, looks=0.9),
        "water": ToyState(text="The ice broke", edges={"on": ToyEdge(to="lost")}, looks=0.1),
        "over": ToyState(reward=1.0),
        "lost": ToyState(reward=0.0),
    }
    return ToyGraph(name="ice", instruction="Cross the river.", start="bank", states=states | bridge, seed=seed)


def bernoulli_bandit(means: Sequence[float], *, seed: int = 0) -> ToyGraph:
    """Return one pull of k arms: arm i pays 1 with probability `means[i]`, else 0. The priors are equal.

    The pull is followed by `take`, so that its result can be seen. Known answer: the arm with the largest mean, worth that mean
    (`expected_rewards`).
    """
    if not means:
        raise UsageError("a bandit without arms: give one mean for each")
    arms = {f"arm {i}": ToyEdge(to="paid", slips={"empty": 1.0 - probability("mean", mean)}) for i, mean in enumerate(means)}
    states = {
        "start": ToyState(text=f"{len(means)} arms", edges=arms, looks=sum(means) / len(means)),
        "paid": ToyState(text="It paid", edges={"take": ToyEdge(to="won")}, looks=1.0),
        "empty": ToyState(text="It paid nothing", edges={"take": ToyEdge(to="lost")}, looks=0.0),
        "won": ToyState(reward=1.0),
        "lost": ToyState(reward=0.0),
    }
    return ToyGraph(name="bernoulli", instruction="Pull the best arm.", start="start", states=states, seed=seed)
