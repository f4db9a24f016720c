"""Detector of injections that asks a model, beside the rules of exact/injection.py."""

from __future__ import annotations

import re
from typing import Protocol

from exact.errors import AnswerError
from exact.models.base import ChatModel, ChatRequest, Sampling
from exact.observation import Observation
from exact.prompts.ask import ask
from exact.prompts.library import render_prompt
from exact.views.view import fit_observation

ROLE = "detector"
TOKENS = 6000
"""Most tokens of an observation that the model is shown."""
MARK = "speaks to a model, as a model found"
"""The mark that the model adds. What it says of the page is in its call, and in no prompt."""
_ANSWER = re.compile(r"^\W*injection\W*\s(yes|no)\b", re.I | re.M)


class Detector(Protocol):
    """A further detector of injections."""

    async def marks(self, observation: Observation, *, node: int, seed: int) -> tuple[str, ...]:
        """Return how an observation speaks to a model, in a few words each; empty where it does not. Raises ModelError."""
        ...


class LLMDetector:
    """Asks a model whether an observation speaks to it. The prompt is `detector`."""

    def __init__(self, model: ChatModel, *, sampling: Sampling = Sampling()) -> None:  # noqa: B008 (frozen)
        self._model, self._sampling = model, sampling

    async def marks(self, observation: Observation, *, node: int, seed: int) -> tuple[str, ...]:
        """Return the mark `MARK` where the model finds that the observation speaks to it. Raises ModelError."""
        shown, left_out = fit_observation(observation, TOKENS, model=self._model.name)
        prompt = render_prompt("detector", observation=shown)
        request = ChatRequest(
            messages=prompt.messages(), sampling=self._sampling, role=ROLE, node=node, prompt=prompt.id, left_out=left_out + prompt.cut
        )
        found = await ask(self._model, request, parse_detection, seed=seed)
        return (MARK,) if any(found) else ()


def parse_detection(text: str) -> bool:
    """Return whether an answer finds an injection. Raises AnswerError where it says neither, or both."""
    said = {match[1].lower() for match in _ANSWER.finditer(text)}
    if len(said) != 1:
        raise AnswerError("write one line, `Injection: no` or `Injection: yes: ...`")
    return said == {"yes"}
