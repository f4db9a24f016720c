"""Chat Completions on the wire: a request as JSON, and the server's JSON as an answer."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Mapping
from typing import Any

import msgspec

from exact.models.base import ChatAnswer, ChatRequest, Choice, Image, Message, Sampling, Text, TokenChance, Usage
from exact.models.providers import ModelCapabilities

SEEDS = 2**31
"""Upper bound of seeds, exclusive. Every server takes seeds in [0, SEEDS)."""

LEAST_LOGPROB = -9999.0
"""Log-probability of what cannot be, as servers write it that cannot write minus infinity."""
_SPOKEN = ("text", "output_text", None)
"""Types of parts of an answer that belong to its text."""
_FINISHES = {
    **dict.fromkeys(("length", "max_tokens", "model_length", "max_output_tokens"), "length"),
    **dict.fromkeys(("content_filter", "safety", "content_filtered", "prohibited_content", "blocklist", "sensitive"), "content_filter"),
}
"""Servers' words for how an answer ended, in lower case, and the API's own."""
NO_PICTURES = "pictures"
"""Note of an answer to a request whose pictures were left out."""
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
    out |= _logprobs(sampling, takes, notes) | _form(request, takes, notes)
    return out, tuple(notes)


def _logprobs(sampling: Sampling, takes: ModelCapabilities, notes: list[str]) -> dict[str, Any]:
    """Return the fields for log-probabilities: of at most as many likeliest tokens as the server lists."""
    if not sampling.logprobs:
        return {}
    if takes.logprobs is False:
        notes.append("logprobs")
        return {}
    wanted = sampling.top_logprobs or 0
    top = wanted if takes.top_logprobs is None else min(wanted, takes.top_logprobs)
    if wanted and not top:
        notes.append("top_logprobs")
    return {"logprobs": True} | ({"top_logprobs": top} if top else {})


def _form(request: ChatRequest, takes: ModelCapabilities, notes: list[str]) -> dict[str, Any]:
    """Return the fields that constrain the answer: a JSON Schema, a grammar."""
    out: dict[str, Any] = {}
    if request.schema is not None and takes.json_schema is not False:
        schema = {"name": "answer", "schema": dict(request.schema), "strict": True}
        out["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.grammar and takes.grammar is not False:
        field = takes.grammar or "grammar"
        out[field] = {"grammar": request.grammar} if field == "structured_outputs" else request.grammar
    elif request.grammar:
        notes.append("grammar")
    return out


def question(request: ChatRequest, model: str, takes: ModelCapabilities) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the request to a classifier, which has messages only, and notes on what is left out."""
    notes = list[str]()
    return {"model": model, "messages": _messages(request.messages, takes, notes)}, tuple(notes)


def _messages(messages: tuple[Message, ...], takes: ModelCapabilities, notes: list[str]) -> list[dict[str, Any]]:
    if takes.images is False and any(isinstance(part, Image) for message in messages for part in message.parts):
        messages = tuple(Message(m.role, tuple(_NO_PICTURE if isinstance(part, Image) else part for part in m.parts)) for m in messages)
        notes.append(NO_PICTURES)
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


def answer(raw: str) -> ChatAnswer:
    """Return the answer in a server's JSON, with all its choices and without a cost. Raises MalformedAnswer.

    Only what is needed is read: a field of another shape than expected is taken as missing. A refusal is a choice whose `finish` is
    `refusal` and whose text is the refusal.
    """
    data = _decoded(raw)
    given = data.get("choices")
    if not isinstance(given, list):
        raise MalformedAnswer(f"no choices: {raw[:120]!r}")
    choices = [each for each in given if isinstance(each, dict)]
    places = {id(each): _whole(each.get("index"), default=at) for at, each in enumerate(choices)}
    choices.sort(key=lambda each: places[id(each)])
    return ChatAnswer(choices=tuple(map(_choice, choices)), usage=_usage(data.get("usage")), model=_text(data.get("model")), raw=raw)


def _choice(choice: Mapping[str, Any]) -> Choice:
    said = _object(choice.get("message"))
    text, refusal = _text(said.get("content")) or _text(choice.get("text")), _text(said.get("refusal"))
    tokens = [each for each in _list(_object(choice.get("logprobs")).get("content")) if isinstance(each, dict)]
    logprobs = tuple(logprob for each in tokens if (logprob := _logprob(each.get("logprob"))) is not None)
    finish = _text(choice.get("finish_reason"))
    return Choice(
        text=text or refusal,
        finish="refusal" if refusal else _FINISHES.get(finish.lower(), finish),
        token_ids=_ids(choice.get("token_ids")) or _ids([each.get("id") for each in tokens]) or _ids_in_names(tokens),
        logprobs=logprobs if tokens and len(logprobs) == len(tokens) else None,
        ends=_ends(tokens, text),
        top_logprobs=_tops(tokens),
    )


