"""How sensible one action is in one state: the common ground of the embedded policy and the embedded value function.

Part of the embedded agent, which is not a language model. Element ids only say which element an action names.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from exact.action import Action
from exact.agents.builtin import instruction as instructions
from exact.agents.builtin import keys
from exact.agents.builtin import page as pages
from exact.agents.builtin.calendar import is_date, towards
from exact.agents.builtin.derive import beside, field_text
from exact.agents.builtin.instruction import Goal
from exact.agents.builtin.lexical import normal, similarity, vocabulary, words
from exact.agents.builtin.matching import SURE, affinity, is_submit, mentioned, standing_near
from exact.agents.builtin.page import CHOICES, FIELDS, TEXTS, Item, Page
from exact.agents.builtin.progress import Progress, Status, assess, holds, misplaced
from exact.context import Taken
from exact.observation import Observation

_MORE = vocabulary("next more search menu show expand browse > » ▶ ► + find")
_CURIOSITY = {
    "tab": 0.5,
    "summary": 0.5,
    "treeitem": 0.42,
    "menuitem": 0.3,
    "link": 0.34,
    "button": 0.34,
    "combobox": 0.2,
    "listitem": 0.24,
    "generic": 0.2,
}


class Verdict(msgspec.Struct, frozen=True):
    """A judgement on an action."""

    score: float
    """In [0, 1]: how surely it is the right thing to do now."""
    why: str
    guess: bool = False
    """Whether it is only worth a look: nothing says that it does what is asked."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """A state as the embedded agent sees it."""

    goal: Goal
    moved: bool
    """Whether another page came before this one."""
    page: Page
    progress: Progress
    fingerprint: str
    history: tuple[Taken, ...]
    tried: tuple[Taken, ...]

    @property
    def pending(self) -> bool:
        """Whether the last action was on a menu and changed nothing yet: menus open late."""
        last = self.history[-1] if self.history else None
        item = self.page.by_id.get(last.action.elements[0]) if last and last.action.elements else None
        return last is not None and last.observation.fingerprint == self.fingerprint and item is not None and item.role == "menuitem"

    @property
    def sought(self) -> bool:
        """Whether an open part's element is not in sight."""
        return any(not s.done and s.best < 0.6 for s in self.progress.statuses)


def situation(instruction: str, observation: Observation, history: Sequence[Taken], tried: Sequence[Taken] = ()) -> Situation:
    """The reading of a state that was reached by `history`."""
    goal = instructions.read(instruction)
    page = pages.read(observation, instruction)
    return Situation(
        goal=goal,
        moved=any(step.observation.url != observation.url for step in history),
        page=page,
        progress=assess(goal, page, history),
        fingerprint=observation.fingerprint,
        history=tuple(history),
        tried=tuple(tried),
    )


def judge(at: Situation, action: Action) -> Verdict:
    """How sensible the action is, repeats and undoing counted against it."""
    item = at.page.by_id.get(action.elements[0]) if action.elements else None
    if action.elements and item is None:
        return Verdict(0.0, "names no element of this page")
    verdict = _judge(at, action, item)
    same = sum(1 for step in at.history if step.action.key == action.key and step.observation.fingerprint == at.fingerprint)
    if same and not (action.name == "wait" and at.pending):
        return Verdict(verdict.score * 0.1, f"{verdict.why}; already done in this very state", verdict.guess)
    if item is not None and action.name == "click" and item.role not in CHOICES and any(s.action.key == action.key for s in at.history):
        return Verdict(verdict.score * 0.55, f"{verdict.why}; done before", verdict.guess)
    return verdict


def _judge(at: Situation, action: Action, item: Item | None) -> Verdict:
    match action.name:
        case "click" if item is not None:
            return _click(at, item)
        case "fill" if item is not None:
            return _fill(at, item, str(action.args[1]))
        case "select" if item is not None:
            return _select(at, item, str(action.args[1]))
        case "press":
            covered = any("covered" in step.error for step in at.tried)
            return Verdict(keys.worth(str(action.args[0]), at.page, at.progress, covered=covered), "a key")
        case "hover" if item is not None and item.role == "menuitem":
            return _open_menu(at, item)
        case "drag" | "hover" if item is not None:
            return _gesture(at, action, item)
        case "scroll":
            return _scroll(at, str(action.args[0]))
        case "stop":
            return Verdict(0.01 if at.progress.open or at.sought else 0.05, "stop")
        case "wait":
            return Verdict(0.6 if at.pending else 0.03, "something may be about to change")
        case "go_back":
            return Verdict(0.12 if at.moved and at.sought else 0.0, "back to look elsewhere")
        case _:
            return Verdict(0.02, "nothing speaks for it")


