"""A value function by comparison: which states are nearer to the goal than the one they come from, and than each other."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from exact.agents.rank import LLMComparator, bradley_terry
from exact.config import ValueConfig
from exact.context import Context, Evaluation
from exact.models.base import ChatModel, Sampling


class ComparativeValue:
    """Siblings are ranked against each other and against the state before their last step, every pair in both orders.

    The value is the probability, by the Bradley-Terry strengths fitted to the answers, that a state is held nearer to the goal than the
    state before: 0.5 where the step brought nothing. So it orders siblings and tells steps that help from steps that harm; it is no
    probability of success, and states of different depth compare by their last steps alone. A task's first state is worth 0.5, unasked.
    """

    def __init__(self, model: ChatModel, config: ValueConfig, *, sampling: Sampling = Sampling()) -> None:  # noqa: B008 (frozen)
        self._comparator = LLMComparator(model, config, sampling=sampling)

    async def evaluate(self, context: Context) -> Evaluation:
        """A state against the one before. Raises ModelError; never invents a value."""
        [found] = await self.evaluate_all([context])
        return found

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """Siblings, and the state that they come from. Raises ModelError; never invents a value."""
        first = contexts[0]
        if not first.history:
            return tuple(Evaluation(value=0.5, rationale="nothing was done yet") for _ in contexts)
        last = first.history[-1]
        before = msgspec.structs.replace(
            first, observation=last.observation, history=first.history[:-1], terminated=False, tried=(), steps_left=None
        )  # fmt: skip
        wins = await self._comparator.wins([before, *contexts])
        anchor, *strengths = bradley_terry(wins)
        return tuple(
            Evaluation(
                value=strength / (strength + anchor),
                rationale=f"held nearer to the goal than the state before in {wins[i][0] / 2:.0%} of the answers",
            )
            for i, strength in enumerate(strengths, 1)
        )
