"""Scores of key presses.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import re

from exact.agents.builtin.judge.progress import InstructionProgress
from exact.agents.builtin.language.lexical import vocabulary, words
from exact.agents.builtin.language.subgoals import Subgoal
from exact.agents.builtin.page.matching import is_submit
from exact.agents.builtin.page.page import FIELDS, Item, PageModel

_ABOVE = vocabulary("top start beginning first up upwards")
_ENDS = vocabulary("top start beginning first bottom end last all whole")
"""Words for the ends of a scrollable area."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def is_upward(subgoal: Subgoal) -> bool:
    """Return whether a scroll subgoal asks for the beginning."""
    return bool(_ABOVE & set(words(subgoal.clause)))


def score_key(key: str, page: PageModel, progress: InstructionProgress, *, covered: bool) -> float:
    """Return the score of pressing the key, in [0, 1].

    `covered` says that an action was refused because another element covers its target.
    """
    focused = next((item for item in page.items if "focused" in item.element.states), None)
    if key == "Enter":
        return _score_enter(page, progress, focused)
    if key == "Escape":
        return 0.5 if covered else 0.02
    if focused is None:
        return 0.01
    if key in ("ArrowRight", "ArrowLeft"):
        away = slider_distance(focused, progress)
        return 0.8 if away and (away > 0) == (key == "ArrowRight") else 0.01
    scrolls = [s.subgoal for s in progress.statuses if s.subgoal.kind == "scroll" and _ENDS & set(words(s.subgoal.clause))]
    asked = any(is_upward(subgoal) == (key == "Control+Home") for subgoal in scrolls) and key in ("Control+End", "Control+Home")
    return 0.6 if asked and focused.role in FIELDS else 0.02


def _score_enter(page: PageModel, progress: InstructionProgress, focused: Item | None) -> float:
    if focused is None or focused.role not in FIELDS or not focused.element.value or any(is_submit(item) for item in page.actable):
        return 0.04
    if progress.open:
        return 0.3
    unread = any(item.unlabelled and item.role in ("image", "img", "button", "generic") for item in page.actable)
    return 0.2 if unread else 0.6


def slider_distance(slider: Item, progress: InstructionProgress) -> float:
    """Return the signed distance from a slider's value to the number of an open subgoal. 0 for other elements."""
    if slider.role != "slider" or not _NUMBER.fullmatch(slider.element.value or ""):
        return 0.0
    numbers = [n for s in progress.open for text in (s.text, *s.subgoal.targets) for n in _NUMBER.findall(text)]
    return float(numbers[0]) - float(slider.element.value or 0) if numbers else 0.0