def _click(at: Situation, item: Item) -> Verdict:
    if any(s.part.submits and affinity(s.part, item, at.page) >= SURE for s in at.progress.statuses):
        return _submit(at)
    if item.role in ("checkbox", "switch") and item.on:
        wanted = any(affinity(s.part, item, at.page) >= SURE for s in at.progress.statuses if s.part.kind != "unselect")
        return Verdict(0.02, "would undo a part") if wanted else Verdict(0.6, "is ticked without being asked for")
    best, why = 0.0, ""
    if any(towards(t, at.page) is item for s in at.progress.open for t in (s.text, *s.part.targets) if t):
        return Verdict(0.92, "leads to the date")
    for rank, status in enumerate(s for s in at.progress.statuses if not s.done and s.part.kind != "answer"):
        score = _for_part(at, status, item) * 0.93**rank
        if score > best:
            best, why = score, f"fits {status.part}"
    if is_submit(item) and not any(s.part.submits for s in at.progress.statuses) and best < SURE:
        return _submit(at)
    others = [s for s in at.progress.open if s.best >= 0.6]
    if is_submit(item) and len(others) > 1 and at.goal.parts[0].verb in words(item.label):
        return Verdict(0.1, "would send before all parts are done")
    if best >= SURE and item.widget:
        return Verdict(best, why)
    other = _curiosity(at, item)
    return other if other.score > best else Verdict(best, why)


def _for_part(at: Situation, status: Status, item: Item) -> float:
    part = status.part
    if part.kind == "fill":
        focused = "focused" in item.element.states
        if part.ending and item.label.casefold().startswith(status.text.casefold()) and holds(item.label, status.text, part.ending):
            return 0.95
        if "readonly" in item.element.states and is_date(status.text):
            return 0.8 * max(0.5, max((similarity(target, item.label) for target in part.targets), default=0.0))
        return 0.0 if focused or item.role not in FIELDS else (0.3 if "readonly" in item.element.states else 0.15)
    if part.kind == "scroll":
        return 0.05 if "focused" in item.element.states or item.role not in FIELDS else 0.75 * affinity(part, item, at.page)
    if item.role == "slider" and keys.distance(item, at.progress) and part.kind in ("select", "fill", "drag"):
        return 0.05 if "focused" in item.element.states else 0.7
    if part.submits:
        return 0.1 * affinity(part, item, at.page)
    if not part.targets and not part.many and any(item.element.id in s.used for s in at.progress.statuses):
        return 0.1
    if part.leads and item.role == "menuitem":
        return 0.5 * affinity(part, item, at.page)
    score = affinity(part, item, at.page) * (0.75 if part.conditional else 1.0)
    if part.kind == "select" and item.role in FIELDS | {"combobox"}:
        score = max(score, 0.75 * max((similarity(word, item.label) for word in part.around.split()), default=0.0))
    if score >= 0.3:
        rivals = [other for other in at.page.actable if affinity(part, other, at.page) >= score - 0.01]
        if len(rivals) > 1 and not part.many:
            near = standing_near(item, at.goal, at.page)
            higher = max(standing_near(other, at.goal, at.page) for other in rivals)
            level = sum(1 for other in rivals if standing_near(other, at.goal, at.page) == higher)
            score *= (0.97 if near and level == 1 else 0.9 if level < len(rivals) else 0.8) if near == higher else 0.4
    return score * (0.6 if part.kind == "find" else 1.0)


def _submit(at: Situation) -> Verdict:
    progress = at.progress
    if progress.open:
        names = ", ".join(str(s.part) for s in progress.open[:3])
        reach = all(s.best < 0.3 for s in progress.open)
        return Verdict((0.22 if reach else 0.08) * (0.5 + 0.5 * progress.share), f"would send the form with open parts: {names}")
    if progress.stray:
        return Verdict(0.2, f"{progress.stray} boxes or fields are set without being asked for")
    if progress.sure < 1.0:
        return Verdict(0.95 * progress.sure, "all parts seem done")
    return Verdict(0.95 if progress.tasks or not any(s.part.kind == "find" for s in progress.statuses) else 0.5, "all parts are done")


