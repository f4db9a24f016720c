"""A policy and a value function for toy environments whose right answers are known, with adjustable noise.

Noise is a function of (seed, state, subject), never of a stream: the order of calls does not matter.

A policy and a judge of a decision tree with configured errors.

Every draw is keyed by (seed, kind, state, index): nothing depends on the order of calls, and equal questions have equal answers. In
memory and synchronous; `decision_environment` makes agents of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from exact.action import Action, ActionSpace
from exact.context import Context, Evaluation, Proposal
from exact.environments.toy.decision import DecisionTree
from exact.environments.toy.graph import ToyEdge, ToyGraph, ToyState, gaussian, probability, state_of, uniform
from exact.errors import UsageError, unknown

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
        """Return the value of the state. For a terminated node: the value of its last action's outcome, the mean if steps slip."""
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
    """Return the best reward reachable from each state, with luck if steps slip; in [0, 1], without a limit on steps."""
    return _solved(graph, lambda edge, values: max(values[name] for name in edge.outcomes))


def expected_rewards(graph: ToyGraph) -> dict[str, float]:
    """Return the expected reward of the best path from each state, in [0, 1], without a limit on steps.

    If nothing slips, it is the best reward. Value iteration from below, converged to 1e-9.
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


Noise = Literal["independent", "persistent", "correlated", "false_positive", "drift", "pure"]
"""Kind of a judge's errors.

independent: drawn for each evaluation. persistent: once for each state, so that evaluating again does not help. correlated: siblings
share part of the error, which persists; the rest is independent. false_positive: independent, and some states without reachable success
look certain at every evaluation. drift: independent, its size growing with depth. pure: the value carries no information."""
CERTAIN = 0.95
"""Value of a false positive."""


@dataclass(frozen=True)
class NoisyPolicy:
    """Policy with priors softmax of `(value of the child + sd * deviate) / temperature`; the deviate belongs to the child."""

    tree: DecisionTree
    sd: float = 0.2
    """Standard deviation of the error in a child's value, at least 0."""
    temperature: float = 0.2
    """Temperature, above 0. Low: certain of its favourite, right or not; high: indifferent."""
    missing: float = 0.0
    """Probability, drawn once for each state, that the right action (`DecisionTree.right`) is never proposed."""

    def __post_init__(self) -> None:
        if self.sd < 0 or self.temperature <= 0:
            raise UsageError(f"a policy of sd {self.sd:g} and temperature {self.temperature:g}: at least 0 and above 0")
        probability("missing", self.missing)

    def misses(self, state: str) -> bool:
        """Return whether the right action of a state is never proposed."""
        return bool(self.missing) and uniform(self.tree.seed, "missing", state) < self.missing and self.tree.right(state) is not None

    def priors(self, state: str, k: int | None = None) -> list[tuple[int, float]]:
        """Return (action, prior) of the proposed actions, the k likeliest, in order of the actions; priors sum to 1. None at an end."""
        tree, hidden = self.tree, self.tree.right(state) if self.misses(state) else None
        scores = {
            action: (tree.value(child) + self.sd * gaussian(tree.seed, "policy", child)) / self.temperature
            for action, child in enumerate(tree.children(state))
            if action != hidden
        }
        if k is not None:
            scores = {action: scores[action] for action in sorted(sorted(scores, key=lambda a: -scores[a])[:k])}
        top = max(scores.values(), default=0.0)
        weights = [math.exp(score - top) for score in scores.values()]
        total = math.fsum(weights)
        return [(action, weight / total) for action, weight in zip(scores, weights, strict=True)]

    def draw(self, state: str, index: int) -> int:
        """Return the `index`-th action sampled in a state by the priors. Raises UsageError at an end."""
        priors = self.priors(state)
        if not priors:
            raise UsageError(f"{state!r} is an end: no action can be drawn there")
        point = uniform(self.tree.seed, "sample", state, index)
        for action, prior in priors:
            point -= prior
            if point < 0:
                return action
        return priors[-1][0]


@dataclass(frozen=True)
class NoisyJudge:
    """Judge whose evaluation is the value plus an error, clipped to [0, 1]. It estimates an end like any other state."""

    tree: DecisionTree
    sd: float = 0.2
    """Standard deviation of one evaluation's error before clipping, at least 0; for `drift` that at the ends."""
    kind: Noise = "independent"
    bias: float = 0.0
    """Mean error before clipping, in [-1, 1]."""
    correlation: float = 0.5
    """Correlation of the errors of two siblings, in [0, 1], for `correlated`."""
    false_positives: float | None = None
    """Share of the states without reachable success, drawn once for each, that look certain. None: 0.05 for `false_positive`, else 0; a
    figure counts for every kind but `pure`."""
    seed: int = 0
    """Seed of the errors: another seed errs differently on the same tree."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Noise):
            raise unknown("kind of noise", self.kind, get_args(Noise))
        if self.sd < 0 or not -1 <= self.bias <= 1:
            raise UsageError(f"a judge of sd {self.sd:g} and bias {self.bias:g}: at least 0 and in [-1, 1]")
        probability("correlation", self.correlation)
        probability("false_positives", self.false_positives or 0.0)

    def judgement(self, state: str, index: int = 0) -> float:
        """Return the `index`-th evaluation of a state, in [0, 1]."""
        if self.kind == "pure":
            return uniform(self.tree.seed, "pure", self.seed, state, index)
        if self.fooled(state):
            return CERTAIN
        return min(1.0, max(0.0, self.tree.value(state) + self.error(state, index)))

    def value(self, state: str, draw: int = 0) -> float:
        """Return the same, under the name that games use."""
        return self.judgement(state, draw)

    def fooled(self, state: str) -> bool:
        """Return whether a state is a false positive: no success is reachable, and it looks certain at every evaluation."""
        rate = self.false_positives
        if rate is None:
            rate = 0.05 if self.kind == "false_positive" else 0.0
        return rate > 0 and uniform(self.tree.seed, "fooled", self.seed, state) < rate and not self.tree.wins(state)

    def error(self, state: str, index: int = 0) -> float:
        """Return the error of the `index`-th evaluation of a state before clipping. It does not apply to `pure` and to false positives."""
        match self.kind:
            case "persistent":
                return self.bias + self.sd * self._deviate("state", state)
            case "correlated":
                family, own = self._deviate("family", state.rpartition(".")[0], start=not state), self._deviate("judge", state, index)
                return self.bias + self.sd * (math.sqrt(self.correlation) * family + math.sqrt(1 - self.correlation) * own)
            case "drift":
                grown = (1 + self.tree.level(state)) / (1 + self.tree.depth)
                return grown * (self.bias + self.sd * self._deviate("judge", state, index))
            case _:
                return self.bias + self.sd * self._deviate("judge", state, index)

    def _deviate(self, what: str, *about: object, start: bool = False) -> float:
        return gaussian(self.tree.seed, what, self.seed, start, *about)
