"""A reflector that asks a chat model."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from exact.context import Context, Reflection
from exact.errors import AnswerError
from exact.models.ask import ask
from exact.models.base import ChatModel, ChatRequest, Sampling
from exact.prompts.library import render
from exact.reflection.base import Kind, Surprise
from exact.reflection.lesson import WORDS, action_label, lesson
from exact.views.view import BEFORE, fitting

_PART = re.compile(r"^[\s>*_#-]*(expected|real|lesson)[\s*_]*:[\s*_]*", re.I | re.M)


class Written(NamedTuple):
    """The three parts of an answer."""

    expected: str
    real: str
    lesson: str


class LLMReflector:
    """Has a model contrast what a step was expected to lead to with what came. The prompt is `reflection`.

    The lessons are tainted: pages were in the prompt.
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
        """`run` names the run in the lessons' provenance; `clock` gives Unix seconds; observations have at most so many tokens."""
        self._model, self._sampling, self._run, self._clock = model, sampling, run, clock
        self._tokens = observation_tokens

    async def reflect(self, context: Context, surprise: Surprise, kind: Kind) -> Reflection:
        """The lesson of a surprise, for who chooses or who judges. Raises ModelError."""
        seen, left_out = self._fitting(surprise)
        prompt = render("reflection", context=context, surprise=seen, kind=kind, label=action_label, words=WORDS)
        request = ChatRequest(
            messages=prompt.messages(), sampling=self._sampling, role="reflection", node=surprise.node, prompt=prompt.id,
            left_out=left_out + prompt.cut,
        )  # fmt: skip
        (written, *_) = await ask(self._model, request, parse_lesson, seed=context.seed)
        return lesson(
            context,
            surprise,
            kind,
            written.lesson,
            expected=written.expected,
            real=written.real,
            run=self._run,
            model=self._model.name,
            prompt=prompt.id,
            created=self._clock(),
        )

    def _fitting(self, surprise: Surprise) -> tuple[Surprise, tuple[str, ...]]:
        """The surprise with observations that fit, and what is not in them."""
        fits = partial(fitting, tokens=self._tokens, model=self._model.name, characters=BEFORE)
        before, notes = fits(surprise.step.observation)
        after, more = (None, ()) if surprise.after is None else fits(surprise.after)
        step = msgspec.structs.replace(surprise.step, observation=before)
        return msgspec.structs.replace(surprise, step=step, after=after), notes + more


def parse_lesson(text: str) -> Written:
    """The parts `Expected:`, `Real:` and `Lesson:`, each once. Raises AnswerError: one is missing, double or empty, or too long."""
    said = text.rpartition("</think>")[2]
    marks = list(_PART.finditer(said))
    names = [mark[1].lower() for mark in marks]
    if sorted(names) != ["expected", "lesson", "real"]:
        raise AnswerError(f"the parts are {', '.join(names) or 'missing'}: write `Expected:`, `Real:` and `Lesson:`, each once")
    ends = [*(mark.start() for mark in marks[1:]), len(said)]
    parts = {name: " ".join(said[mark.end() : end].split()) for name, mark, end in zip(names, marks, ends, strict=True)}
    if empty := [name for name, part in parts.items() if not part]:
        raise AnswerError(f"nothing stands behind {empty[0].capitalize()}: write one sentence")
    if (count := len(parts["lesson"].split())) > WORDS:
        raise AnswerError(f"the lesson has {count} words: write at most {WORDS}")
    return Written(parts["expected"], parts["real"], parts["lesson"])
