"""Score of one action in one state, shared by the built-in policy and value function.

Part of the built-in agent, which is not a language model. Element ids only identify the element of an action.

Scores of entering text into a field and of selecting an option.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

from exact.action import Action
from exact.agents.builtin.judge import keys
from exact.agents.builtin.judge.clicks import score_click
from exact.agents.builtin.judge.finish import completion, score_stop
from exact.agents.builtin.judge.progress import holds_text, is_misplaced
from exact.agents.builtin.judge.situation import ActionScore, Situation
from exact.agents.builtin.language.lexical import normalise, similarity
from exact.agents.builtin.page.derive import adjacent_text, field_settings, format_for_field
from exact.agents.builtin.page.field_values import given_value, is_search_field, quoted_texts
from exact.agents.builtin.page.matching import CONFIDENT, affinity, mention_score
from exact.agents.builtin.page.page import CHOICES, FIELDS, Item


def score_action(situation: Situation, action: Action) -> ActionScore:
    """Return the score of an action. Repeated and undoing actions score less."""
    item = situation.page.by_id.get(action.elements[0]) if action.elements else None
    if action.elements and item is None:
        return ActionScore(0.0, "names no element of this page")
    scored = _score_by_verb(situation, action, item)
    if situation.application and action.name != "stop":
        scored = _temper(situation, scored, item if action.name == "click" else None)
    same = sum(1 for step in situation.history if step.action.key == action.key and step.observation.fingerprint == situation.fingerprint)
    if same and not (action.name == "wait" and situation.menu_pending):
        return ActionScore(scored.score * 0.1, f"{scored.reason}; already done in this very state", scored.exploratory)
    if (
        item is not None
        and action.name == "click"
        and item.role not in CHOICES
        and any(s.action.key == action.key for s in situation.history)
    ):
        return ActionScore(scored.score * 0.55, f"{scored.reason}; done before", scored.exploratory)
    return scored


def _temper(situation: Situation, scored: ActionScore, clicked: Item | None) -> ActionScore:
    """Return the score, reduced for applications.

    There, elements that can be acted on have a widget role, and no action is needed once the task is completed.
    """
    factor = 0.3 if clicked is not None and not clicked.widget else 1.0
    factor *= 0.5 if situation.question is None and completion(situation) >= 0.5 else 1.0
    return ActionScore(factor * scored.score, scored.reason, scored.exploratory) if factor < 1 else scored


def _score_by_verb(situation: Situation, action: Action, item: Item | None) -> ActionScore:
    match action.name:
        case "click" if item is not None:
            return score_click(situation, item)
        case "fill" if item is not None:
            return score_fill(situation, item, str(action.args[1]))
        case "select" if item is not None:
            return score_select(situation, item, str(action.args[1]))
        case "press":
            covered = any("covered" in step.error for step in situation.tried)
            return ActionScore(keys.score_key(str(action.args[0]), situation.page, situation.progress, covered=covered), "a key")
        case "hover" if item is not None and item.role == "menuitem":
            return _score_menu_hover(situation, item)
        case "drag" | "hover" if item is not None:
            return _score_gesture(situation, action, item)
        case "scroll":
            return _score_scroll(situation, str(action.args[0]))
        case "stop":
            return score_stop(situation, str(action.args[0]))
        case "wait":
            return ActionScore(0.6 if situation.menu_pending else 0.03, "something may be about to change")
        case "go_back":
            return ActionScore(0.12 if situation.page_changed and situation.target_hidden else 0.0, "back to look elsewhere")
        case _:
            return ActionScore(0.02, "nothing speaks for it")


def _score_gesture(situation: Situation, action: Action, item: Item) -> ActionScore:
    asked = [s for s in situation.progress.statuses if s.subgoal.kind == action.name and not s.done]
    if not asked:
        return ActionScore(0.01, "not asked for")
    score = max(affinity(s.subgoal, item, situation.page) for s in asked)
    if action.name == "drag":
        target = situation.page.by_id.get(action.elements[1]) if len(action.elements) > 1 else None
        other = max((mention_score(target.label, situation.goal) for _ in asked), default=0.0) if target else 0.0
        return ActionScore(0.3 + 0.3 * score + 0.25 * other, "the instruction asks to drag")
    return ActionScore(0.3 + 0.6 * score, "the instruction asks to hover")


def _score_menu_hover(situation: Situation, item: Item) -> ActionScore:
    """Return the score of hovering over a menu item, which opens its submenu without choosing it."""
    if "expanded" in item.element.states:
        return ActionScore(0.02, "is open already")
    leading = max(
        (affinity(s.subgoal, item, situation.page) for s in situation.progress.statuses if s.subgoal.opens_next and not s.done), default=0.0
    )
    if leading >= CONFIDENT:
        return ActionScore(min(leading + 0.01, 1.0), "opens the way to the next part")
    return ActionScore(0.45 if situation.target_hidden else 0.05, "may show more of the menu", True)


def _score_scroll(situation: Situation, direction: str) -> ActionScore:
    if any(s.subgoal.kind == "scroll" and not s.done for s in situation.progress.statuses):
        upward = any(keys.is_upward(s.subgoal) for s in situation.progress.statuses if s.subgoal.kind == "scroll")
        return ActionScore(0.5 if upward == (direction == "up") else 0.05, "the instruction asks to scroll")
    hidden = any(not item.element.visible for item in situation.page.items)
    return ActionScore(0.1 if hidden and direction == "down" and situation.target_hidden else 0.02, "more may be out of view")


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
