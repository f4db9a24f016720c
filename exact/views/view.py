"""The view of a context that a prompt shows.

The text of an observation in a prompt, and the lines in which two of them differ.

Windowed histories: the last steps in full, and a summary of the steps before them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from exact.context import Context, Taken
from exact.errors import UsageError
from exact.models import tokens as counting
from exact.models.base import Image
from exact.observation import Element, Observation
from exact.prompts.fence import one_line
from exact.views.labels import label_action, label_first, made_names, placed
from exact.views.pictures import load_task_pictures, mark_elements, scale_picture
from exact.views.prune import prune_text

CHARACTERS, PREVIOUS_CHARACTERS = 22_000, 7_000
"""Maximum characters of the observation, and of the one before the last step, without address, title and tabs."""
IN_THE_PICTURE, NOT_SHOWN = "(The state is in the picture.)", "(It is not shown.)"
"""Placeholders for the text of a state that is shown only as a picture, and of the previous state."""

_ID = re.compile(r"^ *\[([\w:.-]+)\]", re.M)

Size = tuple[int, int]
"""Width and height in pixels."""


class PromptView(NamedTuple):
    """A context reduced to the parts that a prompt shows."""

    context: Context
    """The context, with observations whose text fits."""
    images: tuple[Image, ...]
    """The task's pictures, then the state's."""
    left_out: tuple[str, ...]
    """One note for each omission, for `ChatRequest.left_out`."""
    screen: Size = (0, 0)
    """Size of the screenshot as taken. Zeros if none is shown."""
    shown: Size = (0, 0)
    """Size of the screenshot as shown. Zeros if none is shown."""
    elements: tuple[Element, ...] = ()
    """Elements that the text lists; without text, all."""


def view_context(
    context: Context,
    *,
    tokens: int,
    history: int,
    images: bool = False,
    marks: bool = False,
    text: bool = True,
    tree: Literal["full", "view"] = "full",
    html: bool = False,
    labels: bool = False,
    image_tokens: int = 1500,
    model: str = "",
    characters: int = CHARACTERS,
    whole_before: bool = False,
) -> PromptView:
    """Return the view of a context with at most `tokens` per observation and `image_tokens` per picture, as `model` counts them.

    `history` is the number of past steps that the prompt shows; it summarises the others, which are noted here. With `marks` the screenshot
    shows the element ids of the text. `tree` selects the full text or only the part in view,
    before it is cut. `html` adds HTML in as many tokens again. Without `text` and `html`, the screenshot is all that is shown of the state.
    With `labels` text and refused actions name elements by label first. With `whole_before` the observations of all steps are cut as the
    state is, so that all states after one show it alike.

    Raises UsageError if a picture of the task cannot be read, if nothing would be shown, or if HTML is requested but was not observed.
    """
    if not text and not html and (not images or context.observation.screenshot is None):
        raise UsageError("a prompt without the observation's text needs its screenshot: set images and browser.screenshots, or text")
    past, notes, tried, elements = context.history, tuple[str, ...](), context.tried, context.observation.elements
    if text:
        available = characters // 2 if html else characters
        observation, notes = fit_observation(context.observation, tokens, model=model, characters=available, view=tree == "view")
        if whole_before:
            part = (tree == "view", characters // 2 if html else 0)
            past = tuple(_whole(taken, tokens, model, available, *part) for taken in past)
        elif past and past[-1].observation.text != context.observation.text:
            before, more = fit_observation(past[-1].observation, tokens, model=model, characters=min(PREVIOUS_CHARACTERS, characters))
            past = (*past[:-1], msgspec.structs.replace(past[-1], observation=before))
            notes += more
        elements = _listed(observation)
    else:
        observation = _in_picture(context.observation)
        past = (*past[:-1], *(_hide_text(taken) for taken in past[-1:]))
    written, more = _fit_html(context.observation, tokens, model, characters // 2 if text else characters) if html else ("", ())
    observation, notes = msgspec.structs.replace(observation, html=written), notes + more
    if len(past) > history:
        notes += (f"the first {len(past) - history} of {len(past)} steps, which are summarised",)
    shot = context.observation.screenshot if images else None
    shots = [] if shot is None else [shot]
    if shot is not None and marks:
        shots = [mark_elements(shot, observation.elements)]
    pictures, more = _fit_pictures(context, shots, image_tokens, model)
    if labels:
        observation, past = _by_label(observation), (*past[:-1], *(_taken_by_label(taken) for taken in past[-1:]))
        tried = tuple(_tried_by_label(taken, context.observation) for taken in tried)
    screen = counting.size(shot) if shot is not None else (0, 0)
    shown = counting.size(pictures[-1].data) if shot is not None else (0, 0)
    seen = msgspec.structs.replace(context, observation=observation, history=past, tried=tried)
    return PromptView(seen, pictures, notes + more, screen, shown, elements)


def fit_observation(
    observation: Observation, tokens: int, *, model: str = "", characters: int = CHARACTERS, view: bool = False
) -> tuple[Observation, tuple[str, ...]]:
    """Return an observation with at most `tokens` tokens and `characters` characters of text, and notes about omissions.

    The text shows the places of elements that role and name do not tell from others. With `view`, only entries in view stay.
    """
    observation = placed(observation)
    count: Callable[[str], int] = partial(counting.count, model=model)
    found = prune_text(observation, tokens, characters=characters, count=count, view=view)
    return (msgspec.structs.replace(observation, text=found.text) if found.left_out else observation), found.left_out


def _whole(taken: Taken, tokens: int, model: str, characters: int, in_view: bool, html: int) -> Taken:
    """Return a step whose observation is cut as that of the state is. `html`: characters of the HTML."""
    shown, _ = fit_observation(taken.observation, tokens, model=model, characters=characters, view=in_view)
    written = _fit_html(taken.observation, tokens, model, html)[0] if html else ""
    return msgspec.structs.replace(taken, observation=msgspec.structs.replace(shown, html=written))


def _listed(observation: Observation) -> tuple[Element, ...]:
    """Return the elements that the text lists; all if it lists none, because it has another form."""
    ids = set(_ID.findall(observation.text))
    return tuple(element for element in observation.elements if element.id in ids) or observation.elements


def _by_label(observation: Observation) -> Observation:
    return msgspec.structs.replace(observation, text=label_first(observation.text, made_names(observation)))


def _taken_by_label(taken: Taken) -> Taken:
    return msgspec.structs.replace(taken, observation=_by_label(taken.observation))


def _tried_by_label(taken: Taken, observation: Observation) -> Taken:
    action = msgspec.structs.replace(taken.action, key=label_action(taken.action, observation))
    return msgspec.structs.replace(taken, action=action)


def _in_picture(observation: Observation) -> Observation:
    """Return an observation whose text is in its picture; results of tools are in none."""
    results = observation.text.split("\n")[: observation.results]
    return msgspec.structs.replace(observation, text="\n".join((*results, IN_THE_PICTURE)))


def _hide_text(taken: Taken) -> Taken:
    return msgspec.structs.replace(taken, observation=msgspec.structs.replace(taken.observation, text=NOT_SHOWN))


def _fit_html(observation: Observation, tokens: int, model: str, characters: int) -> tuple[str, tuple[str, ...]]:
    """Return as many leading lines of the HTML as fit, and notes about omissions. A dialog has no HTML."""
    if not observation.html and observation.url and observation.elements and observation.elements[0].role != "alertdialog":
        raise UsageError("a prompt wants the page's HTML, which is not observed: set browser.html")
    kept, lines = list[str](), observation.html.split("\n")
    for line in lines:
        tokens, characters = tokens - counting.count(line, model=model) - 1, characters - len(line) - 1
        if tokens < 0 or characters < 0:
            break
        kept.append(line)
    if len(kept) == len(lines):
        return observation.html, ()
    note = f"{len(lines) - len(kept)} of {len(lines)} lines of the HTML of {observation.url}, from the end"
    return "\n".join((*kept, f"(... {note} left out)")), (note,)


def _fit_pictures(context: Context, shots: list[bytes], most: int, model: str) -> tuple[tuple[Image, ...], tuple[str, ...]]:
    """Return the task's pictures and the screenshots, each scaled to its price, and a note for each scaled one."""
    pictures = [*load_task_pictures(context.task), *map(Image, shots)]
    small = [scale_picture(picture.data, most, model) for picture in pictures]
    shown = tuple(Image(one.data, "image/png" if one.note else old.media_type) for one, old in zip(small, pictures, strict=True))
    return shown, tuple(one.note for one in small if one.note)


