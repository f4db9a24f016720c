"""Questions to a model whose answers are parsed; a parse error is sent back at most twice."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import msgspec

from exact.errors import ActionError, AnswerError, ModelError, PromptRefused
from exact.models.base import ChatModel, ChatRequest, Choice, Message, Text
from exact.models.wire import SEEDS
from exact.prompts.fence import fence, without_echo

ATTEMPTS = 3
"""Attempts at one question: the first, and two with the parse error."""

_SHOWN = 2000
_WITHHELD = {
    "content_filter": "the answer was withheld by the server's content filter",
    "refusal": "the answer was a refusal",
    "empty": "the server gave no answer",
}

_NOTHING = Choice(text="")

AGAIN = "Answer again, in the form that was asked for."
_ITEM = re.compile(r"\s*\d+\.")
"""Matches the number of an item of a list, which ends no sentence."""
_SENTENCE_END = re.compile(r"[.!?][\"'”’)]*(?=\s|$)|[。！？]")

P = ParamSpec("P")
T = TypeVar("T")


def asks(form: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator of a parser whose errors ask for a form, in one sentence that holds nothing to copy."""

    def decorated(parse: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(parse)
        def parsed(*args: P.args, **more: P.kwargs) -> T:
            try:
                return parse(*args, **more)
            except (ActionError, AnswerError) as error:
                error.form = error.form or f"Answer again: {form}."
                raise

        return parsed

    return decorated


def whole_lines(text: str) -> str:
    """Return the lines of a text that was cut off, without the last, which may be half a line."""
    return text.rpartition("\n")[0]


def whole_sentences(text: str) -> str:
    """Return a text that was cut off up to its last whole sentence; empty if it has none."""
    ends = [end for found in _SENTENCE_END.finditer(text) if not _ITEM.fullmatch(text[: (end := found.end())].rpartition("\n")[2])]
    return text[: ends[-1]].rstrip() if ends else ""


async def ask(
    model: ChatModel,
    request: ChatRequest,
    parse: Callable[[str], T],
    *,
    seed: int,
    repair: bool = False,
    cut: Callable[[str], str] = whole_lines,
) -> list[T]:
    """Return the parsed values of the samples, in order, as `read` does, without the choices."""
    return [said for _, said in await read(model, request, parse, seed=seed, repair=repair, cut=cut)]


async def read(
    model: ChatModel,
    request: ChatRequest,
    parse: Callable[[str], T],
    *,
    seed: int,
    repair: bool = False,
    cut: Callable[[str], str] = whole_lines,
) -> list[tuple[Choice, T]]:
    """Return the choices that parse, in order, with their parsed values; at least one: see `read_choices`.

    `parse` reads a text. Of a sample that ended at the limit of tokens it reads the part that `cut` returns.
    """
    limit = request.sampling.max_tokens

    def parse_whole(choice: Choice) -> T:
        if choice.finish != "length":
            return parse(choice.text)
        try:
            return parse(cut(choice.text))
        except (ActionError, AnswerError) as error:
            failed = AnswerError(f"the answer was cut off at the limit of {limit} tokens: {error}")
            failed.form = f"{error.form or AGAIN} Use fewer words."
            raise failed from error

    return await read_choices(model, request, parse_whole, seed=seed, repair=repair)


async def read_choices(
    model: ChatModel, request: ChatRequest, parse: Callable[[Choice], T], *, seed: int, repair: bool = False
) -> list[tuple[Choice, T]]:
    """Return the choices that parse, in order, with their parsed values; at least one.

    `parse` raises ActionError or AnswerError, whose `form` goes back to the model. It reads a sample without the lines that repeat the
    prompt. A sample that the server withheld does not parse. Only if no sample parses is the question asked again; with `repair` also once
    for the samples that do not, with the first one's error. Each attempt's `sampling.seed` is drawn from (`seed`, role, node, attempt,
    draw). Raises AnswerError if the last attempt gives nothing either, PromptRefused if the server's filter withheld all answers, and
    ModelError; that too if the model did not respond each time, because its server gave no answer.
    """
    asked, shown, found, wanted = request, _NOTHING, list[tuple[Choice, T]](), request.sampling.n
    error: ActionError | AnswerError | None = None
    silent = withheld = 0
    for attempt in range(ATTEMPTS):
        keyed = call_seed(seed, request.role, request.node, attempt, request.draw)
        sampling = msgspec.structs.replace(request.sampling, seed=keyed, n=wanted)
        asked = msgspec.structs.replace(request, messages=_again(request, shown, error), sampling=sampling, attempt=attempt)
        answer = await model.complete(asked)
        silent += all(choice.finish == "empty" for choice in answer.choices)
        withheld += all(choice.finish == "content_filter" for choice in answer.choices)
        errors: list[tuple[Choice, ActionError | AnswerError]] = []
        for choice in answer.choices:
            try:
                found.append((choice, _parsed(choice, parse, request)))
            except (ActionError, AnswerError) as failed:
                errors.append((choice, failed))
        if found and not (repair and errors and attempt == 0):
            return found
        shown, error = errors[0] if errors else (_NOTHING, AnswerError("the server gave no answer"))
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


def _parsed(choice: Choice, parse: Callable[[Choice], T], request: ChatRequest) -> T:
    if choice.finish in _WITHHELD:
        raise AnswerError(_WITHHELD[choice.finish])
    prompts = ["".join(part.text for part in each.parts if isinstance(part, Text)) for each in request.messages if each.role != "assistant"]
    return parse(msgspec.structs.replace(choice, text=without_echo(choice.text, prompts)))


def _again(request: ChatRequest, said: Choice, error: ActionError | AnswerError | None) -> tuple[Message, ...]:
    """Return the question, followed by the answer that did not parse and one sentence that names the form, if there is an error.

    The answer has its reasoning and its calls of tools with it, unless it was cut off. The sentence stands outside of all fences, whose
    text is data, and holds no word of the page. A fault of an action or of an object may, such as the name of an element: it stands in one.
    """
    if error is None:
        return request.messages
    text = said.shown if len(said.shown) <= _SHOWN else f"{said.shown[:_SHOWN]}..."
    items = () if said.finish == "length" or said.finish in _WITHHELD else said.items
    told = error.tells if isinstance(error, AnswerError) else not error.only_form
    again = f"That cannot be used:\n{fence(str(error), 'error')}\n{error.form or AGAIN}" if told else error.form or AGAIN
    return (*request.messages, Message("assistant", (Text(text or "(nothing)"),), items), Message("user", (Text(again),)))
