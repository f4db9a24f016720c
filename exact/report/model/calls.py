"""Model calls at a node: prompts as sent, answers as received."""

from __future__ import annotations

from typing import Any

import msgspec

from exact.errors import JournalError
from exact.models.base import ChatAnswer
from exact.report.model import data
from exact.report.model.reading import Reading
from exact.report.model.text import LABEL, Texts, one_line
from exact.runs.journal import events as ev


def calls(reading: Reading, node: int, texts: Texts) -> tuple[data.ModelCall, ...]:
    """Return the calls at a node in order. A missing blob is a warning, and its content is left out."""
    return tuple(_call(reading, called, texts) for called in reading.calls.get(node, ()))


def _call(reading: Reading, called: ev.Called, texts: Texts) -> data.ModelCall:
    answers, raw = _answers(reading, called, texts)
    s, u = called.sampling, called.usage
    cached = ", ".join(f"{tokens:,} {what}" for tokens, what in ((u.cached_tokens, "cached"), (u.cache_write_tokens, "written")) if tokens)
    reasoning = f" ({u.reasoning_tokens:,} of reasoning)" if u.reasoning_tokens else ""
    money = "price unknown" if u.cost is None else f"${u.cost:.4f}"
    return data.ModelCall(
        role=one_line(called.role, LABEL),
        model=one_line(called.model, LABEL),
        prompt=one_line(called.prompt, LABEL),
        attempt=called.attempt,
        sampling=f"n {s.n}, temperature {s.temperature:g}, top_p {s.top_p:g}, at most {s.max_tokens} tokens",
        usage=f"{u.input_tokens:,} tokens in{cached and f' ({cached})'}, {u.output_tokens:,} out{reasoning}, {money}",
        seconds=called.seconds,
        request=_request(reading, called, texts),
        answers=answers,
        raw=raw,
    )


def _blob(reading: Reading, name: str, kind: Any) -> Any:
    """Return a blob's JSON as `kind`; None, with a warning, where it is missing or damaged."""
    try:
        return reading.blobs.read(name, kind)
    except JournalError as error:
        reading.warnings.append(f"A model call cannot be shown: {error}")
        return None


class _MessagePart(msgspec.Struct):
    text: str = ""
    image: str = ""


class _Message(msgspec.Struct):
    role: str
    parts: tuple[_MessagePart, ...]


def _request(reading: Reading, called: ev.Called, texts: Texts) -> tuple[data.PromptTurn, ...]:
    messages: tuple[_Message, ...] = _blob(reading, called.request, tuple[_Message, ...]) or ()
    return tuple(data.PromptTurn(role=one_line(m.role, LABEL), text=texts.add(_written(m))) for m in messages)


def _written(message: _Message) -> str:
    return "\n".join(part.text or f"[picture {part.image[:12]}]" for part in message.parts)


def _answers(reading: Reading, called: ev.Called, texts: Texts) -> tuple[tuple[data.PromptTurn, ...], int | None]:
    answer: ChatAnswer | None = _blob(reading, called.answer, ChatAnswer)
    if answer is None:
        return (), None
    return tuple(
        data.PromptTurn(role=one_line(choice.finish, LABEL), text=texts.add(choice.shown)) for choice in answer.choices
    ), texts.add(answer.raw)
