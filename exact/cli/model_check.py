"""Test of a model's features by one cheap call: `exact doctor --model NAME`."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from exact.config import ModelConfig
from exact.errors import ModelError
from exact.models.base import ChatAnswer, ChatModel, ChatRequest, Image, Message, Sampling, Text
from exact.models.wire import NO_PICTURES

_ASKED = 2
_WORDS = 'Answer with this JSON object and nothing else, filled in: {"colour": "<colour of the picture, or none>"}'


class ModelReport(msgspec.Struct, frozen=True, kw_only=True):
    """Features of a model, or the reason why it did not answer."""

    model: str
    error: str = ""
    """Reason why the model did not answer; the other fields are then meaningless."""
    n: int = 0
    """Number of answers to one request for two."""
    logprobs: bool = False
    token_ids: bool = False
    images: str = ""
    """`seen`, `accepted, colour not recognised` or `refused`."""
    json: bool = False
    """Whether the answer was JSON, as requested."""
    seconds: float = 0.0
    """Seconds from request to answer."""
    input_price: float | None = None
    """US dollars for a million tokens; None where the price list lacks the model."""
    output_price: float | None = None
    cost: float | None = None
    """US dollars for the answered call."""

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the finding of each row of the text output."""
        yield "model", self.error or self.model
        if self.error:
            return
        yield "n", f"{self.n} of {_ASKED} answers in one request{'' if self.n == _ASKED else ': each further answer takes a request'}"
        yield "logprobs", f"{_yes(self.logprobs)}; token ids: {_yes(self.token_ids)}"
        yield "images", self.images
        yield "JSON", _yes(self.json)
        yield "latency", f"{self.seconds:.2f} s"
        yield "price", self._price()

    def _price(self) -> str:
        if self.input_price is None or self.output_price is None:
            return "unknown: give models.policy.price in the configuration to use a limit on money"
        cost = "" if self.cost is None else f"; this call ${self.cost:.6f}"
        return f"${self.input_price:g} in, ${self.output_price:g} out for a million tokens{cost}"


async def check_model(config: ModelConfig) -> ModelReport:
    """Request two answers, log-probabilities, JSON and a description of a picture at once. Refused features are tried one by one.

    The report has an error where the model does not answer a plain request either. Raises UsageError for a missing key.
    """
    from exact.models.openai import OpenAIModel

    model = OpenAIModel(config)
    try:
        return await _checked(model)
    finally:
        await model.close()


async def _checked(model: ChatModel) -> ModelReport:
    try:
        return await _asked(model, image=True, logprobs=True)
    except ModelError as error:
        refused = str(error)
    try:
        plain = await _asked(model, image=False, logprobs=False)
    except ModelError:
        return ModelReport(model=model.name, error=refused)
    for image, logprobs in ((True, False), (False, True)):
        with suppress(ModelError):  # the model answers plain requests, so it refuses this feature
            return await _asked(model, image=image, logprobs=logprobs)
    return plain


async def _asked(model: ChatModel, *, image: bool, logprobs: bool) -> ModelReport:
    began = time.perf_counter()
    answer = await model.complete(_question(image=image, logprobs=logprobs))
    return _report(model, answer, image, time.perf_counter() - began)


def _question(*, image: bool, logprobs: bool) -> ChatRequest:
    parts: tuple[Text | Image, ...] = (Text(_WORDS), *((Image(_red()),) if image else ()))
    sampling = Sampling(n=_ASKED, max_tokens=200, logprobs=logprobs)
    return ChatRequest(messages=(Message("user", parts),), sampling=sampling, role="policy", prompt="doctor")


def _report(model: ChatModel, answer: ChatAnswer, image: bool, seconds: float) -> ModelReport:
    first, price = answer.choices[0], model.price
    seen = "seen" if "red" in first.text.lower() else "accepted, colour not recognised"
    return ModelReport(
        model=f"{model.name} (answers as {answer.model})",
        n=_ASKED if isinstance(json.loads(answer.raw), dict) else 1,
        logprobs=first.logprobs is not None,
        token_ids=first.token_ids is not None,
        images="refused" if not image or NO_PICTURES in answer.notes else seen,
        json=_is_json(first.text),
        seconds=seconds,
        input_price=price.input if price else None,
        output_price=price.output if price else None,
        cost=answer.usage.cost,
    )


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _red() -> bytes:
    """Return a small red PNG."""
    from PIL import Image as Picture

    buffer = io.BytesIO()
    Picture.new("RGB", (32, 32), "red").save(buffer, "PNG")
    return buffer.getvalue()


def _yes(found: bool) -> str:
    return "yes" if found else "no"
