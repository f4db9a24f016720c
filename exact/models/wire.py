"""Chat Completions on the wire: a request as JSON, and the server's JSON as an answer."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from exact.models.base import ChatAnswer, ChatRequest, Choice, Image, Message, Text, Usage
from exact.models.providers import ModelCapabilities

SEEDS = 2**31
"""Upper bound of seeds, exclusive. Every server takes seeds in [0, SEEDS)."""

_NO_PICTURE = Text("[A picture stood here; this model takes none.]")


class MalformedAnswer(ValueError):
    """Raised when the server's answer is not a chat completion."""


def body(request: ChatRequest, model: str, *, n: int, index: int, takes: ModelCapabilities) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the request for choices `index` to `index + n - 1`, and notes on what is left out because the server refuses it.

    Values at the API's defaults are left out too, because not every server knows every field.
    """
    sampling, notes = request.sampling, list[str]()
    out: dict[str, Any] = {"model": model, "messages": _messages(request.messages, takes, notes)}
    if takes.sampling is False:
        notes.append("temperature and top_p")
    else:
        out["temperature"] = sampling.temperature
        if takes.both is not False:
            out["top_p"] = sampling.top_p
        elif sampling.top_p != 1.0:
            notes.append("top_p")
    out[takes.limit or "max_tokens"] = sampling.max_tokens
    if n > 1:
        out["n"] = n
    if sampling.seed is not None and takes.seed is not False:
        out["seed"] = (sampling.seed + index) % SEEDS
    if sampling.logprobs and takes.logprobs is not False:
        out["logprobs"] = True
    elif sampling.logprobs:
        notes.append("logprobs")
    if request.schema is not None and takes.json_schema is not False:
        schema = {"name": "answer", "schema": dict(request.schema), "strict": True}
        out["response_format"] = {"type": "json_schema", "json_schema": schema}
    return out, tuple(notes)


def question(request: ChatRequest, model: str, takes: ModelCapabilities) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the request to a classifier, which has messages only, and notes on what is left out."""
    notes = list[str]()
    return {"model": model, "messages": _messages(request.messages, takes, notes)}, tuple(notes)


def _messages(messages: tuple[Message, ...], takes: ModelCapabilities, notes: list[str]) -> list[dict[str, Any]]:
    if takes.images is False and any(isinstance(part, Image) for message in messages for part in message.parts):
        messages = tuple(Message(m.role, tuple(_NO_PICTURE if isinstance(part, Image) else part for part in m.parts)) for m in messages)
        notes.append("pictures")
    if takes.system is False:
        messages = _without_system(messages)
    return [_message(message) for message in messages]


def _without_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Move the text of system turns to the top of the first user turn."""
    words = tuple(part for message in messages if message.role == "system" for part in message.parts)
    rest = [message for message in messages if message.role != "system"]
    first = next((i for i, message in enumerate(rest) if message.role == "user"), None)
    if first is None:
        return (Message("user", words), *rest)
    rest[first] = Message("user", (*words, *rest[first].parts))
    return tuple(rest)


def _message(message: Message) -> dict[str, Any]:
    """Return a turn as JSON: plain text, which every server takes, or with a picture a list of parts."""
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
    """Return the answer in a server's JSON, with all its choices and without a cost. Raises MalformedAnswer.

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
    """Return the token ids that vLLM gives as `token_id:123` in place of text (option `return_tokens_as_token_ids`); None without them."""
    if not tokens or not all(token.token.removeprefix("token_id:").isdigit() and ":" in token.token for token in tokens):
        return None
    return [int(token.token.partition(":")[2]) for token in tokens]


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    cached = (usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None) or 0
    return Usage(input_tokens=usage.prompt_tokens, cached_tokens=min(cached, usage.prompt_tokens), output_tokens=usage.completion_tokens)


class _Class(msgspec.Struct):
    probs: list[float]


class _Classified(msgspec.Struct):
    data: float | list[_Class]
    model: str | None = None
    usage: _Usage | None = None


def classified(raw: str) -> ChatAnswer:
    """Return a classifier's answer: one choice, whose text is the probability of success. Raises MalformedAnswer.

    `data` is that number, or as vLLM gives it a list with the probabilities of the classes: of one class, or of two, the second being
    success.
    """
    try:
        found = msgspec.json.decode(raw, type=_Classified)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise MalformedAnswer(f"{error}: {raw[:120]!r}") from error
    if isinstance(found.data, float):
        value = found.data
    elif len(found.data) == 1 and len(found.data[0].probs) in (1, 2):
        value = found.data[0].probs[-1]
    else:
        raise MalformedAnswer(f"neither a probability nor those of one or two classes: {raw[:120]!r}")
    choice = Choice(text=repr(value), finish="stop")
    return ChatAnswer(choices=(choice,), usage=_usage(found.usage), model=found.model or "", raw=raw)


class Embedded(msgspec.Struct, frozen=True, kw_only=True):
    """Vectors of texts, in order."""

    vectors: tuple[tuple[float, ...], ...]
    usage: Usage


class _Vector(msgspec.Struct):
    embedding: list[float]
    index: int = 0


class _Vectors(msgspec.Struct):
    data: list[_Vector]
    usage: _Usage | None = None


def embedded(raw: str) -> Embedded:
    """Return the vectors in a server's JSON. Raises MalformedAnswer."""
    try:
        found = msgspec.json.decode(raw, type=_Vectors)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise MalformedAnswer(f"{error}: {raw[:120]!r}") from error
    vectors = tuple(tuple(one.embedding) for one in sorted(found.data, key=lambda one: one.index))
    return Embedded(vectors=vectors, usage=_usage(found.usage))
