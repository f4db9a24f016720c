"""A value function that asks a chat model for a grade."""

from __future__ import annotations

from functools import partial
from typing import Literal

from exact.agents.grades import grades
from exact.agents.parse import parse_verdict
from exact.agents.value.opinions import Opinion, evaluation
from exact.agents.request import about
from exact.config import ValueConfig
from exact.context import Context, Evaluation
from exact.models.ask import ask
from exact.models.base import ChatModel, Sampling


class LLMValue:
    """Draws judgements and takes their mean. The scale is `config.grades`.

    prompt: `value` judges at once; `value_debate` has the model argue both sides before it does, in one answer. A context that has
    terminated is judged from the last observation before its end and the action taken: nothing else is in it.
    """

    def __init__(
        self,
        model: ChatModel,
        config: ValueConfig,
        *,
        sampling: Sampling = Sampling(),  # noqa: B008 (frozen)
        prompt: Literal["value", "value_debate"] = "value",
    ) -> None:
        """`sampling` says how judgements are drawn; their number is `config.samples`."""
        self._model, self._config, self._sampling, self._prompt = model, config, sampling, prompt
        self._parse = partial(parse_verdict, grades=grades(config.grades))

    async def evaluate(self, context: Context) -> Evaluation:
        """The mean of the judgements that parse. Raises ModelError; never invents a value."""
        request = about(self._prompt, context, self._config, self._sampling, role=self._config.role, samples=self._config.samples)
        judged = await ask(self._model, request, self._parse, seed=context.seed)
        return evaluation([Opinion(one.value, one.reasoning) for one in judged])
