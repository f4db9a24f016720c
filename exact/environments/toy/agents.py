"""A policy and a value function for toy environments whose right answers are known, with adjustable noise.

Noise is a function of (seed, state, subject), never of a stream: the order of calls does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from exact.action import Action, ActionSpace
from exact.context import Context, Evaluation, Proposal
from exact.environments.toy.draw import gaussian
from exact.environments.toy.graph import ToyEdge, ToyGraph, ToyState, state_of

__all__ = ["ToyPolicy", "ToyValue", "best_rewards", "expected_rewards", "gaussian"]


class ToyPolicy:
    """Policy that proposes a state's links with the environment's own priors."""

    def __init__(self, graph: ToyGraph, *, noise: float = 0.0, seed: int = 0) -> None:
        """Configure the policy.

        noise: standard deviation added to the logarithm of each weight, at least 0.
        """
        self._graph, self._noise, self._seed = graph, noise, seed

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """Return at most k actions of the state, likeliest first: links, and `stop` with each answer that counts there."""
        name = state_of(self._graph, context.observation)
        state = self._graph.states[name]
        refused = {taken.action.key for taken in context.tried}
        weights = [(actions.action("go", link), edge.prior) for link, edge in state.edges.items()]
        weights += [(actions.action("stop", answer), 1.0) for answer in state.answers]
        noisy = [(action, weight * self._factor(name, action)) for action, weight in weights if action.key not in refused]
        best = sorted(noisy, key=lambda pair: -pair[1])[:k]
        total = sum(weight for _, weight in best)
        return tuple(Proposal(action=action, prior=weight / total, rationale="a link of this state") for action, weight in best)

    def _factor(self, state: str, action: Action) -> float:
        return math.exp(self._noise * gaussian(self._seed, state, action.key))


class ToyValue:
    """Value function that returns how a state looks, or its true value."""

    def __init__(self, graph: ToyGraph, *, noise: float = 0.0, seed: int = 0, oracle: bool = False) -> None:
        """Configure the value function.

        noise: standard deviation of the error, before clipping to [0, 1]. oracle: return the expected reward of the best path instead.
        """
        self._graph, self._noise, self._seed = graph, noise, seed
        self._values = expected_rewards(graph) if oracle else {name: _looks(state) for name, state in graph.states.items()}

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the value of the state. For a terminated node: the value of its last action's outcome, the mean where steps slip."""
        name = state_of(self._graph, context.observation)
        state = self._graph.states[name]
        value = self._values[name]
        if context.terminated:
            action = context.history[-1].action
            argument = str(action.args[0])
            if action.name == "stop":
                name, value = f"{name}: {action}", state.answers.get(argument, 0.0)
            else:
                name, value = state.edges[argument].to, _mean(state.edges[argument], self._values)
        noisy = min(1.0, max(0.0, value + self._noise * gaussian(self._seed, name, "value")))
        return Evaluation(value=noisy, rationale=f"{name} looks like {noisy:.2f}", samples=(noisy,))


def best_rewards(graph: ToyGraph) -> dict[str, float]:
    """Return the best reward reachable from each state, with luck where steps slip; in [0, 1], without a limit on steps."""
    return _solved(graph, lambda edge, values: max(values[name] for name in edge.outcomes))


def expected_rewards(graph: ToyGraph) -> dict[str, float]:
    """Return the expected reward of the best path from each state, in [0, 1], without a limit on steps.

    Where nothing slips, it is the best reward. Value iteration from below, converged to 1e-9.
    """
    return _solved(graph, _mean)


def _solved(graph: ToyGraph, worth: Callable[[ToyEdge, Mapping[str, float]], float]) -> dict[str, float]:
    values = {name: max([state.reward or 0.0, *state.answers.values()]) for name, state in graph.states.items()}
    changed = True
    while changed:
        changed = False
        for name, state in graph.states.items():
            if state.reward is None:
                reach = max([values[name], *(worth(edge, values) for edge in state.edges.values())])
                changed |= reach > values[name] + 1e-9
                values[name] = reach
    return values


def _mean(edge: ToyEdge, values: Mapping[str, float]) -> float:
    """Return the mean value of an edge's outcomes."""
    if not edge.slips:
        return values[edge.to]
    return math.fsum(chance * values[name] for name, chance in edge.outcomes.items())


def _looks(state: ToyState) -> float:
    if state.looks is not None:
        return state.looks
    return 0.5 if state.reward is None else state.reward
