"""Control value functions: a constant as the lower bound, an oracle as the upper bound.

The oracle reads the benchmark's score of episodes that ended in search. It measures headroom, is marked in every table, and is not a
result.
"""

from __future__ import annotations

from exact.context import Context, Evaluation
from exact.environments.oracle import STOP, EpisodeScores
from exact.errors import ModelError

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
