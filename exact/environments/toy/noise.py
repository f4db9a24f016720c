"""A policy and a judge of a decision tree with configured errors.

Every draw is keyed by (seed, kind, state, index): nothing depends on the order of calls, and equal questions have equal answers. In
memory and synchronous; `decision_environment` makes agents of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from exact.environments.toy.decision import DecisionTree
from exact.environments.toy.draw import gaussian, probability, uniform
from exact.errors import UsageError, unknown

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
