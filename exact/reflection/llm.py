"""A reflector that asks a chat model."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec

from exact.context import Context, Reflection
from exact.errors import AnswerError
from exact.models.base import ChatModel, ChatRequest, Sampling
from exact.models.reasoning import final_answer
from exact.prompts.ask import ask, asks
from exact.prompts.library import render_prompt
from exact.reflection.base import Kind, Surprise
from exact.reflection.record import WORDS, action_label, clipped, reflection_record
from exact.views.view import PREVIOUS_CHARACTERS, fit_observation

T = TypeVar("T")

_WHEN = re.compile(r"\b(?:when|if|where|whenever|once)\b", re.I)
"""Matches the words of a condition."""
_WORD = re.compile(r"\w+")
_PART = re.compile(r"^[\s>*_#-]*(expected|real|lesson)[\s*_]*:[\s*_]*", re.I | re.M)


class Written(NamedTuple):
    """The two parts of an answer."""

    real: str
    reflection: str


class LLMReflector:
    """A reflector that asks a model for the expected result of a step, and then to contrast it with the actual one.

    The prompts are `expectation` and `reflection`. A value function has stated its expectation: its reflections skip the first question,
    and the second shows its reasons and asks for the opposite argument. Reflections are tainted, because pages were in the prompts.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        sampling: Sampling = Sampling(),  # noqa: B008 (frozen)
        run: str = "",
        observation_tokens: int = 5000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take the run's name for provenance, a clock of Unix seconds, and the most tokens of an observation."""
        self._model, self._sampling, self._run, self._clock = model, sampling, run, clock
        self._tokens = observation_tokens

    async def reflect(self, context: Context, surprise: Surprise, kind: Kind) -> Reflection | None:
        """Return a reflection on a surprise, for the policy or the value function; None if the model finds no lesson in it.

        A lesson that names no element of the states is asked for again. Raises ModelError.
        """
        seen, hidden, behind = self._fitting(surprise)
        expected = clipped(surprise.expectation, WORDS)
        if kind == "policy":
            expected, _ = await self._asked("expectation", parse_expectation, context, msgspec.structs.replace(seen, after=None), hidden)
        parse = partial(parse_reflection, names=_names(seen))
        written, prompt = await self._asked("reflection", parse, context, seen, hidden + behind, kind=kind, expectation=expected)
        if not written.reflection:
            return None
        return reflection_record(
            context,
            surprise,
            kind,
            written.reflection,
            expected=expected,
            real=written.real,
            run=self._run,
            model=self._model.name,
            prompt=prompt,
            created=self._clock(),
        )

    async def _asked(
        self, name: str, parse: Callable[[str], T], context: Context, seen: Surprise, left_out: tuple[str, ...], **more: str
    ) -> tuple[T, str]:
        """Return the model's parsed answer to a prompt, and the prompt's id."""
        prompt = render_prompt(name, context=context, surprise=seen, label=action_label, words=WORDS, **more)
        request = ChatRequest(
            messages=prompt.messages(), sampling=self._sampling, role="reflection", node=seen.node, prompt=prompt.id,
            left_out=left_out + prompt.cut,
        )  # fmt: skip
        return (await ask(self._model, request, parse, seed=context.seed))[0], prompt.id

    def _fitting(self, surprise: Surprise) -> tuple[Surprise, tuple[str, ...], tuple[str, ...]]:
        """Return the surprise with observations that fit, and notes on the parts left out of the first two."""
        fits = partial(fit_observation, tokens=self._tokens, model=self._model.name, characters=PREVIOUS_CHARACTERS)
        before, notes = fits(surprise.step.observation)
        after, more = (None, ()) if surprise.after is None else fits(surprise.after)
        other = None if surprise.alternative_after is None else fits(surprise.alternative_after)[0]
        step = msgspec.structs.replace(surprise.step, observation=before)
        return msgspec.structs.replace(surprise, step=step, after=after, alternative_after=other), notes, more


_LEAST_NAME = 2
"""Characters from which the name of an element counts as one that a lesson may name."""


def _names(surprise: Surprise) -> frozenset[str]:
    """Return the names of the elements of the states of a surprise, and the texts of its actions, as words in lower case."""
    seen = (surprise.step.observation, surprise.after, surprise.alternative_after)
    said = [name for each in seen if each is not None for element in each.elements for name in (element.name, element.value or "")]
    flat = (" ".join(_WORD.findall(name.casefold())) for name in said)
    return frozenset(name for name in flat if len(name) >= _LEAST_NAME)


@asks(f"write the word Expected, a colon, and at most {WORDS} words on what the next state should show")
def parse_expectation(text: str) -> str:
    """Return the text after `Expected:`, or all of it without that mark. Raises AnswerError if it is empty, double or too long."""
    said = _parts(text)
    marked = [part for name, part in said if name == "expected"]
    if len(marked) > 1:
        raise AnswerError("`Expected:` is given twice: write it once")
    found = marked[0] if marked else said[0][1]
    if not found:
        raise AnswerError("nothing follows Expected: write one sentence")
    if found.endswith("?"):
        raise AnswerError("the expectation is a question: say what the next state should show")
    if (count := len(found.split())) > WORDS:
        raise AnswerError(f"the expectation has {count} words: write at most {WORDS}")
    return found


@asks(
    f"write the word Real, a colon and one sentence; then the word Lesson, a colon and one sentence of at most {WORDS} words that begins"
    " with When and names an element by its words, or the word none"
)
def parse_reflection(text: str, names: Collection[str] = ()) -> Written:
    """Return the parts `Real:` and `Lesson:` of an answer. The lesson is empty if it is the word none.

    `names`: those of the elements that it may be about, as words in lower case. Raises AnswerError if a part is missing, double, empty or
    too long, or if the lesson names no condition or, where names are given, no element.
    """
    said = _parts(text)[1:]
    given = [part for part, _ in said if part != "expected"]
    if sorted(given) != ["lesson", "real"]:
        raise AnswerError(f"the parts are {', '.join(given) or 'missing'}: write `Real:` and `Lesson:`, each once")
    parts = dict(said)
    if empty := [part for part in given if not parts[part]]:
        raise AnswerError(f"nothing follows {empty[0].capitalize()}: write one sentence")
    if (count := len(parts["lesson"].split())) > WORDS:
        raise AnswerError(f"the lesson has {count} words: write at most {WORDS}")
    if parts["lesson"].strip(" .*_`\"'").casefold() in ("none", "no lesson"):
        return Written(parts["real"], "")
    if not _WHEN.search(parts["lesson"]):
        raise AnswerError("the lesson names no condition: begin it with `When`")
    words = f" {' '.join(_WORD.findall(parts['lesson'].casefold()))} "
    if names and not any(f" {name} " in words for name in names):
        raise AnswerError("the lesson names no element of the states: name one by its words, or write none")
    return Written(parts["real"], parts["lesson"])


def _parts(text: str) -> list[tuple[str, str]]:
    """Return name and text of each part of an answer, in order; first, without a name, the text before all parts."""
    said = final_answer(text)
    marks = list(_PART.finditer(said))
    ends = [mark.start() for mark in marks] + [len(said)]
    named = [(mark[1].lower(), " ".join(said[mark.end() : end].split())) for mark, end in zip(marks, ends[1:], strict=True)]
    return [("", " ".join(said[: ends[0]].split())), *named]
