"""Chat Completions on the wire: a request as JSON, and the server's JSON as an answer.

Answers as JSON in place of the lines that a prompt asks for, if the server constrains them.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from exact.config.models import Structured
from exact.models.base import ChatAnswer, ChatRequest, Choice, Image, Message, Sampling, Text, Usage
from exact.models.decode import MalformedAnswer, as_list, as_object, decoded, ends, logprobs, objects, top_logprobs, whole
from exact.models.providers import ModelCapabilities
from exact.models.tokens import rough

PATH = "/chat/completions"
"""Path of the API under its address."""
KEY_HEADER = ""
"""Header that carries the key. Empty: the provider's usual one."""
REQUIRED = frozenset({"model", "messages"})
"""Fields that a request cannot do without."""
SEEDS = 2**31
"""Upper bound of seeds, exclusive. Every server takes seeds in [0, SEEDS)."""

_IDS = 2**53
"""Upper bound of token ids, exclusive."""
_LARGEST = 1e15
"""Largest number in a vector. The square of its length has to fit into 32 bits."""
_NAMED_ID = re.compile("token_id:[0-9]{1,15}")
_SPOKEN = ("text", "output_text", None)
"""Types of parts of an answer that belong to its text."""
FINISHES = {
    **dict.fromkeys(("length", "max_tokens", "model_length", "max_output_tokens"), "length"),
    **dict.fromkeys(("content_filter", "safety", "content_filtered", "prohibited_content", "blocklist", "sensitive"), "content_filter"),
}
"""Servers' words for how an answer ended, in lower case, and the API's own."""
_READ = ("prompt_tokens", "input_tokens", "promptTokens", "inputTokens", "prompt_token_count", "promptTokenCount", "prompt_eval_count")
_WRITTEN = (
    *("completion_tokens", "output_tokens", "completionTokens", "outputTokens"),
    *("candidates_token_count", "candidatesTokenCount", "generated_tokens", "eval_count"),
)
_TOTAL = ("total_tokens", "totalTokens", "total_token_count", "totalTokenCount")
"""Servers' names for the tokens of the prompt, of the answer, and of both."""
TOOL = "answer"
"""Name of the tool whose parameters are an answer by a schema."""
NO_PICTURES = "pictures"
"""Note of an answer to a request whose pictures were left out."""
_NO_PICTURE = Text("[A picture stood here; this model takes none.]")


