"""A trained value function: a classifier behind an HTTP endpoint that returns a probability."""

from __future__ import annotations

import msgspec

from exact.agents.request import state_request
from exact.agents.value.samples import ValueSample, aggregate
from exact.config import ValueConfig
from exact.context import Context, Evaluation
from exact.errors import ModelError
from exact.models.base import ChatModel, Sampling


class TrainedValue:
    """One call, one number. The prompt is `value`, and the model must be a classifier (`api: classify`, see docs/models.md)."""

    def __init__(self, model: ChatModel, config: ValueConfig) -> None:
        self._model, self._config = model, config

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the classifier's probability.

        Raises ModelError, also if the answer is not a number in [0, 1].
        """
        request = state_request(
            "value", context, self._config, Sampling(temperature=0.0), role=self._config.role, samples=1, model=self._model.name
        )  # fmt: skip
        answer = await self._model.complete(request)
        text = answer.choices[0].text
        try:
            value = msgspec.convert(text, float, strict=False)
        except msgspec.ValidationError:
            value = -1.0
        if not 0.0 <= value <= 1.0:
            raise ModelError(
                f"{self._model.name} answers {text[:60]!r}, which is no probability: is it a classifier (models.value.api: classify)?"
            )
        return aggregate([ValueSample(value, f"{self._model.name} gives {value:.2f}")])
