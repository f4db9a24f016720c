"""Lenient reading of servers' JSON: a field of another shape than expected is taken as missing.

Answers that a server streams although it was not asked to: one JSON object is made of their events.

Log-probabilities of an answer's tokens, as OpenAI's APIs and the servers that follow them give them.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import msgspec

from exact.models.base import TokenChance


class MalformedAnswer(ValueError):
    """Raised when the server's answer does not have the form that its API specifies."""


class FailedAnswer(Exception):
    """Raised when an answer with status 200 says that the request failed."""

    def __init__(self, status: int, message: str, *, code: str = "") -> None:
        """Describe the failure. `status` is the HTTP status that the failure amounts to."""
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


def decoded(raw: str) -> dict[str, Any]:
    """Return a JSON object. Raises MalformedAnswer."""
    try:
        data = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise MalformedAnswer(f"{error}: {raw[:120]!r}") from error
    if not isinstance(data, dict):
        raise MalformedAnswer(f"no object: {raw[:120]!r}")
    return data


_LINE_END = re.compile(r"\r\n|\n|\r")
_GROWING = frozenset(("content", "reasoning", "reasoning_content", "refusal", "arguments", "text"))
"""Texts that each event continues. Other texts are repeated or replaced."""
_COUNTED = frozenset(("choices", "tool_calls"))
"""Lists whose objects have an `index`, by which events continue them."""
_ENDINGS = ("response.completed", "response.incomplete", "response.failed")
"""Events of the Responses API that hold the answer as a whole."""


def unstreamed(text: str) -> str:
    """Return the JSON of an answer that was streamed. Any other text is returned without a byte order mark and the end mark of a stream.

    A stream that breaks off, or that cannot be read, is returned as it is. One that reports an error is the object with the error.
    """
    text = text.removeprefix("\ufeff")
    before, _, last = text.rpartition("data:")
    ended = last.strip() == "[DONE]"
    plain = before if ended else text
    if not plain.lstrip().startswith(("data:", "event:", "id:", "retry:", ":")):
        return plain
    try:
        events = list(_events(plain))
        whole_one = _whole_answer(events, ended=ended)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return text
    return text if whole_one is None else msgspec.json.encode(whole_one).decode()


