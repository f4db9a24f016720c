"""A value function by comparison of states with their parent and with each other."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from exact.agents.rank import LLMComparator, bradley_terry
from exact.config import ValueConfig
from exact.context import Context, Evaluation
from exact.models.base import ChatModel, Sampling


class ComparativeValue:
    """Ranks siblings and their parent state against each other, every pair in both orders.

    The value is the probability, by Bradley-Terry strengths fitted to the answers, that a state is preferred to its parent: 0.5 means no
    progress. The value orders siblings and separates helpful steps from harmful ones. It is not a probability of success, and states of
    different depth compare only by their last steps. A task's first state has value 0.5 without a model call.
    """

    def __init__(self, model: ChatModel, config: ValueConfig, *, sampling: Sampling = Sampling()) -> None:  # noqa: B008 (frozen)
        self._comparator = LLMComparator(model, config, sampling=sampling)

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the evaluation of a state against its parent.

        Raises ModelError; never invents a value.
        """
        [found] = await self.evaluate_all([context])
        return found

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """Return the evaluations of siblings against their common parent.

        Raises ModelError; never invents a value.
        """
        first = contexts[0]
        if not first.history:
            return tuple(Evaluation(value=0.5, rationale="nothing was done yet") for _ in contexts)
        last = first.history[-1]
        before = msgspec.structs.replace(
            first, observation=last.observation, history=first.history[:-1], terminated=False, unseen=False, tried=(), steps_left=None
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
