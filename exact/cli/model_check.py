"""Test of a model's features by a few short calls: `exact doctor --model NAME`.

Test of the forms in which a model's answers can be read: lines, or JSON by a schema.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from exact.agents.form import ACTIONS
from exact.agents.parse import parse_actions
from exact.agents.request import chat_request
from exact.config import ModelConfig
from exact.config.models import Structured
from exact.errors import ActionError, ModelError
from exact.models.base import ChatAnswer, ChatRequest, Choice, Image, Message, Sampling, Text
from exact.models.endpoint import ServerFacts, server_facts
from exact.models.openai import OpenAIModel, sampling
from exact.models.providers import ModelCapabilities, Provider, api_of, serving
from exact.models.wire import NO_PICTURES
from exact.prompts.example import ACTIONS as VERBS
from exact.prompts.example import example_context, example_inputs
from exact.prompts.library import describe_prompt, render_prompt

SAMPLES, TOP = 8, 20
"""Answers that are asked for in one request, and likeliest tokens at each position."""
SECRET = "qx7"
"""Word that a model writes only if the server constrains its answer."""

Followed = Literal["yes", "refused", "ignored", "not known: the answer was cut off"]

_SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": [SECRET]}},
    "required": ["word"],
    "additionalProperties": False,
}
_LONG, _SHORT = 200, 8
"""Most tokens of an answer: of a constrained one, before which a model may reason, and of another."""
_LISTED = 5
"""Most models that are named."""
_HOSTED = ("openai", "azure", "azure_token")


class ModelReport(msgspec.Struct, frozen=True, kw_only=True):
    """Features of a model, or the reason that it did not answer."""

    model: str
    error: str = ""
    """Reason that the model did not answer the plainest question; the fields below `server` are then meaningless."""
    server: ServerFacts = ServerFacts()
    n: int = 0
    """Answers to one request for `SAMPLES`. 1: the server refuses several, or gives one."""
    logprobs: bool = False
    token_ids: bool = False
    top_logprobs: int = 0
    """Likeliest tokens that the server lists at each position; 0: none."""
    images: str = ""
    """`seen`, `accepted, colour not recognised` or `refused`."""
    json_schema: Followed = "refused"
    """Whether the answer kept to a JSON Schema."""
    grammar: Followed = "refused"
    """Whether the answer kept to a grammar."""
    forms: FormReport | None = None
    """Forms in which a policy's answers were read. None: the model did not answer a policy's prompt."""
    seconds: float = 0.0
    """Seconds from the plain request to its answer."""
    input_price: float | None = None
    """US dollars for a million tokens; None if the price list lacks the model."""
    output_price: float | None = None
    cost: float | None = None
    """US dollars for the answered calls; None if the price is unknown."""

    @property
    def faulty(self) -> frozenset[str]:
        """Names of the rows that say why an agent cannot use the model."""
        if self.error:
            return frozenset(name for name, _ in self.rows())
        return frozenset() if self.forms is not None and self.forms.advice else frozenset({"answers"})

    @property
    def ok(self) -> bool:
        """Whether the model answers, and a policy can read its answers."""
        return not self.faulty

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the finding of each row of the text output."""
        yield "model", self.error or self.model
        if names := self.server.models[:_LISTED]:
            more = len(self.server.models) - len(names)
            yield "serves", ", ".join(names) + (f" and {more} more" if more else "")
        if self.server.context or self.server.trained:
            yield "context", self._context()
        if self.error:
            return
        yield "n", f"{SAMPLES} answers in one request" if self.n == SAMPLES else self._one_by_one()
        yield "logprobs", f"{_yes(self.logprobs)}; token ids: {_yes(self.token_ids)}; top_logprobs: {self.top_logprobs or 'no'}"
        yield "images", self.images
        yield "json_schema", self.json_schema
        yield "grammar", self.grammar
        yield "answers", self.forms.row() if self.forms is not None else "a policy's prompt got no answer: see the server's log"
        yield "latency", f"{self.seconds:.2f} s"
        if self.forms is not None and self.forms.seconds:
            yield "speed", self.forms.speed()
        yield "price", self._price()

    def _context(self) -> str:
        facts = self.server
        trained = f"trained for {facts.trained} tokens" if facts.trained else ""
        if not facts.context:
            return f"{trained}; the server does not say how many it takes"
        slots = f" in each of {facts.slots} slots" if facts.slots else ""
        return f"{facts.context} tokens{slots}{f', {trained}' if trained else ''}"

    def _one_by_one(self) -> str:
        most = f"; it has {self.server.slots} slots, and takes no more" if self.server.slots else ""
        return f"not {SAMPLES} answers in one request{most}: each takes a request"

    def _price(self) -> str:
        if self.input_price is None or self.output_price is None:
            return "unknown: give models.policy.price in the configuration to use a limit on money"
        cost = "" if self.cost is None else f"; this check ${self.cost:.6f}"
        return f"${self.input_price:g} in, ${self.output_price:g} out for a million tokens{cost}"