def body(request: ChatRequest, model: str, *, n: int, index: int, takes: ModelCapabilities) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the request for choices `index` to `index + n - 1`, and notes on the parts left out because the server refuses them.

    Values at the API's defaults are left out too, because not every server knows every field.
    """
    sampling, notes = request.sampling, list[str]()
    out: dict[str, Any] = {"model": model, "messages": turns(request.sent(), takes, notes)}
    out |= sampling_fields(sampling, takes, notes)
    out[takes.limit or "max_tokens"] = max(sampling.max_tokens, takes.least_tokens or 1)
    if n > 1:
        out["n"] = n
    if sampling.seed is not None and takes.seed is not False:
        out["seed"] = (sampling.seed + index) % SEEDS
    out |= _logprobs(sampling, takes, notes) | _form(request, takes, notes)
    if takes.cache:
        out["prompt_cache_key"] = cache_key(request, model)
    return out, tuple(notes)


def sampling_fields(sampling: Sampling, takes: ModelCapabilities, notes: list[str]) -> dict[str, Any]:
    """Return temperature and top_p, as far as the server takes them, which all APIs name alike. Add notes on the parts left out."""
    if takes.sampling is False:
        notes.append("temperature and top_p")
        return {}
    if takes.both is not False:
        return {"temperature": sampling.temperature, "top_p": sampling.top_p}
    if sampling.top_p != 1.0:
        notes.append("top_p")
    return {"temperature": sampling.temperature}


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
    elif request.schema is not None and takes.tools:
        function = {"name": TOOL, "description": "Gives the answer.", "parameters": dict(request.schema)}
        out |= {"tools": [{"type": "function", "function": function}], "tool_choice": {"type": "function", "function": {"name": TOOL}}}
    if request.grammar and takes.grammar is not False:
        field = takes.grammar or "grammar"
        out[field] = {"grammar": request.grammar} if field == "structured_outputs" else request.grammar
    elif request.grammar:
        notes.append("grammar")
    return out


def cache_key(request: ChatRequest, model: str) -> str:
    """Return the key by which a server finds requests that begin alike: the digest of the model and of the first turn."""
    first = "\n".join(part.text for part in request.messages[0].parts if isinstance(part, Text))
    return "exact-" + hashlib.sha256(f"{model}\n{first}".encode()).hexdigest()[:24]


def headers(body: dict[str, Any]) -> dict[str, str]:
    """Return no further headers."""
    return {}


def turns(messages: tuple[Message, ...], takes: ModelCapabilities, notes: list[str]) -> list[dict[str, Any]]:
    """Return the messages as JSON, without the parts that the server refuses, and note those."""
    return [_message(message) for message in supported(messages, takes, notes)]


def supported(messages: tuple[Message, ...], takes: ModelCapabilities, notes: list[str]) -> tuple[Message, ...]:
    """Return the messages without the pictures and the system turn that the server refuses, and note the parts left out."""
    if takes.images is False and any(isinstance(part, Image) for message in messages for part in message.parts):
        messages = tuple(
            msgspec.structs.replace(m, parts=tuple(_NO_PICTURE if isinstance(part, Image) else part for part in m.parts)) for m in messages
        )
        notes.append(NO_PICTURES)
    if takes.system is False:
        messages = _without_system(messages)
    return messages


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
    return {"type": "image_url", "image_url": {"url": data_url(part)}}


def data_url(picture: Image) -> str:
    """Return a picture as a `data:` URL."""
    return f"data:{picture.media_type};base64,{base64.b64encode(picture.data).decode()}"


def answer(raw: str) -> ChatAnswer:
    """Return the answer in a server's JSON, with all its choices and without a cost. Raises MalformedAnswer.

    Only the needed fields are read: a field of another shape than expected is taken as missing. A refusal is a choice whose `finish` is
    `refusal` and whose text is the refusal.
    """
    data = decoded(raw)
    given = data.get("choices")
    if not isinstance(given, list):
        raise MalformedAnswer(f"no choices: {raw[:120]!r}")
    choices = objects(given)
    places = {id(each): whole(each.get("index"), default=at) for at, each in enumerate(choices)}
    choices.sort(key=lambda each: places[id(each)])
    read = tuple(map(_choice, choices))
    tokens = _of_all(usage(as_object(data.get("usage")) or data), data, read)
    return ChatAnswer(choices=read, usage=tokens, model=_text(data.get("model")), raw=raw)


def _choice(choice: Mapping[str, Any]) -> Choice:
    said = as_object(choice.get("message"))
    text, refusal = _called(said) or _text(said.get("content")) or _text(choice.get("text")), _text(said.get("refusal"))
    tokens = objects(as_object(choice.get("logprobs")).get("content"))
    finish = _text(choice.get("finish_reason"))
    return Choice(
        text=text or refusal,
        finish="refusal" if refusal else FINISHES.get(finish.lower(), finish),
        token_ids=_ids(choice.get("token_ids")) or _ids([each.get("id") for each in tokens]) or _ids_in_names(tokens),
        logprobs=logprobs(tokens),
        ends=ends(tokens, text),
        top_logprobs=top_logprobs(tokens),
    )


def _called(said: Mapping[str, Any]) -> str:
    """Return the parameters with which the tool of an answer was called, as JSON; empty if it was not."""
    functions = [as_object(call.get("function")) for call in objects(said.get("tool_calls"))]
    given = next((function.get("arguments") for function in functions if function.get("name") == TOOL), None)
    return given if isinstance(given, str) else msgspec.json.encode(given).decode() if isinstance(given, dict) else ""


def _text(content: object) -> str:
    """Return a text, or the texts of a list of parts. Parts of reasoning are left out."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") in _SPOKEN else part for part in as_list(content)]
    return "".join(text for text in texts if isinstance(text, str))


def _ids(given: object) -> tuple[int, ...] | None:
    ids = as_list(given)
    return tuple(ids) if ids and all(type(each) is int and 0 <= each < _IDS for each in ids) else None


def _ids_in_names(tokens: list[dict[str, Any]]) -> tuple[int, ...] | None:
    """Return the token ids that vLLM gives as `token_id:123` in place of text (option `return_tokens_as_token_ids`); None without them."""
    names = [_text(each.get("token")) for each in tokens]
    if not names or not all(_NAMED_ID.fullmatch(name) for name in names):
        return None
    return tuple(int(name.partition(":")[2]) for name in names)


