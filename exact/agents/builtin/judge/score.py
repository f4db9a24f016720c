"""How sensible one action is in one state: the common ground of the built-in policy and the embedded value function.

Part of the built-in agent, which is not a language model. Element ids only say which element an action names.
"""

from __future__ import annotations

from exact.action import Action
from exact.agents.builtin.judge import keys
from exact.agents.builtin.judge.clicks import score_click
from exact.agents.builtin.judge.finish import completion, score_stop
from exact.agents.builtin.judge.situation import ActionScore, Situation
from exact.agents.builtin.judge.typing import score_fill, score_select
from exact.agents.builtin.page.matching import CONFIDENT, affinity, mention_score
from exact.agents.builtin.page.page import CHOICES, Item


def score_action(at: Situation, action: Action) -> ActionScore:
    """How sensible the action is, repeats and undoing counted against it."""
    item = at.page.by_id.get(action.elements[0]) if action.elements else None
    if action.elements and item is None:
        return ActionScore(0.0, "names no element of this page")
    verdict = _score_by_verb(at, action, item)
    if at.application and action.name != "stop":
        verdict = _temper(at, verdict, item if action.name == "click" else None)
    same = sum(1 for step in at.history if step.action.key == action.key and step.observation.fingerprint == at.fingerprint)
    if same and not (action.name == "wait" and at.pending):
        return ActionScore(verdict.score * 0.1, f"{verdict.why}; already done in this very state", verdict.guess)
    if item is not None and action.name == "click" and item.role not in CHOICES and any(s.action.key == action.key for s in at.history):
        return ActionScore(verdict.score * 0.55, f"{verdict.why}; done before", verdict.guess)
    return verdict


def _temper(at: Situation, verdict: ActionScore, clicked: Item | None) -> ActionScore:
    """In an application what can be acted on says so by its role, and nothing more is to be done once all is."""
    part = 0.3 if clicked is not None and not clicked.widget else 1.0
    part *= 0.5 if at.question is None and completion(at) >= 0.5 else 1.0
    return ActionScore(part * verdict.score, verdict.why, verdict.guess) if part < 1 else verdict


def _score_by_verb(at: Situation, action: Action, item: Item | None) -> ActionScore:
    match action.name:
        case "click" if item is not None:
            return score_click(at, item)
        case "fill" if item is not None:
            return score_fill(at, item, str(action.args[1]))
        case "select" if item is not None:
            return score_select(at, item, str(action.args[1]))
        case "press":
            covered = any("covered" in step.error for step in at.tried)
            return ActionScore(keys.score_key(str(action.args[0]), at.page, at.progress, covered=covered), "a key")
        case "hover" if item is not None and item.role == "menuitem":
            return _score_menu_hover(at, item)
        case "drag" | "hover" if item is not None:
            return _score_gesture(at, action, item)
        case "scroll":
            return _score_scroll(at, str(action.args[0]))
        case "stop":
            return score_stop(at, str(action.args[0]))
        case "wait":
            return ActionScore(0.6 if at.pending else 0.03, "something may be about to change")
        case "go_back":
            return ActionScore(0.12 if at.moved and at.sought else 0.0, "back to look elsewhere")
        case _:
            return ActionScore(0.02, "nothing speaks for it")


def _score_gesture(at: Situation, action: Action, item: Item) -> ActionScore:
    asked = [s for s in at.progress.statuses if s.part.kind == action.name and not s.done]
    if not asked:
        return ActionScore(0.01, "not asked for")
    score = max(affinity(s.part, item, at.page) for s in asked)
    if action.name == "drag":
        target = at.page.by_id.get(action.elements[1]) if len(action.elements) > 1 else None
        other = max((mention_score(target.label, at.goal) for _ in asked), default=0.0) if target else 0.0
        return ActionScore(0.3 + 0.3 * score + 0.25 * other, "the instruction asks to drag")
    return ActionScore(0.3 + 0.6 * score, "the instruction asks to hover")


def _score_menu_hover(at: Situation, item: Item) -> ActionScore:
    """Hovering shows what is below a menu item without choosing it."""
    if "expanded" in item.element.states:
        return ActionScore(0.02, "is open already")
    leading = max((affinity(s.part, item, at.page) for s in at.progress.statuses if s.part.leads and not s.done), default=0.0)
    if leading >= CONFIDENT:
        return ActionScore(min(leading + 0.01, 1.0), "opens the way to the next part")
    return ActionScore(0.45 if at.sought else 0.05, "may show more of the menu", True)


def _score_scroll(at: Situation, direction: str) -> ActionScore:
    if any(s.part.kind == "scroll" and not s.done for s in at.progress.statuses):
        upward = any(keys.is_upward(s.part) for s in at.progress.statuses if s.part.kind == "scroll")
        return ActionScore(0.5 if upward == (direction == "up") else 0.05, "the instruction asks to scroll")
    hidden = any(not item.element.visible for item in at.page.items)
    return ActionScore(0.1 if hidden and direction == "down" and at.sought else 0.02, "more may be out of view")
