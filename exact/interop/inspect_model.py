"""inspect_ai's models as chat models of exact."""

from __future__ import annotations

import asyncio
import base64
from itertools import accumulate

import msgspec
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
    GenerateConfig,
    Model,
    ModelOutput,
    get_model,
)
from inspect_ai.util import LimitExceededError

from exact.config import Config, ModelConfig
from exact.errors import ModelError, UsageError
from exact.models.base import ChatAnswer, ChatModel, ChatRequest, Choice, Image, Message, Price, Tariff, TokenChance, Usage
from exact.models.open import Models, model_for
from exact.models.providers import providers


class InspectModel:
    """A chat model that asks a model of inspect_ai, so that inspect's log, cache, retries and limits hold for its calls."""

    def __init__(self, model: Model, config: ModelConfig) -> None:
        """Wrap a model. `config`: the settings of its role, of which the price counts."""
        self._model = model
        known, provider = providers(), str(model).partition("/")[0]
        provider = provider if provider in known else "compatible"
        self._price = Tariff(msgspec.structs.replace(config, model=model.name, provider=provider), known[provider])

    @property
    def name(self) -> str:
        """Provider and model: `openai/gpt-4o`."""
        return str(self._model)

    @property
    def price(self) -> Price | None:
        """Price by the configuration or the price list; None if it is unknown."""
        return self._price.price

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Return an answer with `sampling.n` choices, by further calls if a provider gives one at a time.

        Raises ModelError; a limit of inspect's is raised as it is.
        """
        messages, wanted = [_message(each) for each in request.messages], request.sampling.n
        outputs = [await self._asked(messages, request, wanted)]
        missing = wanted - len(outputs[0].choices)
        if missing > 0 and outputs[0].choices:
            outputs += await asyncio.gather(*(self._asked(messages, request, 1) for _ in range(missing)))
        choices = [choice for output in outputs for choice in output.choices][:wanted]
        if not choices:
            raise ModelError(f"{self.name} gave no answer: {outputs[0].error or outputs[0].model_dump_json()[:200]}")
        usage = _usage(outputs)
        usage = msgspec.structs.replace(usage, cost=self._price.cost(usage))
        raw = outputs[0].model_dump_json()
        return ChatAnswer(choices=tuple(map(_choice, choices)), usage=usage, model=outputs[0].model, raw=raw, notes=_notes(request))

    async def close(self) -> None:
        """Do nothing: inspect closes its models."""

    async def _asked(self, messages: list[ChatMessage], request: ChatRequest, n: int) -> ModelOutput:
        settings = request.sampling
        top = settings.top_logprobs
        config = GenerateConfig(
            num_choices=n if n > 1 else None, temperature=settings.temperature, top_p=settings.top_p, max_tokens=settings.max_tokens,
            seed=settings.seed, logprobs=settings.logprobs or None, top_logprobs=None if isinstance(top, msgspec.UnsetType) else top,
        )  # fmt: skip
        try:
            return await self._model.generate(messages, config=config)
        except LimitExceededError:
            raise
        except Exception as error:
            raise ModelError(f"{self.name} did not answer: {' '.join(str(error).split())[:300] or type(error).__name__}") from error


class InspectModels(Models):
    """The models of all roles, asked through inspect: a role of inspect's by that name, else the model that is evaluated."""

    def chat(self, role: str) -> ChatModel:
        """Return the chat model of a role."""
        return InspectModel(get_model(role=role), model_for(self._config, role))


def with_models(config: Config, name: str) -> Config:
    """Return a configuration that names a model, by default the one that inspect evaluates. Sampling settings and prices stay.

    Raises UsageError if the agent needs a feature that inspect's models lack.
    """
    if any(each.actions == "computer" for each in (config.policy, *config.arms)):
        raise UsageError("policy.actions: computer needs a provider's own tool, which cannot be asked through inspect_ai: use elements")
    if config.models.policy is not None:
        return config
    return msgspec.structs.replace(config, models=msgspec.structs.replace(config.models, policy=ModelConfig(model=name)))


def _message(message: Message) -> ChatMessage:
    text = "\n".join(part.text for part in message.parts if not isinstance(part, Image))
    match message.role:
        case "system":
            return ChatMessageSystem(content=text)
        case "assistant":
            return ChatMessageAssistant(content=text)
        case _:
            content: list[Content] = [
                ContentImage(image=f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}")
                if isinstance(part, Image)
                else ContentText(text=part.text)
                for part in message.parts
            ]
            return ChatMessageUser(content=content)


def _choice(choice: ChatCompletionChoice) -> Choice:
    text, tokens = choice.message.text, choice.logprobs.content if choice.logprobs else []
    spelled = "".join(token.token for token in tokens) == text
    return Choice(
        text=text,
        finish="refusal" if choice.stop_reason == "content_filter" else "length" if choice.stop_reason == "max_tokens" else "stop",
        logprobs=tuple(token.logprob for token in tokens) if tokens else None,
        ends=tuple(accumulate(len(token.token) for token in tokens)) if tokens and spelled else None,
        top_logprobs=tuple(tuple(TokenChance(top.token, top.logprob) for top in token.top_logprobs or []) for token in tokens)
        if any(token.top_logprobs for token in tokens)
        else None,
    )


def _usage(outputs: list[ModelOutput]) -> Usage:
    found = [output.usage for output in outputs if output.usage is not None]
    read, written = (sum(getattr(each, f"input_tokens_cache_{name}") or 0 for each in found) for name in ("read", "write"))
    return Usage(
        input_tokens=sum(each.input_tokens for each in found) + read + written,
        cached_tokens=read,
        cache_write_tokens=written,
        output_tokens=sum(each.output_tokens for each in found),
        reasoning_tokens=sum(each.reasoning_tokens or 0 for each in found),
    )


def _notes(request: ChatRequest) -> tuple[str, ...]:
    return tuple(f"{name} is not sent through inspect_ai" for name in ("schema", "form", "grammar") if getattr(request, name))
