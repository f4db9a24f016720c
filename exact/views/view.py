"""What of a context a prompt is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from exact.context import Context
from exact.models.base import Image
from exact.models.tokens import count
from exact.observation import Observation
from exact.views.pictures import marked, scaled, task_pictures
from exact.views.prune import prune

CHARACTERS, BEFORE = 22_000, 7_000
"""Of the observation, and of the one before the last step: what the fences around them hold, less address, title and tabs."""


class View(NamedTuple):
    """What a prompt is given."""

    context: Context
    """With observations whose text fits."""
    images: tuple[Image, ...]
    """The task's own pictures first, then the state's."""
    left_out: tuple[str, ...]
    """What is not in it, one note each: for `ChatRequest.left_out`."""


def view(
    context: Context,
    *,
    tokens: int,
    history: int,
    images: bool = False,
    marks: bool = False,
    image_tokens: int = 1500,
    model: str = "",
) -> View:
    """A context for a prompt: each observation in at most `tokens`, each picture at most `image_tokens`, by the counting of `model`.

    `history`: how many past steps the prompt shows; the others are summarised by it, and noted here. With `marks` the screenshot
    bears the ids of the text. Raises UsageError for a picture of the task that cannot be read.
    """
    counting = partial(count, model=model)
    observation, notes = _pruned(context.observation, tokens, counting)
    past = context.history
    if past and past[-1].observation.text != context.observation.text:
        before, more = _pruned(past[-1].observation, tokens, counting, BEFORE)
        past = (*past[:-1], msgspec.structs.replace(past[-1], observation=before))
        notes += more
    if len(past) > history:
        notes += (f"the first {len(past) - history} of {len(past)} steps, which are summarised",)
    pictures = list(task_pictures(context.task)) if context.task.images else []
    if images and observation.screenshot is not None:
        shot = marked(observation.screenshot, observation.elements) if marks else observation.screenshot
        pictures.append(Image(shot))
    shown = []
    for picture in pictures:
        small = scaled(picture.data, image_tokens, model)
        shown.append(Image(small.data, "image/png" if small.note else picture.media_type))
        notes += (small.note,) if small.note else ()
    return View(msgspec.structs.replace(context, observation=observation, history=past), tuple(shown), notes)


def _pruned(
    observation: Observation, tokens: int, counting: Callable[[str], int], characters: int = CHARACTERS
) -> tuple[Observation, tuple[str, ...]]:
    found = prune(observation, tokens, characters=characters, count=counting)
    return (msgspec.structs.replace(observation, text=found.text) if found.left_out else observation), found.left_out