def observation_text(observation: Observation) -> str:
    """Return the text of an observation for prompts: address, title, other tabs, downloads and note, its text, and its HTML if any."""
    lines = [f"URL: {one_line(observation.url, 500)}"] if observation.url else []
    lines += [f"Title: {one_line(observation.title)}"] if observation.title else []
    lines += [f"Other tab {number}: {one_line(tab, 500)}" for number, tab in enumerate(observation.tabs, 1)]
    lines += [f"Downloaded: {one_line(file, 300)}" for file in observation.downloads]
    lines += [f"Note: {observation.note}"] if observation.note else []
    html = ["HTML:", observation.html] if observation.html else []
    return "\n".join([*lines, observation.text, *html])


def show_changes(before: Observation, now: Observation, shown: Literal["before", "now"] = "now") -> str:
    """Return the lines that a step changed, if they are shorter than the state that they stand for; otherwise an empty text.

    `-` begins a line that was there before, `+` a new one. A line such as `line 3:` before them says at which line they begin in the state
    that the prompt shows whole, which is `shown`. The other state is that one with the lines of the one mark in place of those of the
    other.
    """
    texts = observation_text(before), observation_text(now)
    found = _changed_lines(texts[0].split("\n"), texts[1].split("\n"), shown)
    return found if len(found) < len(texts[shown == "before"]) else ""


def _changed_lines(before: list[str], now: list[str], shown: str) -> str:
    lines = list[str]()
    for kind, old, old_end, new, new_end in SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        if kind != "equal":
            place = (new if shown == "now" else old) + 1
            lines += [f"line {place}:", *(f"-{line}" for line in before[old:old_end]), *(f"+{line}" for line in now[new:new_end])]
    return "\n".join(lines)


MAX_PAGES = 6
"""Maximum number of pages named in a summary."""


def summarise_steps(steps: Sequence[Taken]) -> str:
    """Return one line about some steps: counts by verb, pages, and number of refused steps. Empty for no steps.

    It is computed from verbs and addresses without a model: equal steps give equal lines, and no text of a page enters it.
    """
    if not steps:
        return ""
    verbs = Counter(step.action.name for step in steps)
    pages = list(dict.fromkeys(place for step in steps if (place := _page_address(step.observation.url))))
    refused = sum(bool(step.error) for step in steps)
    parts = [", ".join(f"{count} {verb}" for verb, count in verbs.most_common())]
    if pages:
        more = f" and {len(pages) - MAX_PAGES} more" if len(pages) > MAX_PAGES else ""
        parts.append(f"on {', '.join(pages[:MAX_PAGES])}{more}")
    if refused:
        parts.append(f"{refused} refused")
    return "; ".join(parts)


def _page_address(url: str) -> str:
    parts = urlsplit(url) if url else None
    return f"{parts.netloc}{parts.path}"[:60] if parts else ""
