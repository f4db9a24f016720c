"""Control value functions: a constant as the lower bound, an oracle as the upper bound.

The oracle reads the benchmark's score of episodes that ended in search. It measures headroom, is marked in every table, and is not a
result.

Value function that reads the environment's own rewards, as a search in reinforcement learning does.

It is for environments that give a reward for each step, such as those of Gymnasium. It is refused on the tasks of a benchmark, and runs
that used it are marked.
"""

from __future__ import annotations

import math

from exact.context import Context, Evaluation
from exact.environments.oracle import STOP, EpisodeScores
from exact.environments.reward import Totals
from exact.errors import ModelError, UsageError

UNDECIDED = 0.5
"""Value of a state whose episode has not ended and would not succeed if it ended now."""


class OracleValue:
    """Returns the benchmark's score of an ended episode, or of stopping now if that is better than 0.5; otherwise 0.5.

    Its environments must be opened with the same table of scores.
    """

    def __init__(self, episode_scores: EpisodeScores) -> None:
        self._verdicts = episode_scores

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the benchmark's score of a state.

        Raises ModelError if no environment recorded how the episode ended.
        """
        done = (context.task.id, *(taken.action.key for taken in context.history if not taken.error))
        if not context.terminated:
            stopped = self._verdicts.get((*done, STOP))
            if stopped is None:
                return Evaluation(value=UNDECIDED, rationale="oracle: the episode has not ended")
            return Evaluation(
                value=max(UNDECIDED, stopped), rationale=f"oracle: if the agent stopped here, the score would be {stopped:g}", informed=True
            )
        if done not in self._verdicts:
            raise ModelError(
                "no score is recorded for this ended episode: open the oracle's environments with Agent.informed_factory, "
                "and do not resume its runs"
            )
        return Evaluation(value=self._verdicts[done], rationale="oracle: the benchmark's own score", informed=True)


class ConstantValue:
    """Returns the same value for every state, so that a search has only its policy's priors."""

    def __init__(self, value: float = 0.5) -> None:
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"a value of {value} is not a probability: give one in [0, 1]")
        self.value = value

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the constant value."""
        return Evaluation(value=self.value, rationale="constant", samples=(self.value,))


class RewardValue:
    """Returns the total reward since the task's start, mapped from [low, high] onto [0, 1].

    It adds no estimate of the rewards to come: these are found by searching on. If two actions are worth the same, the search commits the
    one with more below it, so not one that ends the episode.
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
        """Return the value of the rewards on the way to a state. Raises ModelError if no environment recorded them."""
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
