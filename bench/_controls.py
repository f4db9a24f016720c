"""A value function that knows nothing of a state, but has the values of one that does."""

from __future__ import annotations

from exact.context import Context, Evaluation
from exact.environments.toy_draw import uniform

DEAL = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
"""Twentieths of the embedded value's own distribution, measured on the development half: see bench/miniwob.py."""


class ShuffledValue:
    """Deals those values out to states by a hash: the same state always has the same one, and it means nothing."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    async def evaluate(self, context: Context) -> Evaluation:
        """Of the state, or of the end that the last action led to."""
        state = (context.observation.fingerprint, context.history[-1].action.key if context.terminated else "")
        value = DEAL[int(uniform(self._seed, "shuffled", context.task.id, *state) * len(DEAL))]
        return Evaluation(value=value, rationale="shuffled: another state's value", samples=(value,))
