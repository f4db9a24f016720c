"""The final answer as an object: a model puts what an agent found into the form that a task asks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec

from exact.agents.form import embedded, read_object
from exact.agents.request import state_request
from exact.config import ViewConfig
from exact.context import Context
from exact.errors import AnswerError, UsageError
from exact.models.base import AnswerForm, ChatModel, Sampling, Text
from exact.models.reasoning import final_answer
from exact.prompts.ask import ask, asks
from exact.text import with_special_tokens

if TYPE_CHECKING:
    from jsonschema.protocols import Validator  # type: ignore[import-untyped]

ROLE = "answer"
"""Role of the calls in the journal."""
_MOST_TOKENS = 4096
"""New tokens that an object may take."""
_LONGEST = 64 * 1024
"""Characters of the longest schema."""


class ObjectAnswer(NamedTuple):
    """An object, and why it does not tell everything or does not fit; empty if nothing is known to be missing."""

    data: dict[str, Any]
    reason: str = ""


class Answerer:
    """Puts the end of an attempt into an object that fits the schema of its task."""

    def __init__(
        self, model: ChatModel, view: ViewConfig, *, sampling: Sampling, check: Callable[[dict[str, Any]], str] = lambda found: ""
    ) -> None:
        """`model`: the policy's. `check`: returns why an object that fits the schema cannot be used; empty if it can."""
        self._model, self._view, self._check = model, view, check
        self._sampling = msgspec.structs.replace(
            sampling, temperature=0.0, max_tokens=max(sampling.max_tokens, _MOST_TOKENS), logprobs=False
        )  # fmt: skip

    async def answer(self, context: Context, schema: str, said: str) -> ObjectAnswer:
        """Return an object that fits a schema. A model whose object does not fit is told why, at most twice.

        Args:
            context: The end of the attempt.
            schema: JSON schema of the object.
            said: Text of the agent's final answer; empty without one.

        Raises ModelError; AnswerError if no object fits.
        """
        return ObjectAnswer(await self._object("answer", context, schema, self._check, said=said))

    async def _object(
        self,
        prompt: str,
        context: Context,
        schema: str,
        check: Callable[[dict[str, Any]], str] | None = None,
        most: int | None = None,
        **inputs: Any,
    ) -> dict[str, Any]:
        tokens = self._sampling.max_tokens
        sampling = msgspec.structs.replace(self._sampling, max_tokens=tokens if most is None else min(tokens, most))
        form = AnswerForm(schema=json.loads(schema), example="one object that fits the schema")
        request = state_request(
            prompt, context, self._view, sampling, role=ROLE, samples=1, model=self._model.name, form=form, schema=schema, **inputs
        )  # fmt: skip

        shown = "".join(part.text for message in request.messages for part in message.parts if isinstance(part, Text))

        @asks("write one JSON object that fits the schema, and nothing else")
        def parse(text: str) -> dict[str, Any]:
            found = parsed(schema, text, shown, context.texts)
            if check is not None and (fault := check(found)):
                raise _misfit_error(fault)
            return found

        [answered, *_] = await ask(self._model, request, parse, seed=context.seed)
        return answered

    def checking(self, check: Callable[[dict[str, Any]], str]) -> Self:
        """Return the same with another check."""
        return type(self)(self._model, self._view, sampling=self._sampling, check=check)


def parsed(schema: str, text: str, shown: str = "", known: Sequence[str] = ()) -> dict[str, Any]:
    """Return the object that an answer consists of, or the only one of its own in it, whatever stands around that.

    An object of its own begins a line, and does not stand in what the model was `shown`. Special tokens of the schema or of `known` texts
    are written as there. Raises AnswerError, which names the property that does not fit.
    """
    found = dict(read_object(text)) or _only(final_answer(text), " ".join(shown.split()))
    if not found:
        raise AnswerError("that is not one JSON object")
    written: dict[str, Any] = json.loads(with_special_tokens(json.dumps(found, ensure_ascii=False), (schema, *known)))
    if reason := misfit(schema, written):
        raise _misfit_error(reason)
    return written


def _only(answer: str, shown: str) -> dict[str, Any]:
    """Return the only object that begins a line of an answer and was not shown; empty if there are several or none."""
    found = list[dict[str, Any]]()
    for begins, each in embedded(answer):
        source = answer[begins : json.JSONDecoder(strict=False).raw_decode(answer, begins)[1]]
        begins_a_line = not answer[:begins].rpartition("\n")[2].strip()
        if begins_a_line and " ".join(source.split()) not in shown and each not in found:
            found.append(dict(each))
    return found[0] if len(found) == 1 else {}


def _misfit_error(reason: str) -> AnswerError:
    error = AnswerError(reason)
    error.tells = True
    return error


def plain(schema: str, said: str) -> dict[str, Any]:
    """Return the object that an answer in words makes without a model.

    It is the object that the words are, or the words as the only property of the schema. Raises AnswerError if neither fits.
    """
    try:
        return parsed(schema, said)
    except AnswerError as error:
        names = list(json.loads(schema).get("properties", ()))
        readings: list[object] = [said]
        with suppress(msgspec.DecodeError, UnicodeError):
            readings.append(msgspec.json.decode(said))
        for reading in readings if len(names) == 1 else ():
            found = {names[0]: reading}
            if not misfit(schema, found):
                return found
        raise AnswerError(f"the answer {said[:80]!r} is not the object that is asked for ({error}), and no model can be asked") from error


def misfit(schema: str, found: object) -> str:
    """Return why an object does not fit a schema, with the place of the fault; empty if it fits."""
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]
    from referencing.exceptions import Unresolvable

    try:
        error = best_match(_validator(schema).iter_errors(found))
    except Unresolvable as failed:
        return f"the schema refers to what is not in it: {failed}"
    if error is None:
        return ""
    place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error.absolute_path).lstrip(".")
    return f"{place or 'the object'}: {error.message[:300]}"


def checked_schema(schema: object) -> str:
    """Return a JSON schema of an object as text. Raises UsageError if it is none."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from jsonschema.exceptions import SchemaError

    try:
        text = schema if isinstance(schema, str) else json.dumps(schema, ensure_ascii=False)
        found = json.loads(text)
        Draft202012Validator.check_schema(found)
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"the schema of the answer is no JSON: {error}") from error
    except SchemaError as error:
        raise UsageError(f"the schema of the answer is no JSON schema: {error.message}") from error
    if len(text) > _LONGEST:
        raise UsageError(f"the schema of the answer has {len(text)} characters: write at most {_LONGEST}")
    if not isinstance(found, dict) or (found.get("type") != "object" and "$ref" not in found):
        raise UsageError("the schema of the answer is not of an object: write {type: object, properties: ...}")
    return text


@lru_cache(maxsize=64)
def _validator(schema: str) -> Validator:
    """Return the validator of a schema. A reference that leads out of the schema is an error: nothing is fetched."""
    from jsonschema import Draft202012Validator
    from referencing import Registry

    return Draft202012Validator(json.loads(schema), registry=Registry())
