"""Scripted answers, and the questions that they answer.

Scripted answers in the forms of the Responses and the Messages API.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from exact.models.base import ChatRequest, Image, Text, TokenChance, ToolCall
from exact.text import without_key


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a model."""

    messages: tuple[tuple[str, str], ...]
    """Role and text of each turn."""
    images: tuple[bytes, ...] = ()
    """All pictures, in order."""
    model: str = ""
    n: int = 1
    seed: int | None = None
    """The i-th choice of a question with seed s is the first of the same question with seed s + i."""

    @property
    def text(self) -> str:
        """Text of all turns."""
        return "\n".join(text for _, text in self.messages)

    @property
    def key(self) -> str:
        """Digest of the content: words and pictures, without seed, n, and the key of the fences."""
        pictures = [hashlib.sha256(image).hexdigest() for image in self.images]
        return hashlib.sha256(json.dumps([[(role, without_key(text)) for role, text in self.messages], pictures]).encode()).hexdigest()


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One choice. A plain string stands for a choice that ended by itself."""

    text: str = ""
    finish: str = "stop"
    """`length`: cut off at the limit; `content_filter`: withheld."""
    refusal: str | None = None
    logprobs: tuple[float, ...] | None = None
    token_ids: tuple[int, ...] | None = None
    tokens: tuple[str | bytes, ...] | None = None
    """Tokens of the text, with one log-probability each; bytes if a token is a part of a character."""
    top_logprobs: tuple[tuple[TokenChance, ...], ...] | None = None
    """Likeliest tokens at each position."""
    calls: tuple[ToolCall, ...] = ()
    """Calls of tools. A ScriptedServer sends them by the native APIs only."""


Answers = Callable[[Question, int], str | Reply]
"""A function from a question and a sample number, from 0, to an answer. Raises LookupError for a question that is not in the script."""


def table(answers: Mapping[str, Sequence[str | Reply]]) -> Answers:
    """Return answers by words that the question contains. The texts of the first entry that fits are taken in turn by sample number."""

    def answer(question: Question, sample: int) -> str | Reply:
        for words, texts in answers.items():
            if words in question.text:
                return texts[sample % len(texts)]
        raise LookupError(f"no entry of the script is in {question.messages[-1][1][:200]!r}")

    return answer


def question_of(request: ChatRequest, model: str) -> Question:
    """Return the question in a request."""
    parts = [part for message in request.sent() for part in message.parts]
    return Question(
        messages=tuple((m.role, "\n".join(part.text for part in m.parts if isinstance(part, Text))) for m in request.sent()),
        images=tuple(part.data for part in parts if isinstance(part, Image)),
        model=model,
        n=request.sampling.n,
        seed=request.sampling.seed,
    )


def question(body: Mapping[str, Any]) -> Question:
    """Return the question in the body of a Chat Completions request. Raises ValueError if the body is invalid."""
    try:
        messages = [(str(m["role"]), *_content(m["content"])) for m in body["messages"]]
        return Question(
            messages=tuple((role, text) for role, text, _ in messages),
            images=tuple(image for _, _, images in messages for image in images),
            model=str(body["model"]),
            n=int(body.get("n", 1)),
            seed=body.get("seed"),
        )
    except (KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise ValueError(f"no chat completion request: {type(error).__name__} {error}") from error


def _content(content: str | Sequence[Mapping[str, Any]]) -> tuple[str, list[bytes]]:
    if isinstance(content, str):
        return content, []
    words = [part["text"] for part in content if part["type"] == "text"]
    urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    return "\n".join(words), [base64.b64decode(url.partition(";base64,")[2], validate=True) for url in urls]


def reply(answer: str | Reply) -> Reply:
    """Return an answer as a Reply."""
    return Reply(text=answer) if isinstance(answer, str) else answer


def completion(question: Question, replies: Sequence[Reply]) -> dict[str, Any]:
    """Return the server's JSON for replies. A token counts as four characters, a picture as 85 tokens."""
    asked, answered = asked_tokens(question), tokens_of(replies)
    return {
        "id": f"chatcmpl-{question.key[:12]}",
        "object": "chat.completion",
        "created": 0,
        "model": question.model,
        "choices": [_written(index, reply) for index, reply in enumerate(replies)],
        "usage": {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered},
    }


def asked_tokens(question: Question) -> int:
    """Return the tokens of a question."""
    return sum(_tokens(text) for _, text in question.messages) + 85 * len(question.images)


def tokens_of(replies: Sequence[Reply]) -> int:
    """Return the tokens of replies."""
    return sum(_tokens(reply.text or reply.refusal or "") for reply in replies)


def classification(question: Question, replies: Sequence[Reply]) -> dict[str, Any]:
    """Return a classifier's JSON. The text of the one reply is the probability."""
    usage = completion(question, replies)["usage"]
    return {"data": float(replies[0].text), "model": question.model, "usage": usage}


def vectors(texts: Sequence[str]) -> dict[str, Any]:
    """Return the server's JSON for embeddings of texts: four numbers each, from the text's digest."""
    data = [{"object": "embedding", "index": i, "embedding": [b / 255 for b in hashlib.sha256(text.encode()).digest()[:4]]}
            for i, text in enumerate(texts)]  # fmt: skip
    tokens = sum(map(_tokens, texts))
    return {"object": "list", "data": data, "model": "scripted", "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}


def _written(index: int, reply: Reply) -> dict[str, Any]:
    message = {"role": "assistant", "content": None if reply.refusal else reply.text, "refusal": reply.refusal}
    out: dict[str, Any] = {"index": index, "message": message, "finish_reason": reply.finish, "logprobs": None}
    if reply.logprobs is not None or reply.top_logprobs is not None:
        out["logprobs"] = {"content": _positions(reply)}
    if reply.token_ids is not None:
        out["token_ids"] = list(reply.token_ids)
    return out


def _positions(reply: Reply) -> list[dict[str, Any]]:
    tops = reply.top_logprobs or ()
    logprobs = reply.logprobs or tuple(top[0].logprob for top in tops)
    tokens = reply.tokens or ("?",) * len(logprobs)
    listed = [[_token(one.text) | {"logprob": one.logprob} for one in top] for top in tops] or [[]] * len(logprobs)
    return [_token(token) | {"logprob": logprob, "top_logprobs": top} for token, logprob, top in zip(tokens, logprobs, listed, strict=True)]


def _token(token: str | bytes) -> dict[str, Any]:
    given = token if isinstance(token, bytes) else token.encode()
    return {"token": given.decode(errors="replace"), "bytes": list(given)}


def _tokens(text: str) -> int:
    return -(-len(text) // 4)


_PICTURES = ("image", "input_image")


def native_question(body: Mapping[str, Any]) -> Question:
    """Return the question in the body of a request of either API. Raises ValueError if the body is invalid."""
    try:
        turns = [{"role": "system", "content": body["system"]}] if "system" in body else []
        turns += [turn for turn in body["input" if "input" in body else "messages"] if "role" in turn]
        contents = [(str(turn["role"]), *_native_content(turn["content"])) for turn in turns]
        return Question(
            messages=tuple((role, text) for role, text, _ in contents),
            images=tuple(image for _, _, images in contents for image in images),
            model=str(body["model"]),
        )
    except (KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise ValueError(f"no request of a native API: {type(error).__name__} {error}") from error


def _native_content(content: str | Sequence[Mapping[str, Any]]) -> tuple[str, list[bytes]]:
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
