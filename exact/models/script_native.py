"""Scripted answers in the forms of the Responses and the Messages API."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any

from exact.models.script import Question, Reply, asked_tokens, tokens_of

_PICTURES = ("image", "input_image")


def native_question(body: Mapping[str, Any]) -> Question:
    """Return the question in the body of a request of either API. Raises ValueError where the body is invalid."""
    try:
        turns = [{"role": "system", "content": body["system"]}] if "system" in body else []
        turns += [turn for turn in body["input" if "input" in body else "messages"] if "role" in turn]
        contents = [(str(turn["role"]), *_content(turn["content"])) for turn in turns]
        return Question(
            messages=tuple((role, text) for role, text, _ in contents),
            images=tuple(image for _, _, images in contents for image in images),
            model=str(body["model"]),
        )
    except (KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise ValueError(f"no request of a native API: {type(error).__name__} {error}") from error


def _content(content: str | Sequence[Mapping[str, Any]]) -> tuple[str, list[bytes]]:
    if isinstance(content, str):
        return content, []
    words = [str(part["text"]) for part in content if "text" in part]
    pictures = [part for part in content if part["type"] in _PICTURES]
    data = [part["source"]["data"] if "source" in part else part["image_url"].partition(";base64,")[2] for part in pictures]
    return "\n".join(words), [base64.b64decode(each, validate=True) for each in data]


def message(question: Question, replies: Sequence[Reply]) -> dict[str, Any]:
    """Return Anthropic's JSON for one reply."""
    (reply,) = replies
    stop = "refusal" if reply.refusal else {"length": "max_tokens", "content_filter": "refusal"}.get(reply.finish, "end_turn")
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text or reply.refusal}] if reply.text or reply.refusal else []
    content += [
        {"type": "tool_use", "id": f"toolu_{at}", "name": call.name, "input": call.arguments} for at, call in enumerate(reply.calls)
    ]
    return {
        "id": f"msg_{question.key[:12]}",
        "type": "message",
        "role": "assistant",
        "model": question.model,
        "content": content,
        "stop_reason": "tool_use" if reply.calls and stop == "end_turn" else stop,
        "stop_sequence": None,
        "usage": {"input_tokens": asked_tokens(question), "output_tokens": tokens_of(replies)},
    }


def response(question: Question, replies: Sequence[Reply]) -> dict[str, Any]:
    """Return OpenAI's JSON for one reply."""
    (reply,) = replies
    part = (
        {"type": "refusal", "refusal": reply.refusal} if reply.refusal else {"type": "output_text", "text": reply.text, "annotations": []}
    )
    said = {"id": "msg_0", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(reply.finish)
    asked, answered = asked_tokens(question), tokens_of(replies)
    return {
        "id": f"resp_{question.key[:12]}",
        "object": "response",
        "created_at": 0,
        "model": question.model,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "output": [*([said] if reply.text or reply.refusal else []), *(_called(at, reply) for at in range(len(reply.calls)))],
        "usage": {"input_tokens": asked, "output_tokens": answered, "total_tokens": asked + answered},
    }


def _called(at: int, reply: Reply) -> dict[str, Any]:
    call, head = reply.calls[at], {"id": f"call_{at}", "call_id": f"call_{at}", "status": "completed"}
    if call.name != "computer":
        return head | {"type": "function_call", "name": call.name, "arguments": json.dumps(call.arguments)}
    given = call.arguments
    return head | {"type": "computer_call", "actions": given.get("actions") or [given], "pending_safety_checks": given.get("checks") or []}
