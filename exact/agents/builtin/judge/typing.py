"""How sensible it is to write a text into a field, or to select an option.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

from exact.agents.builtin.judge.progress import holds_text, is_misplaced
from exact.agents.builtin.judge.situation import ActionScore, Situation
from exact.agents.builtin.language.lexical import normalise, similarity
from exact.agents.builtin.page.derive import adjacent_text, field_settings, format_for_field
from exact.agents.builtin.page.field_values import given_value, is_search_field, quoted_texts
from exact.agents.builtin.page.matching import affinity, mention_score
from exact.agents.builtin.page.page import FIELDS, Item


def score_fill(at: Situation, item: Item, text: str) -> ActionScore:
    """How sensible it is to write the text into the field; an empty text clears it."""
    value = item.element.value or ""
    if at.application and (found := _score_in_application(at, item, text)) is not None:
        return found
    if not text:
        return ActionScore(0.7 if is_misplaced(item, at.goal, at.page) else 0.0, "holds what belongs elsewhere")
    if holds_text(value, text):
        return ActionScore(0.01, "holds the text already")
    best, why = 0.03, "no part asks for this text here"
    fills = [s for s in at.progress.statuses if s.part.kind == "fill"]
    for status in fills:
        score = affinity(status.part, item, at.page) * 0.95 ** fills.index(status)
        wanted = status.part.text or adjacent_text(item.label, at.page) or status.text
        if not wanted or format_for_field(item, wanted) != text:
            continue
        if status.done and not status.part.many:
            score *= 0.1
        if affinity(status.part, item, at.page) == 0.5:
            score = 0.75 if _is_in_order(at, fills.index(status), item) else 0.3
        if score > best:
            best, why = score, f"fits {status.part}"
    if any(text in field_settings(item, s.part) for s in at.progress.open):
        best, why = 0.85, "sets what is to be chosen"
    if not fills and best < 0.3 and text in at.goal.texts:
        best, why = 0.3 + 0.1 * mention_score(item.label, at.goal), "the instruction holds this text"
    if value and best < 0.9:
        best *= 0.7
    return ActionScore(best, why)


def _score_in_application(at: Situation, item: Item, text: str) -> ActionScore | None:
    """In an application: what the instruction gives for the field, or what one would search for; None where neither is known."""
    if is_search_field(item, at.page):
        if text not in at.subjects or holds_text(item.element.value or "", text):
            return ActionScore(0.01, "was searched for")
        searched = sum(1 for role, label in at.clicked if normalise(label) == "search")
        return ActionScore(0.36 - 0.03 * at.subjects.index(text) - 0.1 * searched, "may find it")
    value = given_value(item.label, at.goal.instruction)
    if not value and text in quoted_texts(at.goal.instruction):
        written = any(holds_text(field.element.value or "", text) for field in at.page.actable)
        return ActionScore(0.03 if written else 0.5, "is quoted, for some field")
    if not value:
        return None
    if holds_text(item.element.value or "", value):
        return ActionScore(0.01, "holds what is given for it")
    return ActionScore(0.9 if text == value else 0.05, "is given for it" if text == value else "something else is given for it")


def _is_in_order(at: Situation, n: int, item: Item) -> bool:
    fields = [other for other in at.page.actable if other.role in FIELDS]
    return item in fields and fields.index(item) == n


def score_select(at: Situation, item: Item, option: str) -> ActionScore:
    """How sensible it is to select the option."""
    if normalise(item.element.value or "") == normalise(option):
        return ActionScore(0.01, "is selected already")
    if at.application and (value := given_value(item.label, at.goal.instruction)):
        return ActionScore(0.9 if normalise(option) == normalise(value) else 0.05, f"{value!r} is given for it")
    best, why = 0.04, "no part asks for this option"
    for status in at.progress.statuses:
        if status.done or status.part.kind not in ("select", "fill", "click"):
            continue
        phrases = (status.text,) if status.part.kind == "fill" else status.part.targets
        score = max((similarity(phrase, option) for phrase in phrases), default=0.0)
        if score > best:
            best, why = score, f"fits {status.part}"
    return ActionScore(max(best, 0.5 * mention_score(option, at.goal)), why)
