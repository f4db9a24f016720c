"""Value function that reads the environment's own rewards, as a search in reinforcement learning does.

It is for environments that give a reward for each step, such as those of Gymnasium. It is refused on the tasks of a benchmark, and runs
that used it are marked.
"""

from __future__ import annotations

import math

from exact.context import Context, Evaluation
from exact.environments.reward import Totals
from exact.errors import ModelError, UsageError


class RewardValue:
    """Returns the total reward since the task's start, mapped from [low, high] onto [0, 1].

    It adds no estimate of the rewards to come: these are found by searching on. Where two actions are worth the same, the search commits
    the one with more below it, so not one that ends the episode.
    """

    def __init__(self, low: float = 0.0, high: float = 1.0) -> None:
        """Create a value function. `low`, `high`: total rewards that are worth 0 and 1; those outside are worth as much.

        Raises UsageError unless both are finite and `low` is below `high`.
        """
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise UsageError(f"invalid range of rewards {low:g} to {high:g}: give two numbers, the lower one first")
        self._low, self._high = low, high
        self.totals = Totals()
        """Total rewards that the environments recorded, by path."""

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the value of the rewards on the way to a state. Raises ModelError where no environment recorded them."""
        done = (context.task.id, *(taken.action.key for taken in context.history if not taken.error))
        if context.unseen:
            done = done[:-1]
        if len(done) > 1 and done not in self.totals:
            raise ModelError(
                "no reward is recorded for this state: rewards are not kept in a run folder, so start a new run instead of resuming this"
            )
        total = self.totals.get(done, 0.0)
        value = min(max((total - self._low) / (self._high - self._low), 0.0), 1.0)
        return Evaluation(value=value, rationale=f"total reward {total:g}", samples=(value,))