def _text(content: object) -> str:
    """Return a text, or the texts of a list of parts. Parts of reasoning are left out."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") in _SPOKEN else part for part in _list(content)]
    return "".join(text for text in texts if isinstance(text, str))


def _ids(given: object) -> tuple[int, ...] | None:
    ids = _list(given)
    return tuple(ids) if ids and all(isinstance(each, int) for each in ids) else None


def _ids_in_names(tokens: list[dict[str, Any]]) -> tuple[int, ...] | None:
    """Return the token ids that vLLM gives as `token_id:123` in place of text (option `return_tokens_as_token_ids`); None without them."""
    names = [_text(each.get("token")) for each in tokens]
    if not names or not all(name.removeprefix("token_id:").isdigit() and ":" in name for name in names):
        return None
    return tuple(int(name.partition(":")[2]) for name in names)


def _ends(tokens: list[dict[str, Any]], text: str) -> tuple[int, ...] | None:
    """Return the position in the text at which each token ends. None where the tokens do not make up the text."""
    decoder, ends, written = codecs.getincrementaldecoder("utf-8")(errors="replace"), list[int](), ""
    for token in tokens:
        written += decoder.decode(_bytes(token))
        ends.append(len(written))
    begins = written.rfind(text) if text else -1
    return None if begins < 0 else tuple(min(len(text), max(0, end - begins)) for end in ends)


def _tops(tokens: list[dict[str, Any]]) -> tuple[tuple[TokenChance, ...], ...] | None:
    """Return the likeliest tokens at each position; None where the server lists none."""
    found = tuple(tuple(_chances(token.get("top_logprobs"))) for token in tokens)
    return found if any(found) else None


def _chances(given: object) -> list[TokenChance]:
    listed = [each for each in _list(given) if isinstance(each, dict)]
    chances = [(_bytes(each).decode(errors="replace"), _logprob(each.get("logprob"))) for each in listed]
    return sorted((TokenChance(text, logprob) for text, logprob in chances if logprob is not None), key=lambda one: -one.logprob)


def _bytes(token: Mapping[str, Any]) -> bytes:
    """Return the bytes of a token: `bytes`, where a part of a character may stand, else its text."""
    given = _list(token.get("bytes"))
    if given and all(isinstance(each, int) and 0 <= each < 256 for each in given):
        return bytes(given)
    return _text(token.get("token")).encode()


def _logprob(value: object) -> float | None:
    """Return a log-probability, at least LEAST_LOGPROB; None where the value is none."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not value <= 1.0:
        return None
    return float(max(value, LEAST_LOGPROB))


def _usage(usage: object) -> Usage:
    given = _object(usage)
    prompt, completion = _whole(given.get("prompt_tokens")), _whole(given.get("completion_tokens"))
    cached = _whole(_object(given.get("prompt_tokens_details")).get("cached_tokens")) or _whole(given.get("prompt_cache_hit_tokens"))
    return Usage(input_tokens=prompt, cached_tokens=min(cached, prompt), output_tokens=completion)


def classified(raw: str) -> ChatAnswer:
    """Return a classifier's answer: one choice, whose text is the probability of success. Raises MalformedAnswer.

    `data` is that number, or as vLLM gives it a list with the probabilities of the classes: of one class, or of two, the second being
    success.
    """
    answer = _decoded(raw)
    data = answer.get("data")
    if isinstance(data, list) and len(data) == 1:
        probabilities = _list(_object(data[0]).get("probs"))
        data = probabilities[-1] if len(probabilities) in (1, 2) else None
    if not isinstance(data, int | float) or isinstance(data, bool):
        raise MalformedAnswer(f"neither a probability nor those of one or two classes: {raw[:120]!r}")
    choice = Choice(text=repr(float(data)), finish="stop")
    return ChatAnswer(choices=(choice,), usage=_usage(answer.get("usage")), model=_text(answer.get("model")), raw=raw)


class Embedded(msgspec.Struct, frozen=True, kw_only=True):
    """Vectors of texts, in order."""

    vectors: tuple[tuple[float, ...], ...]
    usage: Usage


def embedded(raw: str) -> Embedded:
    """Return the vectors in a server's JSON. Raises MalformedAnswer."""
    data = _decoded(raw)
    rows = _list(data.get("data"))
    try:
        given = [
            (_whole(row.get("index"), default=at), msgspec.convert(row["embedding"], tuple[float, ...])) for at, row in enumerate(rows)
        ]
    except (AttributeError, KeyError, msgspec.ValidationError) as error:
        raise MalformedAnswer(f"no vector of numbers ({error}): {raw[:120]!r}") from error
    if not rows:
        raise MalformedAnswer(f"no vectors: {raw[:120]!r}")
    return Embedded(vectors=tuple(vector for _, vector in sorted(given, key=lambda row: row[0])), usage=_usage(data.get("usage")))


def _decoded(raw: str) -> dict[str, Any]:
    """Return a JSON object. Raises MalformedAnswer."""
    try:
        data = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise MalformedAnswer(f"{error}: {raw[:120]!r}") from error
    if not isinstance(data, dict):
        raise MalformedAnswer(f"no object: {raw[:120]!r}")
    return data


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: object, default: int = 0) -> int:
    """Return a count as a whole number; the default where it is none."""
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**53 else default
