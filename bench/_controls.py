"""A control: a value function with the value distribution of another one, but no information about the state."""

from __future__ import annotations

from exact.context import Context, Evaluation
from exact.environments.toy.graph import uniform

DEAL = (0.05, 0.05, 0.05, 0.05, 0.08, 0.08, 0.08, 0.08, 0.09, 0.16, 0.27, 0.32, 0.47, 0.61, 0.61, 0.75, 0.75, 0.84, 0.95, 0.95)
"""Twentieths of the embedded value's own distribution: 86 judgements of rmcts on tasks of the development half, seed 101."""


class ShuffledValue:
    """Deals those values out to states by a hash: the same state always has the same one, and it means nothing."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    async def evaluate(self, context: Context) -> Evaluation:
        """Evaluate the state, or the end that the last action led to."""
        state = (context.observation.fingerprint, context.history[-1].action.key if context.terminated else "")
        value = DEAL[int(uniform(self._seed, "shuffled", context.task.id, *state) * len(DEAL))]
        return Evaluation(value=value, rationale="shuffled: another state's value", samples=(value,))
