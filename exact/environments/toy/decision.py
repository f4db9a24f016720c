"""A decision tree whose answer is known, in memory: no environment, no model, no clock.

Benchmarks drive it directly by ask/tell. `noise` adds a policy and a judge with configured errors; `decision_environment` makes a toy
environment of it.

tree = DecisionTree(branching=4, depth=4, seed=7)
tree.children(""), tree.value("2"), tree.outcome("2.0.3.1")
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from exact.environments.toy.graph import index, probability, uniform
from exact.errors import UsageError


@dataclass(frozen=True)
class DecisionTree:
    """Tree with `branching` actions in each state and `depth` actions to an end, which succeeds (1) or fails (0).

    No step can be undone. A state is its path: `""` is the start, `"2.0"` the state after actions 2 and 0. Outcomes are keyed by (seed,
    end). Known answer: the path to `sure` is worth 1.0, whatever else is drawn; with `rate` 0 no other end is worth anything.
    """

    branching: int
    """Actions of a state, at least 2."""
    depth: int
    """Actions to an end, at least 1."""
    seed: int = 0
    rate: float = 0.05
    """Probability that an end succeeds, besides `sure`."""
    share: float = 0.5
    """Weight of the best child in a state's value; the rest is the mean of all children. 1: the best reachable; 0: pure chance."""
    _values: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise UsageError for settings that make no tree."""
        if self.branching < 2 or self.depth < 1:
            raise UsageError(f"a decision tree of branching {self.branching} and depth {self.depth}: at least 2 and 1")
        probability("rate", self.rate)
        probability("share", self.share)

    def level(self, state: str) -> int:
        """Return the number of actions that lead to a state."""
        return state.count(".") + 1 if state else 0

    def is_end(self, state: str) -> bool:
        """Return whether the episode is over in a state."""
        return self.level(state) == self.depth

    def child(self, state: str, action: int) -> str:
        """Return the state that an action, 0 .. branching - 1, leads to."""
        return f"{state}.{action}" if state else str(action)

    def children(self, state: str) -> list[str]:
        """Return the states that the actions lead to, in order; none at an end."""
        return [] if self.is_end(state) else [self.child(state, action) for action in range(self.branching)]

    @functools.cached_property
    def sure(self) -> str:
        """The end that succeeds whatever is drawn."""
        return ".".join(str(index(self.branching, self.seed, "sure", step)) for step in range(self.depth))

    def outcome(self, end: str) -> float:
        """Return whether an end succeeds: 1.0 or 0.0. Raises UsageError for a state that is not an end."""
        if not self.is_end(end):
            raise UsageError(f"{end!r} is no end of a tree {self.depth} deep: only ends have an outcome")
        return float(end == self.sure or uniform(self.seed, "end", end) < self.rate)

    def value(self, state: str) -> float:
        """Return a faultless evaluation in [0, 1]: 0 exactly if no success is reachable, the outcome at an end.

        The first call for a state visits everything below it: branching ** (depth - level) ends.
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
        """Return whether a successful end is still reachable."""
        return not state or f"{self.sure}.".startswith(f"{state}.") or self.value(state) > 0

    def right(self, state: str) -> int | None:
        """Return the action whose child has the largest value, the first of equals; None at an end and if no success is reachable."""
        if self.is_end(state) or not self.wins(state):
            return None
        values = [self.value(child) for child in self.children(state)]
        return values.index(max(values))
