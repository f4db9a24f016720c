"""Scores of entering text into a field and of selecting an option.

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


def score_fill(situation: Situation, item: Item, text: str) -> ActionScore:
    """Return the score of entering the text into the field. An empty text clears it."""
    value = item.element.value or ""
    if situation.application and (found := _score_in_application(situation, item, text)) is not None:
        return found
    if not text:
        return ActionScore(0.7 if is_misplaced(item, situation.goal, situation.page) else 0.0, "holds what belongs elsewhere")
    if holds_text(value, text):
        return ActionScore(0.01, "holds the text already")
    best, reason = 0.03, "no part asks for this text here"
    fills = [s for s in situation.progress.statuses if s.subgoal.kind == "fill"]
    for status in fills:
        score = affinity(status.subgoal, item, situation.page) * 0.95 ** fills.index(status)
        wanted = status.subgoal.text or adjacent_text(item.label, situation.page) or status.text
        if not wanted or format_for_field(item, wanted) != text:
            continue
        if status.done and not status.subgoal.multiple:
            score *= 0.1
        if affinity(status.subgoal, item, situation.page) == 0.5:
            score = 0.75 if _is_in_order(situation, fills.index(status), item) else 0.3
        if score > best:
            best, reason = score, f"fits {status.subgoal}"
    if any(text in field_settings(item, s.subgoal) for s in situation.progress.open):
        best, reason = 0.85, "sets what is to be chosen"
    if not fills and best < 0.3 and text in situation.goal.literals:
        best, reason = 0.3 + 0.1 * mention_score(item.label, situation.goal), "the instruction holds this text"
    if value and best < 0.9:
        best *= 0.7
    return ActionScore(best, reason)


def _score_in_application(situation: Situation, item: Item, text: str) -> ActionScore | None:
    """Return the score of a text that the instruction gives for an application's field, or of a search term.

    None if neither is known.
    """
    if is_search_field(item, situation.page):
        if text not in situation.search_terms or holds_text(item.element.value or "", text):
            return ActionScore(0.01, "was searched for")
        searched = sum(1 for role, label in situation.clicked_labels if normalise(label) == "search")
        return ActionScore(0.36 - 0.03 * situation.search_terms.index(text) - 0.1 * searched, "may find it")
    value = given_value(item.label, situation.goal.instruction)
    if not value and text in quoted_texts(situation.goal.instruction):
        written = any(holds_text(field.element.value or "", text) for field in situation.page.actable)
        return ActionScore(0.03 if written else 0.5, "is quoted, for some field")
    if not value:
        return None
    if holds_text(item.element.value or "", value):
        return ActionScore(0.01, "holds what is given for it")
    return ActionScore(0.9 if text == value else 0.05, "is given for it" if text == value else "something else is given for it")


def _is_in_order(situation: Situation, n: int, item: Item) -> bool:
    fields = [other for other in situation.page.actable if other.role in FIELDS]
    return item in fields and fields.index(item) == n


def score_select(situation: Situation, item: Item, option: str) -> ActionScore:
    """Return the score of selecting the option."""
    if normalise(item.element.value or "") == normalise(option):
        return ActionScore(0.01, "is selected already")
    if situation.application and (value := given_value(item.label, situation.goal.instruction)):
        return ActionScore(0.9 if normalise(option) == normalise(value) else 0.05, f"{value!r} is given for it")
    best, reason = 0.04, "no part asks for this option"
    for status in situation.progress.statuses:
        if status.done or status.subgoal.kind not in ("select", "fill", "click"):
            continue
        phrases = (status.text,) if status.subgoal.kind == "fill" else status.subgoal.targets
        score = max((similarity(phrase, option) for phrase in phrases), default=0.0)
        if score > best:
            best, reason = score, f"fits {status.subgoal}"
    return ActionScore(max(best, 0.5 * mention_score(option, situation.goal)), reason)
