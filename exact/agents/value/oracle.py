"""A value function that knows the benchmark's verdict on episodes that ended in search. It cheats, and says so: headroom, no result."""

from __future__ import annotations

from exact.context import Context, Evaluation
from exact.environments.verdicts import Verdicts
from exact.errors import ModelError


class OracleValue:
    """The verdict on an episode that has ended, 0.5 elsewhere. Its worlds must be `TellingWorlds` with the same table."""

    def __init__(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts

    async def evaluate(self, context: Context) -> Evaluation:
        """Raises ModelError where no world has told how the episode ended."""
        if not context.terminated:
            return Evaluation(value=0.5, rationale="oracle: the episode has not ended")
        done = tuple(taken.action.key for taken in context.history if not taken.error)
        if (context.task.id, *done) not in self._verdicts:
            raise ModelError(
                "the oracle was not told how this episode ended: open its worlds with Agent.seeing, and do not resume its runs"
            )
        return Evaluation(value=self._verdicts[(context.task.id, *done)], rationale="oracle: the benchmark's own verdict")