async def check_model(config: ModelConfig) -> ModelReport:
    """Ask for each feature in a separate request, also for those that the provider's entry rules out.

    The report has an error if the model does not answer the plainest request: then that is the cause. Raises UsageError for a missing key.
    """
    provider = serving(config)
    asking = _Asking(config, msgspec.structs.replace(provider, capabilities=_to_find_out(provider.takes(config.model)), models={}))
    facts = await asking.facts()
    try:
        plain = await asking.answer(_question("Say hello.", most=_SHORT))
    except ModelError as error:
        return ModelReport(model=asking.name, error=str(error), server=facts)
    several = await asking.probe(_question("Say hello.", most=1, n=SAMPLES))
    scored = await asking.probe(_question("Say hello.", most=_SHORT, logprobs=True, top=TOP))
    picture = await asking.probe(_question("Which colour has the picture? Answer with one word.", most=_LONG, image=True))
    schema = await asking.probe(_question("Say hello.", most=_LONG, schema=_SCHEMA))
    chat = api_of(config, provider) == "chat"  # no other API has grammars
    grammar = await asking.probe(_question("Say hello.", most=_LONG, grammar=f'root ::= "{SECRET}"')) if chat else None
    forms = await _forms(config)
    choice = scored.choice if scored else Choice(text="")
    return ModelReport(
        model=f"{asking.name} (answers as {plain.answer.model})",
        server=facts if facts.context else await asking.facts(),  # some servers load the model at the first request
        n=SAMPLES if several and isinstance(json.loads(several.answer.raw), dict) else 1,
        logprobs=choice.logprobs is not None,
        token_ids=choice.token_ids is not None,
        top_logprobs=max(map(len, choice.top_logprobs or ((),))),
        images=_seen(picture),
        json_schema=_followed(schema, "json_schema"),
        grammar=_followed(grammar, "grammar"),
        forms=forms,
        seconds=plain.seconds,
        input_price=asking.price.input if asking.price else None,
        output_price=asking.price.output if asking.price else None,
        cost=None if asking.cost is None else asking.cost + (forms.cost if forms else 0.0),
    )


async def _forms(config: ModelConfig) -> FormReport | None:
    try:
        return await check_forms(config)
    except ModelError:
        return None


class _Probe(NamedTuple):
    """Findings of one request."""

    answer: ChatAnswer
    takes: ModelCapabilities
    """Features that the server is known to take after it."""
    seconds: float

    @property
    def choice(self) -> Choice:
        return self.answer.choices[0]


class _Asking:
    """Asks one model, each time as if nothing was known of its server."""

    def __init__(self, config: ModelConfig, provider: Provider) -> None:
        self._config, self._provider = config, provider
        model = self._model()
        self.name, self.price = model.name, model.price
        self.cost: float | None = 0.0

    async def facts(self) -> ServerFacts:
        """Return the server's facts about itself."""
        model = self._model()
        try:
            return await server_facts(model.endpoints[0], own=not self._provider.prices and self._provider.name not in _HOSTED)
        finally:
            await model.close()

    async def answer(self, request: ChatRequest) -> _Probe:
        """Return the findings of a request. Raises ModelError."""
        model, began = self._model(), time.perf_counter()
        try:
            answer = await model.complete(request)
        finally:
            await model.close()
        cost = answer.usage.cost
        self.cost = None if cost is None or self.cost is None else self.cost + cost
        return _Probe(answer, model.endpoints[0].takes, time.perf_counter() - began)

    async def probe(self, request: ChatRequest) -> _Probe | None:
        """Return the findings of a request; None if the server refuses it, though it answers plain ones."""
        try:
            return await self.answer(request)
        except ModelError:
            return None

    def _model(self) -> OpenAIModel:
        return OpenAIModel(self._config, provider=self._provider)


def _to_find_out(takes: ModelCapabilities) -> ModelCapabilities:
    """Return capabilities in which the tested ones are unknown."""
    grammar = takes.grammar or None
    return msgspec.structs.replace(
        takes, n=None, logprobs=None, top_logprobs=None, json_schema=None, images=None, grammar=grammar
    )  # fmt: skip


