"""A value function by checks: yes-or-no questions written once for a task, each yes verified against the state."""

from __future__ import annotations

import asyncio
import sys
from functools import partial

import msgspec

from exact.agents import form
from exact.agents.parse import CheckAnswer, parse_check_answers, parse_checks
from exact.agents.request import state_request
from exact.agents.value.samples import ValueSample, aggregate, counted, sample_until_precise
from exact.config import ValueConfig, ViewConfig
from exact.context import Context, Evaluation
from exact.models.base import ChatModel, ChatRequest, Sampling
from exact.prompts.ask import ask
from exact.prompts.library import render_macro
from exact.reflection.record import action_label
from exact.views.labels import placed


class RubricValue:
    """The value is the share of checks that are met. A yes counts only if its quotation occurs in the state or the steps.

    The checks of a task are requested in its first state and cached. If screenshots are shown, a yes without a quotation counts, because a
    picture cannot be quoted. If only screenshots are shown, quotations are not verified.
    """

    def __init__(self, model: ChatModel, config: ValueConfig, view: ViewConfig = ViewConfig(), *, sampling: Sampling = Sampling()) -> None:  # noqa: B008 (frozen)
        self._model, self._config, self._view, self._sampling = model, config, view, sampling
        self._checks = dict[str, asyncio.Future[tuple[str, ...]]]()

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the share of checks that are met.

        Raises ModelError; never invents a value.
        """
        checks = await self._checks_of(context)
        return aggregate(await sample_until_precise(partial(self._samples, context, checks), self._config))

    async def _samples(self, context: Context, checks: tuple[str, ...], more: int, count: int) -> list[ValueSample]:
        request = state_request(
            "value_rubric", context, self._view, self._sampling, role=self._config.role, samples=count, model=self._model.name,
            more=more, changes=self._config.changes, checks=checks, form=form.CHECK_ANSWERS,
        )  # fmt: skip
        answers = await ask(self._model, request, partial(parse_check_answers, checks=len(checks)), seed=context.seed)
        return counted([self._sample(checks, met, context) for met in answers], count)

    async def _checks_of(self, context: Context) -> tuple[str, ...]:
        """Return the task's checks. Concurrent callers share one request."""
        key = f"{context.task.id}\n{context.instruction}"
        while (known := self._checks.get(key)) is not None:
            if not known.done():
                await asyncio.wait([known])
            elif not known.cancelled():
                return known.result()
        pending = self._checks[key] = asyncio.get_running_loop().create_future()
        try:
            [checks] = await ask(self._model, self._checks_request(context), parse_checks, seed=context.seed)
            pending.set_result(checks)
            return checks
        finally:
            if not pending.done():  # the request failed: the next caller asks again
                del self._checks[key]
                pending.cancel()

    def _checks_request(self, context: Context) -> ChatRequest:
        """Return the request for a task's checks.

        It is the same for every state of the task, whatever reflections it recalls, so it is journalled once, under node 0.
        """
        began = context.history[0].observation if context.history else context.observation
        start = msgspec.structs.replace(
            context, observation=began, history=(), reflections=(), tried=(), terminated=False, unseen=False, node=0, draw=0, confirms=False
        )  # fmt: skip
        sampling = msgspec.structs.replace(self._sampling, logprobs=False)
        return state_request(
            "rubric", start, self._view, sampling, role=self._config.role, samples=1, model=self._model.name, form=form.CHECKS
        )  # fmt: skip

    def _sample(self, checks: tuple[str, ...], answers: tuple[CheckAnswer, ...], context: Context) -> ValueSample:
        seen, picture = _comparable(_quotable_text(context)), not (self._view.text or self._view.html)
        lines, met = list[str](), 0
        for check, answer in zip(checks, answers, strict=True):
            found = picture or _comparable(answer.quote) in seen if answer.quote else self._view.images
            met += answer.yes and found
            lines.append(f"{check} {'no' if not answer.yes else 'yes' if found else 'yes, but what it quotes is not there'}")
        return ValueSample(met / len(checks), "; ".join(lines))


def _quotable_text(context: Context) -> str:
    """Return all text that a quotation may come from, as prompts show it. The agent's own thoughts are excluded."""
    bare = msgspec.structs.replace(context, history=tuple(msgspec.structs.replace(taken, rationale="") for taken in context.history))
    state = render_macro("seen", placed(context.observation), "observation", sys.maxsize)
    return "\n".join((state, render_macro("answered", context), render_macro("steps", bare, action_label, len(context.history))))


def _comparable(text: str) -> str:
    """Return a text with single spaces, in lower case and without quotation marks."""
    return " ".join(text.casefold().translate(_MARKS).split())


_MARKS = str.maketrans("", "", "\"'“”‘’«»`")
