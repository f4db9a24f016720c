"""Evaluating sibling states together: one prompt for several states that share a parent, and comparison by values.

A value function by comparison of states with their parent and with each other.

A value function that asks a chat model for a grade.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from exact.agents import form
from exact.agents.base import ValueFunction, evaluate_all, evaluate_each
from exact.agents.parse import parse_grade, parse_grades
from exact.agents.rank import LLMComparator, bradley_terry
from exact.agents.request import chat_request, state_request, view_state
from exact.agents.value.samples import ValueSample, aggregate, counted, grade_scale, sample_until_precise
from exact.config import ValueConfig, ViewConfig
from exact.context import Context, Evaluation, Reflection
from exact.models.base import ChatModel, ChatRequest, Image, Sampling
from exact.prompts.ask import ask
from exact.prompts.library import render_prompt
from exact.reflection.record import action_label
from exact.views.view import CHARACTERS

MIN_CHARACTERS = 2_000
"""Minimum characters of each state in the prompt, however many states there are."""


class Siblings(NamedTuple):
    """Sibling states as a prompt shows them."""

    before: Context
    """The parent state, with the reflections recalled for any of the siblings."""
    states: tuple[Context, ...]
    images: tuple[Image, ...]
    """The task's pictures, the parent's screenshot, then one screenshot for each sibling that was seen, in order."""
    left_out: tuple[str, ...]
    role: str
    history: int

    def request(self, name: str, sampling: Sampling, *, samples: int) -> ChatRequest:
        """Return the request that asks about all siblings with prompt `name`."""
        prompt = render_prompt(name, context=self.before, states=self.states, label=action_label, history=self.history)
        return chat_request(
            prompt, self.images, sampling, role=self.role, samples=samples, context=self.states[0],
            left_out=self.left_out, form=form.GRADES,
        )  # fmt: skip


def view_siblings(contexts: Sequence[Context], config: ValueConfig, view: ViewConfig, model: str) -> Siblings | None:
    """Return the contexts as one prompt view, each with an equal share of the characters. Return None if they are not siblings."""
    first = contexts[0]
    if len(contexts) < 2 or not all(_are_siblings(first, context) for context in contexts):
        return None
    last = first.history[-1]
    parent = msgspec.structs.replace(
        first, observation=last.observation, history=first.history[:-1], terminated=False, unseen=False, tried=(),
        reflections=_all_reflections(contexts),
    )  # fmt: skip
    before = view_state(parent, view, model, characters=CHARACTERS // 3)
    room = max(MIN_CHARACTERS, CHARACTERS * 2 // 3 // len(contexts))
    bare = [msgspec.structs.replace(context, task=msgspec.structs.replace(context.task, images=())) for context in contexts]
    seen = [view_state(context, view, model, characters=room) for context in bare]
    return Siblings(
        before=before.context,
        states=tuple(one.context for one in seen),
        images=(*before.images, *(image for one in seen if not (one.context.terminated or one.context.unseen) for image in one.images)),
        left_out=tuple(dict.fromkeys(note for one in (before, *seen) for note in one.left_out)),
        role=config.role,
        history=view.history,
    )


def _all_reflections(contexts: Sequence[Context]) -> tuple[Reflection, ...]:
    return tuple({reflection.id: reflection for context in contexts for reflection in context.reflections}.values())


def _are_siblings(one: Context, other: Context) -> bool:
    """Return whether both states were reached by one step from the same parent."""
    mine, theirs = one.history, other.history
    return (
        len(mine) == len(theirs) > 0
        and one.task.id == other.task.id
        and [taken.action.key for taken in mine[:-1]] == [taken.action.key for taken in theirs[:-1]]
        and mine[-1].observation.fingerprint == theirs[-1].observation.fingerprint
    )


class ValueComparator:
    """Compares states by their values. Each gets its share of the sum, or an equal share if all values are 0."""

    def __init__(self, value: ValueFunction) -> None:
        self._value = value

    async def compare(self, contexts: Sequence[Context]) -> tuple[float, ...]:
        """Return each state's share of the sum of values, in order.

        Raises ModelError.
        """
        values = [evaluation.value for evaluation in await evaluate_all(self._value, contexts)]
        total = sum(values)
        return tuple(value / total if total else 1 / len(values) for value in values)


class ComparativeValue:
    """Ranks siblings and their parent state against each other, every pair in both orders.

    The value is the probability, by Bradley-Terry strengths fitted to the answers, that a state is preferred to its parent: 0.5 means no
    progress. The value orders siblings and separates helpful steps from harmful ones. It is not a probability of success, and states of
    different depth compare only by their last steps. A task's first state has value 0.5 without a model call.
    """

    def __init__(self, model: ChatModel, config: ValueConfig, view: ViewConfig = ViewConfig(), *, sampling: Sampling = Sampling()) -> None:  # noqa: B008 (frozen)
        self._comparator = LLMComparator(model, config, view, sampling=sampling)

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the evaluation of a state against its parent.

        Raises ModelError; never invents a value.
        """
        [found] = await self.evaluate_all([context])
        return found

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """Return the evaluations of siblings against their common parent.

        Raises ModelError; never invents a value.
        """
        first = contexts[0]
        if not first.history:
            return tuple(Evaluation(value=0.5, rationale="nothing was done yet") for _ in contexts)
        last = first.history[-1]
        before = msgspec.structs.replace(
            first, observation=last.observation, history=first.history[:-1], terminated=False, unseen=False, tried=(), steps_left=None
        )  # fmt: skip
        wins = await self._comparator.wins([before, *contexts])
        anchor, *strengths = bradley_terry(wins)
        return tuple(
            Evaluation(
                value=strength / (strength + anchor),
                rationale=f"held nearer to the goal than the state before in {wins[i][0] / 2:.0%} of the answers",
            )
            for i, strength in enumerate(strengths, 1)
        )