def _question(
    text: str,
    *,
    most: int,
    n: int = 1,
    logprobs: bool = False,
    top: int | msgspec.UnsetType = msgspec.UNSET,
    image: bool = False,
    schema: Mapping[str, Any] | None = None,
    grammar: str = "",
) -> ChatRequest:
    parts: tuple[Text | Image, ...] = (Text(text), *((Image(_red()),) if image else ()))
    sampling = Sampling(n=n, max_tokens=most, logprobs=logprobs, top_logprobs=top)
    return ChatRequest(
        messages=(Message("user", parts),), sampling=sampling, role="policy", prompt="doctor", schema=schema, grammar=grammar
    )  # fmt: skip


def _seen(probe: _Probe | None) -> str:
    if probe is None or NO_PICTURES in probe.answer.notes:
        return "refused"
    return "seen" if "red" in probe.choice.text.lower() else "accepted, colour not recognised"


def _followed(probe: _Probe | None, feature: Literal["json_schema", "grammar"]) -> Followed:
    """Return whether an answer holds the word that only a constrained answer has."""
    if probe is None or getattr(probe.takes, feature) is False or feature in probe.answer.notes:
        return "refused"
    if SECRET in probe.choice.text:
        return "yes"
    return "not known: the answer was cut off" if probe.choice.finish == "length" else "ignored"


def _red() -> bytes:
    """Return a small red PNG."""
    from PIL import Image as Picture

    buffer = io.BytesIO()
    Picture.new("RGB", (32, 32), "red").save(buffer, "PNG")
    return buffer.getvalue()


def _yes(found: bool) -> str:
    return "yes" if found else "no"


PROMPT = "policy_list"
"""Prompt of the test: the form that is hardest to keep to."""


class FormReport(msgspec.Struct, frozen=True, kw_only=True):
    """Forms in which a model's answers can be read."""

    lines: bool
    """Whether an answer in lines could be read."""
    json: bool
    """Whether an answer as JSON could be read."""
    constrained: bool
    """Whether the server took a schema. Without one the second answer was asked for in lines too."""
    cost: float = 0.0
    """US dollars for both calls, if the price is known."""
    input_tokens: int = 0
    """Tokens of the prompt."""
    output_tokens: int = 0
    """Tokens of the answer in lines."""
    seconds: float = 0.0
    """Seconds from the request for lines to its answer."""

    def speed(self) -> str:
        """Return the pace of the answer in lines. The prompt's tokens count in its time."""
        asked = f"{self.input_tokens} tokens in and {self.output_tokens} out in {self.seconds:.1f} s"
        return f"a policy's question takes {asked}: {self.output_tokens / self.seconds:.1f} tokens out a second"

    @property
    def advice(self) -> Structured | None:
        """Value of `models.<role>.structured` that fits. None: neither form could be read."""
        if self.lines:
            return "auto"
        return "always" if self.json else None

    def row(self) -> str:
        """Return the findings in one line."""
        schema = "no schema is taken" if not self.constrained else f"JSON by a schema is {'' if self.json else 'not '}read"
        way_out = {"auto": "", "always": ": set models.policy.structured to always", None: ": use a larger model, or a grammar"}
        return f"lines are {'' if self.lines else 'not '}read, {schema}{way_out[self.advice]}"


async def check_forms(config: ModelConfig) -> FormReport:
    """Request a list of actions for an example's state twice: in lines, and by a schema.

    Raises ModelError if the model does not answer, UsageError for a missing key.
    """
    began = time.perf_counter()
    lines, took = await _asked(config, "never"), time.perf_counter() - began
    by_schema = await _asked(config, "always")
    is_json, cost = by_schema.structured, sum(answer.usage.cost or 0.0 for answer in (lines, by_schema))
    return FormReport(
        lines=_is_read(lines), json=is_json and _is_read(by_schema), constrained=is_json, cost=cost,
        input_tokens=lines.usage.input_tokens, output_tokens=lines.usage.output_tokens, seconds=took,
    )  # fmt: skip


async def _asked(config: ModelConfig, structured: Structured) -> ChatAnswer:
    model = OpenAIModel(msgspec.structs.replace(config, structured=structured))
    try:
        return await model.complete(_request(config))
    finally:
        await model.close()


def _request(config: ModelConfig) -> ChatRequest:
    prompt = render_prompt(PROMPT, **example_inputs(describe_prompt(PROMPT)))
    return chat_request(prompt, (), sampling(config), role="policy", samples=1, context=example_context(), form=ACTIONS)


def _is_read(answer: ChatAnswer) -> bool:
    try:
        return bool(parse_actions(answer.choices[0].text, VERBS, example_context().observation))
    except ActionError:
        return False
