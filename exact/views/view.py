"""What of a context a prompt is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from exact.context import Context
from exact.errors import UsageError
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
    plain: bool = False,
    tree: Literal["full", "view", "none"] = "full",
    html: bool = False,
) -> View:
    """A context for a prompt: each observation in at most `tokens`, each picture at most `image_tokens`, by the counting of `model`.

    `history`: how many past steps the prompt shows; the others are summarised by it, and noted here. With `marks` the screenshot
    bears the ids of the text; with `plain` too there are both. `tree`: how much of it, before it is cut. `html`: in as many tokens again.
    Raises UsageError for a picture of the task that cannot be read, or where HTML is wanted and was not observed.
    """
    counting = partial(count, model=model)
    room = CHARACTERS // 2 if html and tree != "none" else CHARACTERS
    observation, notes = _pruned(context.observation, tokens, counting, room, tree)
    written, more = _html(context.observation, tokens, counting, room) if html else ("", ())
    observation, notes = msgspec.structs.replace(observation, html=written), (*notes, *more)
    past = context.history
    if past and past[-1].observation.text != context.observation.text:
        before, more = _pruned(past[-1].observation, tokens, counting, BEFORE, tree)
        past = (*past[:-1], msgspec.structs.replace(past[-1], observation=before))
        notes += more
    if len(past) > history:
        notes += (f"the first {len(past) - history} of {len(past)} steps, which are summarised",)
    pictures = list(task_pictures(context.task)) if context.task.images else []
    if images and observation.screenshot is not None:
        if marks:
            pictures.append(Image(marked(observation.screenshot, observation.elements)))
        if plain or not marks:
            pictures.append(Image(observation.screenshot))
    shown = []
    for picture in pictures:
        small = scaled(picture.data, image_tokens, model)
        shown.append(Image(small.data, "image/png" if small.note else picture.media_type))
        notes += (small.note,) if small.note else ()
    return View(msgspec.structs.replace(context, observation=observation, history=past), tuple(shown), notes)


def _pruned(
    observation: Observation, tokens: int, counting: Callable[[str], int], characters: int, tree: str
) -> tuple[Observation, tuple[str, ...]]:
    if tree == "none":
        return msgspec.structs.replace(observation, text="", html=""), ()
    found = prune(observation, tokens, characters=characters, count=counting, view=tree == "view")
    return msgspec.structs.replace(observation, text=found.text if found.left_out else observation.text, html=""), found.left_out


def _html(observation: Observation, tokens: int, counting: Callable[[str], int], characters: int) -> tuple[str, tuple[str, ...]]:
    """As many of its lines, from the top, as fit."""
    if not observation.html and observation.url and observation.elements and observation.elements[0].role != "alertdialog":
        raise UsageError("a prompt wants the page's HTML, which is not observed: set browser.html")
    kept, lines = list[str](), observation.html.split("\n")
    for line in lines:
        tokens, characters = tokens - counting(line) - 1, characters - len(line) - 1
        if tokens < 0 or characters < 0:
            break
        kept.append(line)
    if len(kept) == len(lines):
        return observation.html, ()
    note = f"{len(lines) - len(kept)} of {len(lines)} lines of the HTML of {observation.url}, from the end"
    return "\n".join((*kept, f"(... {note} left out)")), (note,)
