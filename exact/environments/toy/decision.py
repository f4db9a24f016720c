"""A decision tree whose answer is known, in memory: no environment, no model, no clock.

Benchmarks drive it directly by ask and tell. `toy_noise` adds a policy and a judge that are wrong by as much as they are told to be;
`toy_decision_world` puts an environment over it.

tree = DecisionTree(branching=4, depth=4, seed=7)
tree.children(""), tree.value("2"), tree.outcome("2.0.3.1")
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from exact.environments.toy.draw import index, probability, uniform
from exact.errors import UsageError


@dataclass(frozen=True)
class DecisionTree:
    """`branching` actions in each state, `depth` actions to an end, which succeeds (1) or fails (0). No step can be undone.

    A state is its path: `""` is the start, `"2.0"` the state after actions 2 and 0. Outcomes are keyed by (seed, end).
    Known answer: the way to `sure` is worth 1.0, whatever else is drawn; with `rate` 0 no other end is worth anything.
    """

    branching: int
    """At least 2."""
    depth: int
    """At least 1."""
    seed: int = 0
    rate: float = 0.05
    """Probability that an end succeeds, besides the one that does in any case."""
    share: float = 0.5
    """A state's value is that much of the best child's and the rest of the children's mean. 1: what can be reached; 0: by pure chance."""
    _values: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises UsageError for what is no tree."""
        if self.branching < 2 or self.depth < 1:
            raise UsageError(f"a decision tree of branching {self.branching} and depth {self.depth}: at least 2 and 1")
        probability("rate", self.rate)
        probability("share", self.share)

    def level(self, state: str) -> int:
        """How many actions lead to a state."""
        return state.count(".") + 1 if state else 0

    def is_end(self, state: str) -> bool:
        """Whether the episode is over there."""
        return self.level(state) == self.depth

    def child(self, state: str, action: int) -> str:
        """The state that an action, 0 .. branching - 1, leads to."""
        return f"{state}.{action}" if state else str(action)

    def children(self, state: str) -> list[str]:
        """The states that the actions lead to, in order; none at an end."""
        return [] if self.is_end(state) else [self.child(state, action) for action in range(self.branching)]

    @functools.cached_property
    def sure(self) -> str:
        """The end that succeeds whatever is drawn."""
        return ".".join(str(index(self.branching, self.seed, "sure", step)) for step in range(self.depth))

    def outcome(self, end: str) -> float:
        """Whether an end succeeds: 1.0 or 0.0. Raises UsageError for a state that is no end."""
        if not self.is_end(end):
            raise UsageError(f"{end!r} is no end of a tree {self.depth} deep: only ends have an outcome")
        return float(end == self.sure or uniform(self.seed, "end", end) < self.rate)

    def value(self, state: str) -> float:
        """What a faultless judge says, in [0, 1]: 0 exactly where nothing can be won any more; at an end its outcome.

        The first call for a state visits all that lies below it: branching ** (depth - level) ends.
        """
        known = self._values.get(state)
        if known is None:
            below = [self.value(child) for child in self.children(state)]
            known = self._mixed(max(below), sum(below) / len(below)) if below else self.outcome(state)
            self._values[state] = known
        return known

    def _mixed(self, best: float, mean: float) -> float:
        return min(best, mean + self.share * (best - mean))

    def wins(self, state: str) -> bool:
        """Whether an end that succeeds can still be reached."""
        return not state or f"{self.sure}.".startswith(f"{state}.") or self.value(state) > 0

    def right(self, state: str) -> int | None:
        """The action whose child has the largest value, the first of equals; None at an end and where nothing can be won."""
        if self.is_end(state) or not self.wins(state):
            return None
        values = [self.value(child) for child in self.children(state)]
        return values.index(max(values))
