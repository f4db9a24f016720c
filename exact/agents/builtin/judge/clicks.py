"""How sensible it is to click an element.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

from collections.abc import Iterable

from exact.agents.builtin.judge import keys
from exact.agents.builtin.judge.finish import carries_out, sends
from exact.agents.builtin.judge.progress import SubgoalStatus, holds_text, touched_ids
from exact.agents.builtin.judge.situation import ActionScore, Situation
from exact.agents.builtin.language.dates import parse_date
from exact.agents.builtin.language.lexical import normalise, similarity, vocabulary, words
from exact.agents.builtin.language.subgoals import Subgoal
from exact.agents.builtin.page.calendar import calendar_step
from exact.agents.builtin.page.field_values import is_search_field
from exact.agents.builtin.page.matching import CONFIDENT, affinity, is_submit, mention_score, proximity
from exact.agents.builtin.page.page import CHOICES, FIELDS, TEXTS, Item

_LEADS_ON = vocabulary("next more search menu show expand browse > » ▶ ► + find")
_NOVELTY = {
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


def score_click(at: Situation, item: Item) -> ActionScore:
    """How sensible a click on the element is."""
    if any(s.part.submits and affinity(s.part, item, at.page) >= CONFIDENT for s in at.progress.statuses):
        return _score_submit(at)
    if at.application and (found := _score_in_application(at, item)) is not None:
        return found
    if item.role in ("checkbox", "switch") and item.on and not (at.application and item.element.id not in touched_ids(at.history)):
        wanted = any(affinity(s.part, item, at.page) >= CONFIDENT for s in at.progress.statuses if s.part.kind != "unselect")
        return ActionScore(0.02, "would undo a part") if wanted else ActionScore(0.6, "is ticked without being asked for")
    best, why = 0.0, ""
    if any(calendar_step(t, at.page) is item for s in at.progress.open for t in (s.text, *s.part.targets) if t):
        return ActionScore(0.92, "leads to the date")
    for rank, status in enumerate(s for s in at.progress.statuses if not s.done and s.part.kind != "answer"):
        score = _score_for_subgoal(at, status, item) * 0.93**rank
        if score > best:
            best, why = score, f"fits {status.part}"
    if is_submit(item) and not any(s.part.submits for s in at.progress.statuses) and best < CONFIDENT:
        return _score_submit(at)
    others = [s for s in at.progress.open if s.best >= 0.6]
    if is_submit(item) and len(others) > 1 and at.goal.parts[0].verb in words(item.label):
        return ActionScore(0.1, "would send before all parts are done")
    if best >= CONFIDENT and item.widget:
        return ActionScore(best, why)
    other = _score_exploration(at, item)
    return other if other.score > best else ActionScore(best, why)


def _score_in_application(at: Situation, item: Item) -> ActionScore | None:
    """What is plain in an application: the button that does or sends what is asked for, or searches; None of anything else."""
    if carries_out(at, item):
        return ActionScore(0.85, "does what is asked")
    if (worth := sends(at, item)) > 0:
        return ActionScore(worth, "sends the form" if worth > 0.5 else "would send the form too early")
    if is_submit(item) and normalise(item.label) == "search":
        sought = any(
            is_search_field(field, at.page) and field.element.value in at.subjects for field in at.page.actable if field.element.value
        )
        return ActionScore(0.75 if sought else 0.05, "searches for it" if sought else "nothing is to be searched for")
    return None


def _score_for_subgoal(at: Situation, status: SubgoalStatus, item: Item) -> float:
    part = status.part
    if part.kind == "fill":
        return _score_for_fill(status, item)
    if part.kind == "scroll":
        return 0.05 if "focused" in item.element.states or item.role not in FIELDS else 0.75 * affinity(part, item, at.page)
    if item.role == "slider" and keys.slider_distance(item, at.progress) and part.kind in ("select", "fill", "drag"):
        return 0.05 if "focused" in item.element.states else 0.7
    if part.submits:
        return 0.1 * affinity(part, item, at.page)
    if not part.targets and not part.many and any(item.element.id in s.used for s in at.progress.statuses):
        return 0.1
    if part.leads and item.role == "menuitem":
        return 0.5 * affinity(part, item, at.page)
    score = affinity(part, item, at.page) * (0.75 if part.conditional else 1.0)
    if part.kind == "select" and "readonly" in item.element.states and any(map(parse_date, part.targets)):
        return _calendar_score(part.around.split(), item)
    if part.kind == "select" and item.role in FIELDS | {"combobox"}:
        score = max(score, 0.75 * max((similarity(word, item.label) for word in part.around.split()), default=0.0))
    if score >= 0.3 and not part.many:
        score *= _rival_factor(at, part, item, score)
    return score * (0.6 if part.kind == "find" else 1.0)


def _rival_factor(at: Situation, part: Subgoal, item: Item, score: float) -> float:
    """What is left of a score that several elements have: what stands nearest to the values of the instruction keeps most."""
    rivals = [other for other in at.page.actable if affinity(part, other, at.page) >= score - 0.01]
    if len(rivals) < 2:
        return 1.0
    near = proximity(item, at.goal, at.page)
    all_near = [proximity(other, at.goal, at.page) for other in rivals]
    if near < max(all_near):
        return 0.4
    level = all_near.count(near)
    return 0.97 if near and level == 1 else 0.9 if level < len(rivals) else 0.8


def _calendar_score(names: Iterable[str], field: Item) -> float:
    return 0.8 * max(0.5, max((similarity(name, field.label) for name in names), default=0.0))


def _score_for_fill(status: SubgoalStatus, item: Item) -> float:
    """What a click does for a text to be written: it takes a completion, or opens a picker."""
    if status.part.ending and holds_text(item.label, status.text, status.part.ending):
        return 0.95
    locked = "readonly" in item.element.states
    if locked and parse_date(status.text):
        return _calendar_score(status.part.targets, item)
    if "focused" in item.element.states or item.role not in FIELDS:
        return 0.0
    return 0.3 if locked else 0.15


def _score_submit(at: Situation) -> ActionScore:
    progress = at.progress
    if progress.open:
        names = ", ".join(str(s.part) for s in progress.open[:3])
        reach = all(s.best < 0.3 for s in progress.open)
        return ActionScore((0.22 if reach else 0.08) * (0.5 + 0.5 * progress.share), f"would send the form with open parts: {names}")
    if progress.stray:
        return ActionScore(0.2, f"{progress.stray} boxes or fields are set without being asked for")
    if progress.sure < 1.0:
        return ActionScore(0.95 * progress.sure, "all parts seem done")
    return ActionScore(0.95 if progress.tasks or not any(s.part.kind == "find" for s in progress.statuses) else 0.5, "all parts are done")


def _score_exploration(at: Situation, item: Item) -> ActionScore:
    """What a click may show, or be, when nothing fits better."""
    said, near = mention_score(item.label, at.goal), proximity(item, at.goal, at.page)
    seen = _was_clicked(at, item)
    base = _novelty(at, item) * (1.0 if at.sought or not at.progress.open else 0.3) * (0.5 if seen else 1.0)
    score = base + (0.1 if item.dead else 0.22) * said + 0.14 * near * (0.3 if item.role in TEXTS else 1.0)
    if item.mute and not at.progress.open:
        score += 0.0005 * item.index  # what confirms stands after what cancels
    why = f"may lead on ({item.role})" + (", is mentioned" if said >= 0.7 else "") + (", stands near" if near else "")
    return ActionScore(min(score * (0.6 if seen else 1.0), 0.7), why, True)


def _was_clicked(at: Situation, item: Item) -> bool:
    """Whether it was acted on before; in an application, which repeats its links on every page, or one that reads the same."""
    if any(step.action.elements and step.action.elements[0] == item.element.id for step in at.history):
        return True
    return at.application and bool(item.label) and (item.role, item.label) in at.clicked


def _novelty(at: Situation, item: Item) -> float:
    """How often a click on such an element shows something new."""
    states = set(item.element.states)
    if is_submit(item):
        base = 0.06
    elif item.role in FIELDS:
        base = 0.03 if "focused" in states else 0.05
    elif item.role in CHOICES:
        base = 0.08
    elif item.role in ("image", "img"):
        base = 0.25 if item.mute and not at.progress.open else 0.1
    else:
        base = _NOVELTY.get(item.role, 0.05)
        if normalise(item.label) in _LEADS_ON and item.role not in TEXTS:
            base = max(base, 0.4)
    if at.application and words(item.label)[:1] == ("skip",):
        base = 0.02
    elif at.application and item.role in ("link", "button"):
        base *= (0.6 if item.role == "button" else 1.0) * (0.7 if (item.role, item.label) in at.before else 1.0)
    if not {"collapsed", "expanded"} & states and any(s.part.literal and item.role in s.part.roles for s in at.progress.open):
        base *= 0.5
    if {"selected", "expanded"} & states and item.role in ("tab", "treeitem", "summary", "button"):
        base *= 0.3
    return base
