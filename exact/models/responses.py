"""OpenAI's Responses API on the wire: a request as JSON, and the server's JSON as an answer.

Nothing is stored at the server. Items that have to go back to the model with the next question (reasoning, tool calls) are carried in the
messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from exact.models.base import ChatAnswer, ChatRequest, Choice, Display, Image, Message, Text, ToolCall, Usage
from exact.models.decode import (
    FailedAnswer,
    MalformedAnswer,
    as_list,
    as_object,
    as_text,
    decoded,
    ends,
    logprobs,
    objects,
    top_logprobs,
    whole,
)
from exact.models.providers import ModelCapabilities
from exact.models.wire import FINISHES, cache_key, data_url, headers, sampling_fields, supported

__all__ = ["KEY_HEADER", "PATH", "REQUIRED", "answer", "body", "headers"]

PATH = "/responses"
KEY_HEADER = ""
REQUIRED = frozenset({"model", "input", "tools"})

_LEAST_TOKENS = 16
"""Smallest cap on new tokens that the API takes."""
_MOST_TOP = 20
"""Most likeliest tokens that the API lists at a position."""
_PREVIEW = "computer_use_preview"
_STATUSES = {"rate_limit_exceeded": 429, "server_error": 500, "vector_store_timeout": 500}
"""HTTP status that an error inside an answer amounts to. Others: 400."""


def body(request: ChatRequest, model: str, *, n: int, index: int, takes: ModelCapabilities) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the request for one choice, and notes on the parts left out because the server refuses them."""
    sampling, notes = request.sampling, list[str]()
    detail = "original" if request.screen is not None and takes.computer != _PREVIEW else "auto"  # points are those of the picture as sent
    out: dict[str, Any] = {"model": model, "input": list(_items(supported(request.sent(), takes, notes), takes, detail))}
    out |= {"max_output_tokens": max(_LEAST_TOKENS, sampling.max_tokens), "store": False}
    include = ["reasoning.encrypted_content"]
    out |= sampling_fields(sampling, takes, notes)
    if sampling.logprobs and takes.logprobs is not False:
        include.append("message.output_text.logprobs")
        if top := min(sampling.top_logprobs or 0, _MOST_TOP if takes.top_logprobs is None else takes.top_logprobs):
            out["top_logprobs"] = top
    elif sampling.logprobs:
        notes.append("logprobs")
    out["include"] = include
    if takes.cache is not False:
        out["prompt_cache_key"] = cache_key(request, model)
    if request.schema is not None and takes.json_schema is not False:
        out["text"] = {"format": {"type": "json_schema", "name": "answer", "schema": dict(request.schema), "strict": True}}
    if request.grammar:
        notes.append("grammar")
    if request.screen is not None:
        out["tools"] = [_computer(request.screen, takes.computer or "computer")]
        if takes.computer == _PREVIEW:
            out["truncation"] = "auto"  # the preview model takes no other
    return out, tuple(notes)


def _computer(screen: Display, kind: str) -> dict[str, Any]:
    if kind != _PREVIEW:
        return {"type": kind}
    return {"type": kind, "display_width": screen.width, "display_height": screen.height, "environment": screen.kind}


def _items(messages: tuple[Message, ...], takes: ModelCapabilities, detail: str) -> Iterator[dict[str, Any]]:
    """Yield the items of the input: turns as messages, and native items of the model's turns with an output for each call."""
    picture = next((part for message in messages for part in reversed(message.parts) if isinstance(part, Image)), None)
    for message, following in zip(messages, (*messages[1:], None), strict=True):
        carried = _carried(message, picture) if takes.items is not False else []
        yield from carried or [_message(message, detail)]
        said = "" if following is None else _words(following)
        yield from (_output(item, said, picture) for item in carried if "call_id" in item)


def _carried(message: Message, picture: Image | None) -> list[dict[str, Any]]:
    """Return the native items of a turn that can go back; none if one of them cannot.

    Reasoning goes back only if the item itself holds it, because the server stores nothing. A call of the computer needs a screenshot as
    its output, and one with a pending safety check the consent of a person.
    """
    items = [each for each in message.items if each.get("type") != "reasoning" or each.get("encrypted_content") or each.get("content")]
    calls = [each for each in items if each.get("type") == "computer_call"]
    return [] if any(picture is None or each.get("pending_safety_checks") for each in calls) else items