def usage(given: object) -> Usage:
    """Return the tokens that a server reports, under any of several servers' names.

    A part that is missing is the rest of the total. If only the total is given, all of it counts as input.
    """
    given = as_object(given)
    prompt, completion, whole_one = (_first(given, names) for names in (_READ, _WRITTEN, _TOTAL))
    if prompt is None:
        prompt = max(0, (whole_one or 0) - (completion or 0))
    if completion is None:
        completion = max(0, (whole_one or 0) - prompt)
    details, written = as_object(given.get("prompt_tokens_details")), as_object(given.get("completion_tokens_details"))
    cached = min(whole(details.get("cached_tokens")) or whole(given.get("prompt_cache_hit_tokens")), prompt)
    return Usage(
        input_tokens=prompt,
        cached_tokens=cached,
        cache_write_tokens=min(whole(details.get("cache_write_tokens")), prompt - cached),
        output_tokens=completion,
        reasoning_tokens=whole(written.get("reasoning_tokens")),
    )


def _first(given: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """Return the count under the first of some names that is there; None if none is."""
    name = next((name for name in names if given.get(name) is not None), None)
    return None if name is None else whole(given[name])


def _of_all(usage: Usage, data: Mapping[str, Any], choices: tuple[Choice, ...]) -> Usage:
    """Return the usage of all choices, with the output apart from the input.

    llama.cpp reports the tokens of the first of several choices, which its own timings give away. The others are counted by their
    log-probabilities, or estimated by the first. A total is split by an estimate of the texts.
    """
    sizes = [rough(choice.text) for choice in choices]
    if not usage.output_tokens:
        written = min(usage.input_tokens, sum(sizes))
        alone = _first(as_object(data.get("usage")), (*_READ, *_WRITTEN)) is None
        return msgspec.structs.replace(usage, input_tokens=usage.input_tokens - written, output_tokens=written) if alone else usage
    if len(choices) < 2 or whole(as_object(data.get("timings")).get("predicted_n")) != usage.output_tokens:
        return usage
    counted = [len(choice.logprobs or ()) for choice in choices]
    written = sum(counted) if all(counted) else round(usage.output_tokens * sum(sizes) / max(1, sizes[0]))
    return msgspec.structs.replace(usage, output_tokens=max(usage.output_tokens, written))


class Embedded(msgspec.Struct, frozen=True, kw_only=True):
    """Vectors of texts, in order."""

    vectors: tuple[tuple[float, ...], ...]
    usage: Usage


def embedded(raw: str) -> Embedded:
    """Return the vectors in a server's JSON. Raises MalformedAnswer."""
    data = decoded(raw)
    rows = as_list(data.get("data"))
    try:
        given = [(whole(row.get("index"), default=at), msgspec.convert(row["embedding"], tuple[float, ...])) for at, row in enumerate(rows)]
    except (AttributeError, KeyError, msgspec.ValidationError) as error:
        raise MalformedAnswer(f"no vector of numbers ({error}): {raw[:120]!r}") from error
    if not rows:
        raise MalformedAnswer(f"no vectors: {raw[:120]!r}")
    if len({len(vector) for _, vector in given}) != 1 or not given[0][1]:
        raise MalformedAnswer(f"vectors of different lengths, or empty ones: {raw[:120]!r}")
    if any(abs(each) > _LARGEST for _, vector in given for each in vector):
        raise MalformedAnswer(f"a vector with a number above {_LARGEST:g}: {raw[:120]!r}")
    return Embedded(vectors=tuple(vector for _, vector in sorted(given, key=lambda row: row[0])), usage=usage(data.get("usage")))


def structured(request: ChatRequest, mode: Structured, takes: ModelCapabilities) -> bool:
    """Return whether the answer to a request is requested as JSON.

    auto: only after an answer that did not parse. A request that has a schema, a grammar or a computer tool keeps it. A server that
    constrains nothing is asked for lines.
    """
    if (
        request.form is None
        or request.schema is not None
        or request.screen is not None
        or mode == "never"
        or (mode == "auto" and not request.attempt)
    ):
        return False
    if request.grammar and takes.grammar is not False:
        return False
    return takes.json_schema is not False or takes.tools is True


def as_json(request: ChatRequest) -> ChatRequest:
    """Return a request whose answer is a JSON object: with the form's schema, and an example of it at the end of the last turn."""
    assert request.form is not None, "only a request with a form is asked for as JSON"
    *before, last = request.messages
    words = Text(f"Write the answer as one JSON object in place of the lines: {request.form.example}")
    return msgspec.structs.replace(
        request, schema=request.form.schema, messages=(*before, msgspec.structs.replace(last, parts=(*last.parts, words)))
    )  # fmt: skip