def _events(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a stream of server-sent events, with or without empty lines between them. Raises DecodeError."""
    data = list[str]()
    for line in (*_LINE_END.split(text), ""):
        if line.startswith("data:"):
            data.append(line[5:])
        elif not line.strip() and data:
            try:
                found = [msgspec.json.decode("\n".join(data))]
            except msgspec.DecodeError:
                found = [msgspec.json.decode(each) for each in data]
            yield from objects(found)
            data = []


def _whole_answer(events: list[dict[str, Any]], *, ended: bool) -> dict[str, Any] | None:
    """Return the answer that events make up; None if they break off before its end. `ended`: the stream has its end mark."""
    if failed := next((each for each in events if each.get("error")), None):
        return failed
    if found := next((each["response"] for each in reversed(events) if each.get("type") in _ENDINGS), None):
        return dict(as_object(found))
    if found := next((as_object(each.get("message")) for each in events if each.get("type") == "message_start"), None):
        return _whole_message(found, events)
    while len(events) > 1:
        events = [_joined(one, other) for one, other in zip_longest(events[::2], events[1::2])]
    choices = objects(events[0].get("choices")) if events else []
    if not choices or not (ended or all(each.get("finish_reason") for each in choices)):
        return None
    return events[0] | {"choices": [{"message": each.get("delta")} | each for each in choices]}


_GROWING_BLOCKS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""Texts of blocks that the events of the Messages API continue, by the type of the change."""


def _whole_message(started: Mapping[str, Any], events: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the answer of the Messages API that events make up; None if they break off before the reason for its end.

    The parameters of a tool come as pieces of JSON. Raises DecodeError if these make no JSON.
    """
    message, blocks, inputs = dict(started), dict[int, dict[str, Any]](), dict[int, str]()
    for event in events:
        at, delta = whole(event.get("index")), as_object(event.get("delta"))
        kind = as_text(delta.get("type"))
        if event.get("type") == "content_block_start":
            blocks[at] = dict(as_object(event.get("content_block")))
        elif event.get("type") == "content_block_delta" and kind == "input_json_delta":
            inputs[at] = inputs.get(at, "") + as_text(delta.get("partial_json"))
        elif event.get("type") == "content_block_delta" and (name := _GROWING_BLOCKS.get(kind)):
            block = blocks.setdefault(at, {"type": name})
            block[name] = as_text(block.get(name)) + as_text(delta.get(name))
        elif event.get("type") == "message_delta":
            message |= {**delta, "usage": {**as_object(message.get("usage")), **as_object(event.get("usage"))}}
    for at, text in inputs.items():
        blocks.setdefault(at, {"type": "tool_use"})["input"] = msgspec.json.decode(text or "{}")
    return message | {"content": [blocks[at] for at in sorted(blocks)]} if message.get("stop_reason") else None


def _joined(one: Any, other: Any = None, name: str = "") -> Any:
    """Return a value, named `name`, as the next event continues it."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, dict) and isinstance(other, dict):
        return one | {key: _joined(one.get(key), value, key) for key, value in other.items()}
    if isinstance(one, list) and isinstance(other, list) and name in _COUNTED:
        found: dict[int, dict[str, Any]] = {}
        for each in (*objects(one), *objects(other)):
            at = whole(each.get("index"))
            found[at] = _joined(found.get(at), each)
        return list(found.values())
    if isinstance(one, list) and isinstance(other, list):
        return [*one, *other]
    if isinstance(one, str) and isinstance(other, str) and name in _GROWING:
        return one + other
    return one if other == "" else other


def as_object(value: object) -> Mapping[str, Any]:
    """Return an object; an empty one if the value is not an object."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return a list; an empty one if the value is not a list."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return a text; an empty one if the value is not a text."""
    return value if isinstance(value, str) else ""


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    return [each for each in as_list(value) if isinstance(each, dict)]


def whole(value: object, default: int = 0) -> int:
    """Return a count as a whole number; the default if the value is not a count."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53 else default


LEAST_LOGPROB = -9999.0
"""Log-probability of an impossible token, as written by servers that cannot write minus infinity."""


def logprobs(tokens: list[dict[str, Any]]) -> tuple[float, ...] | None:
    """Return the log-probability of each token; None if there are none or one is missing."""
    found = tuple(logprob for each in tokens if (logprob := _logprob(each.get("logprob"))) is not None)
    return found if tokens and len(found) == len(tokens) else None


def ends(tokens: list[dict[str, Any]], text: str) -> tuple[int, ...] | None:
    """Return the position in the text at which each token ends. None if the tokens do not make up the text."""
    decoder, found, written = codecs.getincrementaldecoder("utf-8")(errors="replace"), list[int](), ""
    for token in tokens:
        written += decoder.decode(_bytes(token))
        found.append(len(written))
    begins = written.rfind(text) if text else -1
    return None if begins < 0 else tuple(min(len(text), max(0, end - begins)) for end in found)


def top_logprobs(tokens: list[dict[str, Any]]) -> tuple[tuple[TokenChance, ...], ...] | None:
    """Return the likeliest tokens at each position; None if the server lists none."""
    found = tuple(tuple(_chances(token.get("top_logprobs"))) for token in tokens)
    return found if any(found) else None


def _chances(given: object) -> list[TokenChance]:
    chances = [(_bytes(each).decode(errors="replace"), _logprob(each.get("logprob"))) for each in objects(given)]
    return sorted((TokenChance(text, logprob) for text, logprob in chances if logprob is not None), key=lambda one: -one.logprob)


def _bytes(token: Mapping[str, Any]) -> bytes:
    """Return the bytes of a token: `bytes`, which may hold a part of a character, else its text."""
    given = as_list(token.get("bytes"))
    if given and all(isinstance(each, int) and 0 <= each < 256 for each in given):
        return bytes(given)
    return as_text(token.get("token")).encode()


def _logprob(value: object) -> float | None:
    """Return a log-probability, at least LEAST_LOGPROB; None if the value is not a number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not value <= 1.0:
        return None
    return float(max(value, LEAST_LOGPROB))