def _curiosity(at: Situation, item: Item) -> Verdict:
    """What a click may show, or be, when nothing fits better."""
    said = mentioned(item.label, at.goal)
    near = standing_near(item, at.goal, at.page)
    states = set(item.element.states)
    mute = 0.25 if item.mute and not at.progress.open else 0.1
    base = _CURIOSITY.get(item.role, mute if item.role in ("image", "img") else 0.05)
    if is_submit(item):
        base = 0.06
    elif normal(item.label) in _MORE and item.role not in TEXTS | FIELDS:
        base = max(base, 0.4)
    if item.role in FIELDS:
        base = 0.03 if "focused" in states else 0.05
    if item.role in CHOICES:
        base = 0.08
    if any(s.part.literal and item.role in s.part.roles for s in at.progress.open) and not {"collapsed", "expanded"} & states:
        base *= 0.5
    if {"selected", "expanded"} & states and item.role in ("tab", "treeitem", "summary", "button"):
        base *= 0.3
    seen = any(s.action.elements and s.action.elements[0] == item.element.id for s in at.history)
    base *= (1.0 if at.sought or not at.progress.open else 0.3) * (0.5 if seen else 1.0)
    score = base + (0.1 if item.dead else 0.22) * said + 0.14 * near * (0.3 if item.role in TEXTS else 1.0)
    if item.mute and not at.progress.open:
        score += 0.0005 * item.index  # what confirms stands after what cancels
    if seen:
        score *= 0.6
    return Verdict(
        min(score, 0.7),
        f"may lead on ({item.role})" + (", is mentioned" if said >= 0.7 else "") + (", stands near" if near else ""),
        True,
    )


def _fill(at: Situation, item: Item, text: str) -> Verdict:
    value = item.element.value or ""
    if not text:
        return Verdict(0.7 if misplaced(item, at.goal, at.page) else 0.0, "holds what belongs elsewhere")
    if holds(value, text):
        return Verdict(0.01, "holds the text already")
    best, why = 0.03, "no part asks for this text here"
    fills = [s for s in at.progress.statuses if s.part.kind == "fill"]
    for status in fills:
        score = affinity(status.part, item, at.page) * 0.95 ** fills.index(status)
        wanted = beside(item.label, at.page) or status.text
        if not wanted or field_text(item, wanted) != text:
            continue
        if status.done and not status.part.many:
            score *= 0.1
        if affinity(status.part, item, at.page) == 0.5:
            score = 0.75 if _in_order(at, fills.index(status), item) else 0.3
        if score > best:
            best, why = score, f"fits {status.part}"
    if item.role == "spinbutton" and any(text in s.part.targets for s in at.progress.open if s.part.kind == "select"):
        best, why = 0.85, "sets the number"
    if not fills and best < 0.3 and text in at.goal.texts:
        best, why = 0.3 + 0.1 * mentioned(item.label, at.goal), "the instruction holds this text"
    if value and best < 0.9:
        best *= 0.7
    return Verdict(best, why)


def _in_order(at: Situation, n: int, item: Item) -> bool:
    fields = [other for other in at.page.actable if other.role in FIELDS]
    return item in fields and fields.index(item) == n


def _select(at: Situation, item: Item, option: str) -> Verdict:
    if normal(item.element.value or "") == normal(option):
        return Verdict(0.01, "is selected already")
    best, why = 0.04, "no part asks for this option"
    for status in at.progress.statuses:
        if status.done or status.part.kind not in ("select", "fill", "click"):
            continue
        phrases = (status.text,) if status.part.kind == "fill" else status.part.targets
        score = max((similarity(phrase, option) for phrase in phrases), default=0.0)
        if score > best:
            best, why = score, f"fits {status.part}"
    return Verdict(max(best, 0.5 * mentioned(option, at.goal)), why)


def _gesture(at: Situation, action: Action, item: Item) -> Verdict:
    asked = [s for s in at.progress.statuses if s.part.kind == action.name and not s.done]
    if not asked:
        return Verdict(0.01, "not asked for")
    score = max(affinity(s.part, item, at.page) for s in asked)
    if action.name == "drag":
        target = at.page.by_id.get(action.elements[1]) if len(action.elements) > 1 else None
        other = max((mentioned(target.label, at.goal) for _ in asked), default=0.0) if target else 0.0
        return Verdict(0.3 + 0.3 * score + 0.25 * other, "the instruction asks to drag")
    return Verdict(0.3 + 0.6 * score, "the instruction asks to hover")


def _open_menu(at: Situation, item: Item) -> Verdict:
    """Hovering shows what is below a menu item without choosing it."""
    if "expanded" in item.element.states:
        return Verdict(0.02, "is open already")
    leading = max((affinity(s.part, item, at.page) for s in at.progress.statuses if s.part.leads and not s.done), default=0.0)
    if leading >= SURE:
        return Verdict(min(leading + 0.01, 1.0), "opens the way to the next part")
    return Verdict(0.45 if at.sought else 0.05, "may show more of the menu", True)


def _scroll(at: Situation, direction: str) -> Verdict:
    if any(s.part.kind == "scroll" and not s.done for s in at.progress.statuses):
        upward = any("top" in s.part.clause or " up" in s.part.clause for s in at.progress.statuses if s.part.kind == "scroll")
        return Verdict(0.5 if upward == (direction == "up") else 0.05, "the instruction asks to scroll")
    hidden = any(not item.element.visible for item in at.page.items)
    return Verdict(0.1 if hidden and direction == "down" and at.sought else 0.02, "more may be out of view")
