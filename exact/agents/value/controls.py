"""A value function that knows the benchmark's verdict on episodes that ended in search. It cheats, and says so: headroom, no result."""

from __future__ import annotations

from exact.context import Context, Evaluation
from exact.environments.oracle import STOP, EpisodeScores
from exact.errors import ModelError

UNDECIDED = 0.5
"""Of a state in which nothing is decided yet."""


class OracleValue:
    """The verdict on an episode that has ended, or that would win if the agent stopped now; 0.5 elsewhere.

    Its environments must be `telling` with the same table.
    """

    def __init__(self, verdicts: EpisodeScores) -> None:
        self._verdicts = verdicts

    async def evaluate(self, context: Context) -> Evaluation:
        """Raises ModelError where no environment has told how the episode ended."""
        done = (context.task.id, *(taken.action.key for taken in context.history if not taken.error))
        if not context.terminated:
            stopped = self._verdicts.get((*done, STOP))
            if stopped is None:
                return Evaluation(value=UNDECIDED, rationale="oracle: the episode has not ended")
            return Evaluation(
                value=max(UNDECIDED, stopped), rationale=f"oracle: if the agent stopped here, the verdict would be {stopped:g}", told=True
            )
        if done not in self._verdicts:
            raise ModelError(
                "the oracle was not told how this episode ended: open its environments with Agent.seeing, and do not resume its runs"
            )
        return Evaluation(value=self._verdicts[done], rationale="oracle: the benchmark's own verdict", told=True)


class ConstantValue:
    """The same value for every state."""

    def __init__(self, value: float = 0.5) -> None:
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"a value of {value} is not a probability: give one in [0, 1]")
        self.value = value

    async def evaluate(self, context: Context) -> Evaluation:
        """That value, whatever the state."""
        return Evaluation(value=self.value, rationale="constant", samples=(self.value,))
