"""Questions to a model whose answers are parsed; a parse error is sent back at most twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

import msgspec

from exact.errors import ActionError, AnswerError, ModelError, PromptRefused
from exact.models.base import ChatModel, ChatRequest, Choice, Message, Text
from exact.models.wire import SEEDS
from exact.prompts.fence import fence

ATTEMPTS = 3
"""Attempts at one question: the first, and two with the parse error."""

_SHOWN = 2000
_WITHHELD = {
    "content_filter": "the answer was withheld by the server's content filter",
    "refusal": "the answer was a refusal",
    "empty": "the server gave no answer",
}

_NOTHING = Choice(text="")

T = TypeVar("T")


async def ask(model: ChatModel, request: ChatRequest, parse: Callable[[str], T], *, seed: int, repair: bool = False) -> list[T]:
    """Return the parsed values of the samples, in order, as `read` does, without the choices."""
    return [said for _, said in await read(model, request, parse, seed=seed, repair=repair)]


async def read(
    model: ChatModel, request: ChatRequest, parse: Callable[[str], T], *, seed: int, repair: bool = False
) -> list[tuple[Choice, T]]:
    """Return the choices that parse, in order, with their parsed values; at least one: see `read_choices`.

    `parse` reads a text. A sample that was cut off at the limit of tokens does not parse, because its last line may be half a line.
    """
    limit = request.sampling.max_tokens

    def parse_whole(choice: Choice) -> T:
        if choice.finish == "length":
            raise AnswerError(f"the answer was cut off at the limit of {limit} tokens: think in fewer words")
        return parse(choice.text)

    return await read_choices(model, request, parse_whole, seed=seed, repair=repair)


async def read_choices(
    model: ChatModel, request: ChatRequest, parse: Callable[[Choice], T], *, seed: int, repair: bool = False
) -> list[tuple[Choice, T]]:
    """Return the choices that parse, in order, with their parsed values; at least one.

    `parse` raises ActionError or AnswerError, whose text goes back to the model. A sample that the server withheld does not parse. Only
    when no sample parses is the question asked again; with `repair` also once for the samples that do not, with the first one's error. Each
    attempt's `sampling.seed` is drawn from (`seed`, role, node, attempt, draw). Raises AnswerError when the last attempt gives nothing
    either, PromptRefused if the server's filter withheld all answers, and ModelError; that too if the model did not respond each time,
    because its server gave no answer.
    """
    asked, error, shown, found, wanted = request, "", _NOTHING, list[tuple[Choice, T]](), request.sampling.n
    silent = withheld = 0
    for attempt in range(ATTEMPTS):
        keyed = call_seed(seed, request.role, request.node, attempt, request.draw)
        sampling = msgspec.structs.replace(request.sampling, seed=keyed, n=wanted)
        asked = msgspec.structs.replace(request, messages=_with_error(request, shown, error), sampling=sampling, attempt=attempt)
        answer = await model.complete(asked)
        silent += all(choice.finish == "empty" for choice in answer.choices)
        withheld += all(choice.finish == "content_filter" for choice in answer.choices)
        errors: list[tuple[Choice, str]] = []
        for choice in answer.choices:
            try:
                found.append((choice, _parsed(choice, parse)))
            except (ActionError, AnswerError) as failed:
                errors.append((choice, str(failed)))
        if found and not (repair and errors and attempt == 0):
            return found
        shown, error = errors[0] if errors else (_NOTHING, "the server gave no answer")
        wanted = len(errors) if found else wanted
    if silent:
        raise ModelError(
            f"the server of {model.name} gave no answer to {silent} of {ATTEMPTS} questions for the {request.role}; no other can be read"
        )
    kind = PromptRefused if withheld == ATTEMPTS else AnswerError
    raise kind(f"{model.name} gave nothing for the {request.role} that can be read, asked {ATTEMPTS} times: {error}")


def call_seed(seed: int, role: str, node: int, attempt: int, draw: int = 0) -> int:
    """Return the sampling seed of a call, in [0, 2**31): equal for equal arguments on any machine."""
    about = f"{seed}/{role}/{node}/{attempt}" + (f"/{draw}" if draw else "")
    digest = hashlib.blake2b(about.encode(), digest_size=8).digest()
    return int.from_bytes(digest) % SEEDS


def _parsed(choice: Choice, parse: Callable[[Choice], T]) -> T:
    if choice.finish in _WITHHELD:
        raise AnswerError(_WITHHELD[choice.finish])
    return parse(choice)


def _with_error(request: ChatRequest, said: Choice, error: str) -> tuple[Message, ...]:
    """Return the question, followed by the answer that did not parse and the error, if there is one.

    The answer has its reasoning and its calls of tools with it, unless it was cut off. The error stands in a fence, because it may repeat
    the page's words: names of elements, a message of the environment.
    """
    if not error:
        return request.messages
    text = said.shown if len(said.shown) <= _SHOWN else f"{said.shown[:_SHOWN]}..."
    items = () if said.finish == "length" or said.finish in _WITHHELD else said.items
    again = f"That cannot be used:\n{fence(error, 'error')}\nAnswer again, in the form that was asked for."
    return (*request.messages, Message("assistant", (Text(text or "(nothing)"),), items), Message("user", (Text(again),)))
