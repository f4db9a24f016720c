"""A value function that asks a chat model for a grade."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from exact.agents import form
from exact.agents.base import evaluate_each
from exact.agents.parse import parse_grade, parse_grades
from exact.agents.request import state_request
from exact.agents.siblings import view_siblings
from exact.agents.value.samples import ValueSample, aggregate, grade_scale, sample_until_precise
from exact.config import ValueConfig
from exact.context import Context, Evaluation
from exact.models.base import ChatModel, Sampling
from exact.prompts.ask import ask


class LLMValue:
    """Draws grades and takes their mean, on the scale `config.grades`.

    More grades are drawn while the standard error exceeds `config.threshold`. Prompt `value` grades at once; with `value_debate` the model
    first argues both sides in the same answer. A terminated context is evaluated from the last observation before its end and the final
    action: it contains nothing else.
    """

    def __init__(
        self,
        model: ChatModel,
        config: ValueConfig,
        *,
        sampling: Sampling = Sampling(),  # noqa: B008 (frozen)
        prompt: Literal["value", "value_debate"] = "value",
    ) -> None:
        """Configure the value function. `sampling` sets how grades are drawn; their number is `config.samples`."""
        self._model, self._config, self._sampling, self._prompt = model, config, sampling, prompt
        self._scale = grade_scale(config.grades)

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the mean of the grades that parse.

        Raises ModelError; never invents a value.
        """
        return aggregate(await sample_until_precise(partial(self._samples, context), self._config))

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """Return evaluations of siblings from one request with prompt `value_siblings`.

        Contexts that are not siblings are evaluated one by one. Raises ModelError; never invents a value.
        """
        if (together := view_siblings(contexts, self._config, self._model.name)) is None:
            return await evaluate_each(self, contexts)
        request = together.request("value_siblings", self._sampling, samples=self._config.samples)
        parse = partial(parse_grades, grades=self._scale, count=len(contexts))
        answers = await ask(self._model, request, parse, seed=contexts[0].seed)
        return tuple(aggregate([ValueSample(grades[i].value, grades[i].reasoning) for grades in answers]) for i in range(len(contexts)))

    async def _samples(self, context: Context, more: int, count: int) -> list[ValueSample]:
        request = state_request(
            self._prompt, context, self._config, self._sampling, role=self._config.role, samples=count, model=self._model.name, more=more,
            form=form.GRADE,
        )  # fmt: skip
        graded = await ask(self._model, request, partial(parse_grade, grades=self._scale), seed=context.seed)
        return [ValueSample(one.value, one.reasoning) for one in graded]