class LLMValue:
    """Draws grades and takes their mean, on the scale `config.grades`.

    More grades are drawn while the standard error exceeds `config.threshold`. Prompt `value` grades at once; with `value_debate` the model
    first argues both sides in the same answer. A terminated context is evaluated from the last observation before its end and the final
    action: it contains nothing else.
    """

    def __init__(
        self,
        model: ChatModel,
        config: ValueConfig,
        view: ViewConfig = ViewConfig(),  # noqa: B008 (frozen)
        *,
        sampling: Sampling = Sampling(),  # noqa: B008 (frozen)
        prompt: Literal["value", "value_debate"] = "value",
    ) -> None:
        """Configure the value function. `sampling` sets how grades are drawn; their number is `config.samples`."""
        self._model, self._config, self._view, self._sampling, self._prompt = model, config, view, sampling, prompt
        self._scale = grade_scale(config.grades)

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the mean of the grades that parse.

        Raises ModelError; never invents a value.
        """
        return aggregate(await sample_until_precise(partial(self._samples, context), self._config))

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """Return evaluations of siblings from one request with prompt `value_siblings`.

        Contexts that are not siblings are evaluated one by one. Raises ModelError; never invents a value.
        """
        if (together := view_siblings(contexts, self._config, self._view, self._model.name)) is None:
            return await evaluate_each(self, contexts)
        request = together.request("value_siblings", self._sampling, samples=self._config.samples)
        parse = partial(parse_grades, grades=self._scale, count=len(contexts))
        answers = await ask(self._model, request, parse, seed=contexts[0].seed)
        states = zip(*answers, strict=True)
        return tuple(aggregate(counted([ValueSample(*grade) for grade in grades], self._config.samples)) for grades in states)

    async def _samples(self, context: Context, more: int, count: int) -> list[ValueSample]:
        request = state_request(
            self._prompt, context, self._view, self._sampling, role=self._config.role, samples=count, model=self._model.name, more=more,
            changes=self._config.changes, form=form.GRADE,
        )  # fmt: skip
        graded = await ask(self._model, request, partial(parse_grade, grades=self._scale), seed=context.seed)
        return counted([ValueSample(one.value, one.reasoning) for one in graded], count)
