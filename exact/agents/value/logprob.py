"""A value function by one token: the probability of yes against no, from the likeliest tokens that the server lists.

Source of the formula: Kadavath et al., Language Models (Mostly) Know What They Know (2022): P(True) from the tokens' probabilities.

A trained value function: a classifier behind an HTTP endpoint that returns a probability.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial

import msgspec

from exact.agents.parse import parse_yes_or_no
from exact.agents.request import state_request
from exact.agents.value.samples import Order, ValueSample, aggregate, counted, sample_until_precise
from exact.config import ValueConfig, ViewConfig
from exact.context import Context, Evaluation
from exact.errors import AnswerError, ModelError
from exact.models.base import ChatModel, ChatRequest, Choice, Sampling, TokenChance
from exact.prompts.ask import asks, read_choices

LISTED = 20
"""Likeliest tokens that are requested. Spellings of yes and no share the probability between them."""

_WORD_TOKENS = 8
"""Most tokens of an answer that is counted."""
_NO_LETTERS = re.compile(r"[\W\d_Ġ▁Ċ]+")
"""Matches the characters around a word in a token; some servers write spaces and line ends as Ġ, ▁ and Ċ."""


class LogprobValue:
    """P(yes) / (P(yes) + P(no)) of the first token of an answer. One call, one token.

    A server that lists no likeliest tokens is asked for `config.samples` answers in words, and the value is the share of yes; the rationale
    says so. More are then drawn while the standard error exceeds `config.threshold`.
    """

    def __init__(self, model: ChatModel, config: ValueConfig, view: ViewConfig = ViewConfig(), *, sampling: Sampling = Sampling()) -> None:  # noqa: B008 (frozen)
        self._model, self._config, self._view, self._sampling = model, config, view, sampling

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the probability of yes.

        Raises ModelError, AnswerError if neither yes nor no is among the likeliest tokens; never invents a value.
        """
        return aggregate(await sample_until_precise(partial(self._samples, context), self._config))

    async def _samples(self, context: Context, more: int, count: int) -> list[ValueSample]:
        request = state_request(
            "value_logprob", context, self._view, self._sampling, role=self._config.role, samples=count, model=self._model.name,
            more=more, changes=self._config.changes, arguments=(),
        )  # fmt: skip
        return await read_verdicts(self._model, request, seed=context.seed, first=not more)


async def read_verdicts(
    model: ChatModel, request: ChatRequest, *, seed: int, first: bool = True, judge: int = 0, order: Order = ""
) -> list[ValueSample]:
    """Return one exact sample from the probabilities of yes and no.

    If the server lists no likeliest tokens, return `sampling.n` counted ones. Without `first` the lack is known, and answers are counted at
    once. Raises ModelError, AnswerError.
    """
    if first:
        [(_, value)] = await read_choices(model, one_token(request), _probability, seed=seed)
        if value is not None:
            return [ValueSample(value, f"yes with probability {value:.2f}", judge, order, exact=True)]
    sampling = msgspec.structs.replace(request.sampling, logprobs=False, max_tokens=_WORD_TOKENS)
    answers = await read_choices(model, msgspec.structs.replace(request, sampling=sampling), _first_word, seed=seed)
    note = f"counted, because {model.name} listed no likeliest tokens"
    return counted([ValueSample(float(yes), f"{'yes' if yes else 'no'}, {note}", judge, order) for _, yes in answers], sampling.n)


def one_token(request: ChatRequest) -> ChatRequest:
    """Return the request for one token, with settings that leave the probabilities as the model has them."""
    sampling = msgspec.structs.replace(
        request.sampling, n=1, temperature=1.0, top_p=1.0, max_tokens=1, logprobs=True, top_logprobs=LISTED
    )  # fmt: skip
    return msgspec.structs.replace(request, sampling=sampling)


def _probability(choice: Choice) -> float | None:
    """Return the probability of yes in an answer; None if the server lists no likeliest tokens. Raises AnswerError."""
    return yes_probability(choice.top_logprobs[0]) if choice.top_logprobs else None


def _first_word(choice: Choice) -> bool:
    """Return whether an answer begins with yes; the rest of it may be cut off. Raises AnswerError."""
    return parse_yes_or_no(choice.text)


@asks("write the word yes or the word no, and nothing else")
def yes_probability(listed: Sequence[TokenChance]) -> float:
    """Return P(yes) / (P(yes) + P(no)), each summed over its spellings: `yes`, ` Yes`, `YES.`.

    Raises AnswerError if neither is listed.
    """
    logprobs: dict[str, list[float]] = {"yes": [], "no": []}
    for token in listed:
        word = _NO_LETTERS.sub("", token.text).casefold()
        if word in logprobs:
            logprobs[word].append(token.logprob)
    if not any(logprobs.values()):
        likeliest = f"{listed[0].text!r}" if listed else "nothing"
        raise AnswerError(
            f"the answer begins with neither yes nor no but with {likeliest}: answer with one of these words "
            "(a model that reasons first is no judge of one token: turn its reasoning off, or set value.kind to llm)"
        )
    highest = max(max(each) for each in logprobs.values() if each)
    yes, no = (math.fsum(math.exp(each - highest) for each in logprobs[word]) for word in ("yes", "no"))
    return yes / (yes + no)


class TrainedValue:
    """One call, one number. The prompt is `value`, and the model must be a classifier (`api: classify`, see docs/models.md)."""

    def __init__(self, model: ChatModel, config: ValueConfig, view: ViewConfig = ViewConfig()) -> None:  # noqa: B008 (frozen)
        self._model, self._config, self._view = model, config, view

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the classifier's probability.

        Raises ModelError, also if the answer is not a number in [0, 1].
        """
        request = state_request(
            "value", context, self._view, Sampling(temperature=0.0), role=self._config.role, samples=1, model=self._model.name,
            changes=self._config.changes,
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
