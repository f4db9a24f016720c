"""A value function that asks a chat model."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from exact.agents.parse import Judged, parse_verdict
from exact.config import ValueConfig
from exact.context import Context, Evaluation
from exact.models.ask import ask
from exact.models.base import ChatModel, ChatRequest, Sampling
from exact.prompts.library import render
from exact.reflection.lesson import action_label


class LLMValue:
    """Draws judgements and takes their mean. The prompt is `value`, the scale `exact.agents.parse.GRADES`.

    A context that has terminated is judged from the last observation before its end and the action taken: nothing else is in it.
    """

    def __init__(self, model: ChatModel, config: ValueConfig, *, sampling: Sampling = Sampling()) -> None:  # noqa: B008 (frozen)
        """`sampling` says how judgements are drawn; their number is `config.samples`."""
        self._model, self._config = model, config
        self._sampling = msgspec.structs.replace(sampling, n=config.samples)

    async def evaluate(self, context: Context) -> Evaluation:
        """The mean of the judgements that parse. Raises ModelError; never invents a value."""
        return evaluation(await ask(self._model, self._request(context), parse_verdict, seed=context.seed))

    def _request(self, context: Context) -> ChatRequest:
        prompt = render("value", context=context, label=action_label, history=self._config.history)
        screenshot = context.observation.screenshot
        images = (screenshot,) if self._config.images and screenshot is not None else ()
        draw = -1 - context.draw if context.confirms else context.draw
        return ChatRequest(
            messages=prompt.messages(*images), sampling=self._sampling, role="value", node=context.node, prompt=prompt.id, draw=draw
        )


def evaluation(judged: Sequence[Judged]) -> Evaluation:
    """Mean and standard deviation of some judgements, with the reasoning of the one nearest to the mean (the first of equals)."""
    values = tuple(one.value for one in judged)
    mean = statistics.fmean(values)
    nearest = min(judged, key=lambda one: abs(one.value - mean))
    return Evaluation(value=mean, rationale=nearest.reasoning, samples=values, disagreement=statistics.pstdev(values, mean))
