"""Anthropic's Messages API on the wire: a request as JSON, and the server's JSON as an answer."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from exact.models.base import ChatAnswer, ChatRequest, Choice, Display, Image, Message, Text, ToolCall, Usage
from exact.models.decode import FailedAnswer, MalformedAnswer, as_object, as_text, decoded, objects, whole
from exact.models.providers import ModelCapabilities
from exact.models.tokens import prompt_tokens
from exact.models.wire import FINISHES, sampling_fields, supported

PATH = "/messages"
KEY_HEADER = "x-api-key"
REQUIRED = frozenset({"model", "messages", "system", "max_tokens", "tools"})

_VERSION = {"anthropic-version": "2023-06-01"}
_COMPUTER = "computer_20250124"
_BETAS = {_COMPUTER: "computer-use-2025-01-24", "computer_20251124": "computer-use-2025-11-24"}
"""Beta that each version of the computer tool needs. The toolset needs none."""
_NOT_OFFERED = ("screenshot", "zoom", "cursor_position", "hold_key", "middle_click")
"""Members of the computer toolset that no action of an environment stands for."""
_CACHED = {"cache_control": {"type": "ephemeral"}}
_MOST_TEMPERATURE = 1.0
_LEAST_CACHED = 2000
"""Estimated tokens below which a question is not marked. Models cache prompts from 1,024 to 4,096 tokens on."""
_FINISHES = {
    **dict.fromkeys(("end_turn", "stop_sequence", "tool_use"), "stop"),
    "model_context_window_exceeded": "length",
}
"""The API's words for how an answer ended, besides those of FINISHES."""
_STATUSES = {"overloaded_error": 529, "rate_limit_error": 429, "invalid_request_error": 400}


def is_worth_caching(request: ChatRequest) -> bool:
    """Return whether a question is asked several times, and long enough that the server caches it."""
    return request.sampling.n > 1 and prompt_tokens(request) >= _LEAST_CACHED


def headers(body: dict[str, Any]) -> dict[str, str]:
    """Return the version of the API, and the beta that the request's computer tool needs."""
    betas = [_BETAS[kind] for tool in body.get("tools", ()) if (kind := tool.get("type")) in _BETAS]
    return _VERSION | ({"anthropic-beta": ",".join(betas)} if betas else {})


def body(request: ChatRequest, model: str, *, n: int, index: int, takes: ModelCapabilities) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the request for one choice, and notes on the parts left out because the server refuses them.

    The end of the system turn is marked: the text before it is the same for all states of a task, and is cached with the tools. The end of
    a long question that is asked for several choices is marked too.
    """
    sampling, notes = request.sampling, list[str]()
    messages = supported(request.sent(), takes, notes)
    out: dict[str, Any] = {"model": model, "max_tokens": sampling.max_tokens}
    system = "\n\n".join(_words(message) for message in messages if message.role == "system")
    if system:
        out["system"] = system if takes.cache is False else [{"type": "text", "text": system} | _CACHED]
    out["messages"] = _turns([message for message in messages if message.role != "system"], takes)
    if out["messages"] and takes.cache is not False and is_worth_caching(request):
        out["messages"][-1]["content"][-1] |= _CACHED
    if takes.sampling is not False and sampling.temperature > _MOST_TEMPERATURE:
        notes.append(f"a temperature above {_MOST_TEMPERATURE:g}")
    capped = msgspec.structs.replace(sampling, temperature=min(sampling.temperature, _MOST_TEMPERATURE))
    out |= sampling_fields(capped, takes, notes)
    if sampling.logprobs:
        notes.append("logprobs")
    if request.schema is not None and takes.json_schema is not False:
        out["output_config"] = {"format": {"type": "json_schema", "schema": dict(request.schema)}}
    if request.grammar:
        notes.append("grammar")
    if request.screen is not None:
        out["tools"] = [_computer(request.screen, takes.computer or _COMPUTER)]
    return out, tuple(notes)


def _computer(screen: Display, kind: str) -> dict[str, Any]:
    if kind.startswith("computer_toolset"):
        return {"type": kind, "configs": {name: {"enabled": False} for name in _NOT_OFFERED}}
    return {"type": kind, "name": "computer", "display_width_px": screen.width, "display_height_px": screen.height}


def _turns(messages: list[Message], takes: ModelCapabilities) -> list[dict[str, Any]]:
    """Return the turns as JSON. The native items of a model's turn go back as they are, with a result for each call of a tool."""
    turns, results = list[dict[str, Any]](), list[dict[str, Any]]()
    for message in messages:
        carried = [] if takes.items is False else [item for item in message.items if item.get("type") != "text" or item.get("text")]
        parts = carried or [_part(part) for part in message.parts]
        turns.append({"role": message.role, "content": [*results, *parts]})
        results = [_result(item) for item in carried if item.get("type") == "tool_use"]
    return turns


def _result(call: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a call of a tool, which is never carried out as such. Its outcome stands below."""
    result = {"type": "tool_result", "tool_use_id": call.get("id"), "content": "It was not carried out.", "is_error": True}
    return result | ({"toolset_name": call["toolset_name"]} if call.get("toolset_name") else {})


def _part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    source = {"type": "base64", "media_type": part.media_type, "data": base64.b64encode(part.data).decode()}
    return {"type": "image", "source": source}


def _words(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))


def answer(raw: str) -> ChatAnswer:
    """Return the answer in a server's JSON: one choice, without a cost. Raises MalformedAnswer, FailedAnswer.

    Thinking is not part of the text. A refusal is a choice whose `finish` is `refusal`.
    """
    data = decoded(raw)
    if error := as_object(data.get("error")):
        kind = as_text(error.get("type"))
        raise FailedAnswer(_STATUSES.get(kind, 500), as_text(error.get("message")) or kind, code=kind)
    if not isinstance(data.get("content"), list):
        raise MalformedAnswer(f"no content: {raw[:120]!r}")
    blocks, reason = objects(data["content"]), as_text(data.get("stop_reason"))
    text = "".join(as_text(block.get("text")) for block in blocks if block.get("type") == "text")
    refusal = as_text(as_object(data.get("stop_details")).get("explanation"))
    choice = Choice(
        text=text or (refusal if reason == "refusal" else ""),
        finish=_FINISHES.get(reason) or FINISHES.get(reason, reason),
        calls=tuple(_call(block) for block in blocks if block.get("type") == "tool_use"),
        items=tuple(blocks) if any(block.get("type") != "text" for block in blocks) else (),
    )
    return ChatAnswer(choices=(choice,), usage=_usage(data.get("usage")), model=as_text(data.get("model")), raw=raw)


def _call(block: dict[str, Any]) -> ToolCall:
    """Return a call. A member of the computer toolset is a call of `computer` with the member as its action."""
    name, arguments = as_text(block.get("name")), dict(as_object(block.get("input")))
    if block.get("toolset_name") == "computer":
        return ToolCall(name="computer", arguments={"action": name} | arguments)
    return ToolCall(name=name, arguments=arguments)


def _usage(given: object) -> Usage:
    """Return the tokens. The API counts those that are read from the cache, or written into it, beside the others."""
    usage = as_object(given)
    read, written = whole(usage.get("cache_read_input_tokens")), whole(usage.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=whole(usage.get("input_tokens")) + read + written,
        cached_tokens=read,
        cache_write_tokens=written,
        output_tokens=whole(usage.get("output_tokens")),
        reasoning_tokens=whole(as_object(usage.get("output_tokens_details")).get("thinking_tokens")),
    )