def _output(item: dict[str, Any], said: str, picture: Image | None) -> dict[str, Any]:
    if item.get("type") == "computer_call" and picture is not None:
        shown = {"type": "computer_screenshot", "image_url": data_url(picture)}
        return {"type": "computer_call_output", "call_id": item["call_id"], "output": shown}
    return {"type": "function_call_output", "call_id": item["call_id"], "output": said}


def _message(message: Message, detail: str) -> dict[str, Any]:
    """Return a turn as JSON: plain text, which every server takes, or with a picture a list of parts."""
    if all(isinstance(part, Text) for part in message.parts):
        return {"role": message.role, "content": _words(message)}
    return {"role": message.role, "content": [_part(part, detail) for part in message.parts]}


def _part(part: Text | Image, detail: str) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    return {"type": "input_image", "image_url": data_url(part), "detail": detail}


def _words(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))


def answer(raw: str) -> ChatAnswer:
    """Return the answer in a server's JSON: one choice, without a cost. Raises MalformedAnswer, FailedAnswer.

    Reasoning is not part of the text. A refusal is a choice whose `finish` is `refusal` and whose text is the refusal.
    """
    data = decoded(raw)
    error, status = as_object(data.get("error")), as_text(data.get("status"))
    if error or status in ("failed", "cancelled"):
        code = as_text(error.get("code")) or status
        raise FailedAnswer(_STATUSES.get(code, 400 if error else 500), as_text(error.get("message")) or f"status {status}", code=code)
    if not isinstance(data.get("output"), list):
        raise MalformedAnswer(f"no output: {raw[:120]!r}")
    output = objects(data["output"])
    choice = _choice(output, as_text(as_object(data.get("incomplete_details")).get("reason")) if status == "incomplete" else "stop")
    return ChatAnswer(choices=(choice,), usage=_usage(data.get("usage")), model=as_text(data.get("model")), raw=raw)


def _choice(output: list[dict[str, Any]], finish: str) -> Choice:
    said = [each for each in output if each.get("type") == "message"]
    parts = [part for each in said if each.get("phase") != "commentary" for part in objects(each.get("content"))]
    parts = parts or [part for each in said for part in objects(each.get("content"))]
    text = "".join(as_text(part.get("text")) for part in parts if part.get("type") == "output_text")
    refusal = "".join(as_text(part.get("refusal")) for part in parts if part.get("type") == "refusal")
    tokens = [token for part in parts for token in objects(part.get("logprobs"))]
    return Choice(
        text=text or refusal,
        finish="refusal" if refusal else FINISHES.get(finish, finish),
        logprobs=logprobs(tokens),
        ends=ends(tokens, text),
        top_logprobs=top_logprobs(tokens),
        calls=tuple(call for item in output for call in _calls(item)),
        items=tuple(output) if any(item.get("type") != "message" for item in output) else (),
    )


def _calls(item: dict[str, Any]) -> Iterator[ToolCall]:
    if item.get("type") == "function_call":
        try:
            arguments = msgspec.json.decode(as_text(item.get("arguments")) or "{}")
        except msgspec.DecodeError:
            arguments = None
        yield ToolCall(name=as_text(item.get("name")), arguments=dict(as_object(arguments)))
    if item.get("type") == "computer_call":
        actions = as_list(item.get("actions")) or [item.get("action")]
        yield ToolCall(name="computer", arguments={"actions": actions, "checks": objects(item.get("pending_safety_checks"))})


def _usage(given: object) -> Usage:
    usage = as_object(given)
    read, written = as_object(usage.get("input_tokens_details")), as_object(usage.get("output_tokens_details"))
    total = whole(usage.get("input_tokens"))
    cached = min(whole(read.get("cached_tokens")), total)
    return Usage(
        input_tokens=total,
        cached_tokens=cached,
        cache_write_tokens=min(whole(read.get("cache_write_tokens")), total - cached),
        output_tokens=whole(usage.get("output_tokens")),
        reasoning_tokens=whole(written.get("reasoning_tokens")),
    )
