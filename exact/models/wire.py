"""Chat Completions on the wire: a request as JSON, and the server's JSON as an answer."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from exact.models.base import ChatAnswer, ChatRequest, Choice, Image, Message, Text, Usage

SEEDS = 2**31
"""Seeds are in [0, SEEDS): what every server takes."""


class MalformedAnswer(ValueError):
    """The server's answer is not a chat completion."""


def body(request: ChatRequest, model: str, *, n: int, index: int, limit: str) -> dict[str, Any]:
    """The request for choices `index` to `index + n - 1`; `limit` is the server's name for the cap on new tokens.

    What is at the API's own default is left out, for not every server knows every field.
    """
    sampling = request.sampling
    out: dict[str, Any] = {
        "model": model,
        "messages": [_message(message) for message in request.messages],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        limit: sampling.max_tokens,
    }
    if n > 1:
        out["n"] = n
    if sampling.seed is not None:
        out["seed"] = (sampling.seed + index) % SEEDS
    if sampling.logprobs:
        out["logprobs"] = True
    return out


def _message(message: Message) -> dict[str, Any]:
    """A turn of words alone is plain text, which every server takes; with a picture it is a list of parts."""
    if all(isinstance(part, Text) for part in message.parts):
        return {"role": message.role, "content": "\n".join(part.text for part in message.parts if isinstance(part, Text))}
    return {"role": message.role, "content": [_part(part) for part in message.parts]}


def _part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    url = f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


class _Token(msgspec.Struct):
    token: str
    logprob: float


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Said(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Said
    index: int = 0
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None
    token_ids: list[int] | None = None


class _Cached(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Cached | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: _Usage | None = None


def answer(raw: str) -> ChatAnswer:
    """The answer in a server's JSON, as many choices as are in it, cost unknown. Raises MalformedAnswer.

    A refusal is a choice whose `finish` is `refusal` and whose text is the refusal.
    """
    try:
        completion = msgspec.json.decode(raw, type=_Completion)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise MalformedAnswer(f"{error}: {raw[:120]!r}") from error
    choices = tuple(_choice(choice) for choice in sorted(completion.choices, key=lambda choice: choice.index))
    return ChatAnswer(choices=choices, usage=_usage(completion.usage), model=completion.model or "", raw=raw)


def _choice(choice: _Choice) -> Choice:
    said, tokens = choice.message, (choice.logprobs.content if choice.logprobs else None)
    ids = choice.token_ids if choice.token_ids is not None else _ids_in_names(tokens)
    return Choice(
        text=said.content or said.refusal or "",
        finish="refusal" if said.refusal else choice.finish_reason or "",
        token_ids=None if ids is None else tuple(ids),
        logprobs=None if tokens is None else tuple(token.logprob for token in tokens),
    )


def _ids_in_names(tokens: list[_Token] | None) -> list[int] | None:
    """vLLM can give tokens as `token_id:123` in place of their text (option `return_tokens_as_token_ids`)."""
    if not tokens or not all(token.token.removeprefix("token_id:").isdigit() and ":" in token.token for token in tokens):
        return None
    return [int(token.token.partition(":")[2]) for token in tokens]


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None
    return Usage(input_tokens=usage.prompt_tokens, cached_tokens=cached or 0, output_tokens=usage.completion_tokens)
