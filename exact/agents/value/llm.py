"""A value function that asks a chat model for a grade."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from exact.agents.base import evaluate_each
from exact.agents.grades import grade_scale
from exact.agents.parse import parse_grade, parse_grades
from exact.agents.request import state_request
from exact.agents.siblings import view_siblings
from exact.agents.value.samples import ValueSample, aggregate, sample_until_precise
from exact.config import ValueConfig
from exact.context import Context, Evaluation
from exact.models.ask import ask
from exact.models.base import ChatModel, Sampling


class LLMValue:
    """Draws judgements and takes their mean; more of them where they part by more than `config.threshold`. The scale is `config.grades`.

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
        self._scale = grade_scale(config.grades)

    async def evaluate(self, context: Context) -> Evaluation:
        """The mean of the judgements that parse. Raises ModelError; never invents a value."""
        return aggregate(await sample_until_precise(partial(self._opinions, context), self._config))

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """Siblings in one question, prompt `value_siblings`; what are none, one by one. Raises ModelError; never invents a value."""
        if (together := view_siblings(contexts, self._config, self._model.name)) is None:
            return await evaluate_each(self, contexts)
        request = together.request("value_siblings", self._sampling, samples=self._config.samples)
        parse = partial(parse_grades, grades=self._scale, count=len(contexts))
        heard = await ask(self._model, request, parse, seed=contexts[0].seed)
        return tuple(aggregate([ValueSample(said[i].value, said[i].reasoning) for said in heard]) for i in range(len(contexts)))

    async def _opinions(self, context: Context, more: int, count: int) -> list[ValueSample]:
        request = state_request(
            self._prompt, context, self._config, self._sampling, role=self._config.role, samples=count, model=self._model.name, more=more
        )  # fmt: skip
        judged = await ask(self._model, request, partial(parse_grade, grades=self._scale), seed=context.seed)
        return [ValueSample(one.value, one.reasoning) for one in judged]
