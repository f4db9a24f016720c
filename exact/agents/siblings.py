"""Evaluating sibling states together: one prompt for several states that share a parent, and comparison by values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from exact.agents import form
from exact.agents.base import ValueFunction, evaluate_all
from exact.agents.request import chat_request, draw_key, view_state
from exact.config import ValueConfig
from exact.context import Context, Reflection
from exact.models.base import ChatRequest, Image, Sampling
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
    draw: int

    def request(self, name: str, sampling: Sampling, *, samples: int) -> ChatRequest:
        """Return the request that asks about all siblings with prompt `name`."""
        prompt = render_prompt(name, context=self.before, states=self.states, label=action_label, history=self.history)
        return chat_request(
            prompt, self.images, sampling, role=self.role, samples=samples, node=self.states[0].node, draw=self.draw,
            left_out=self.left_out, form=form.GRADES,
        )  # fmt: skip


def view_siblings(contexts: Sequence[Context], config: ValueConfig, model: str) -> Siblings | None:
    """Return the contexts as one prompt view, each with an equal share of the characters. Return None if they are not siblings."""
    first = contexts[0]
    if len(contexts) < 2 or not all(_are_siblings(first, context) for context in contexts):
        return None
    last = first.history[-1]
    parent = msgspec.structs.replace(
        first, observation=last.observation, history=first.history[:-1], terminated=False, unseen=False, tried=(),
        reflections=_all_reflections(contexts),
    )  # fmt: skip
    before = view_state(parent, config, model, characters=CHARACTERS // 3)
    room = max(MIN_CHARACTERS, CHARACTERS * 2 // 3 // len(contexts))
    bare = [msgspec.structs.replace(context, task=msgspec.structs.replace(context.task, images=())) for context in contexts]
    seen = [view_state(context, config, model, characters=room) for context in bare]
    return Siblings(
        before=before.context,
        states=tuple(one.context for one in seen),
        images=(*before.images, *(image for one in seen if not (one.context.terminated or one.context.unseen) for image in one.images)),
        left_out=tuple(dict.fromkeys(note for one in (before, *seen) for note in one.left_out)),
        role=config.role,
        history=config.history,
        draw=draw_key(first),
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
