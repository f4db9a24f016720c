"""Scores of clicks.

Part of the built-in agent, which is not a language model.

Navigation to a day in a calendar that shows one month at a time.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from exact.agents.builtin.judge import keys
from exact.agents.builtin.judge.finish import carries_out, sends
from exact.agents.builtin.judge.progress import SubgoalStatus, holds_text, touched_ids
from exact.agents.builtin.judge.situation import ActionScore, Situation
from exact.agents.builtin.language.clauses import MONTHS, parse_date
from exact.agents.builtin.language.lexical import normalise, similarity, vocabulary, words
from exact.agents.builtin.language.subgoals import Subgoal
from exact.agents.builtin.page.field_values import is_search_field
from exact.agents.builtin.page.matching import CONFIDENT, affinity, is_submit, mention_score, proximity
from exact.agents.builtin.page.page import CHOICES, FIELDS, TEXTS, Item, PageModel

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


def score_click(situation: Situation, item: Item) -> ActionScore:
    """Return the score of a click on the element."""
    if any(s.subgoal.submits and affinity(s.subgoal, item, situation.page) >= CONFIDENT for s in situation.progress.statuses):
        return _score_submit(situation)
    if situation.application and (found := _score_in_application(situation, item)) is not None:
        return found
    if (
        item.role in ("checkbox", "switch")
        and item.selected
        and not (situation.application and item.element.id not in touched_ids(situation.history))
    ):
        wanted = any(
            affinity(s.subgoal, item, situation.page) >= CONFIDENT for s in situation.progress.statuses if s.subgoal.kind != "unselect"
        )
        return ActionScore(0.02, "would undo a part") if wanted else ActionScore(0.6, "is ticked without being asked for")
    best, reason = 0.0, ""
    if any(calendar_step(t, situation.page) is item for s in situation.progress.open for t in (s.text, *s.subgoal.targets) if t):
        return ActionScore(0.92, "leads to the date")
    for rank, status in enumerate(s for s in situation.progress.statuses if not s.done and s.subgoal.kind != "answer"):
        score = _score_for_subgoal(situation, status, item) * 0.93**rank
        if score > best:
            best, reason = score, f"fits {status.subgoal}"
    if is_submit(item) and not any(s.subgoal.submits for s in situation.progress.statuses) and best < CONFIDENT:
        return _score_submit(situation)
    others = [s for s in situation.progress.open if s.best_affinity >= 0.6]
    if is_submit(item) and len(others) > 1 and situation.goal.subgoals[0].verb in words(item.label):
        return ActionScore(0.1, "would send before all parts are done")
    if best >= CONFIDENT and item.widget:
        return ActionScore(best, reason)
    other = _score_exploration(situation, item)
    return other if other.score > best else ActionScore(best, reason)


def _score_in_application(situation: Situation, item: Item) -> ActionScore | None:
    """Return the score of a button that performs, sends or searches for the task of an application.

    None for other elements.
    """
    if carries_out(situation, item):
        return ActionScore(0.85, "does what is asked")
    if (worth := sends(situation, item)) > 0:
        return ActionScore(worth, "sends the form" if worth > 0.5 else "would send the form too early")
    if is_submit(item) and normalise(item.label) == "search":
        sought = any(
            is_search_field(field, situation.page) and field.element.value in situation.search_terms
            for field in situation.page.actable
            if field.element.value
        )
        return ActionScore(0.75 if sought else 0.05, "searches for it" if sought else "nothing is to be searched for")
    return None


def _score_for_subgoal(situation: Situation, status: SubgoalStatus, item: Item) -> float:
    subgoal = status.subgoal
    if subgoal.kind == "fill":
        return _score_for_fill(status, item)
    if subgoal.kind == "scroll":
        return 0.05 if "focused" in item.element.states or item.role not in FIELDS else 0.75 * affinity(subgoal, item, situation.page)
    if item.role == "slider" and keys.slider_distance(item, situation.progress) and subgoal.kind in ("select", "fill", "drag"):
        return 0.05 if "focused" in item.element.states else 0.7
    if subgoal.submits:
        return 0.1 * affinity(subgoal, item, situation.page)
    if not subgoal.targets and not subgoal.multiple and any(item.element.id in s.clicked_ids for s in situation.progress.statuses):
        return 0.1
    if subgoal.opens_next and item.role == "menuitem":
        return 0.5 * affinity(subgoal, item, situation.page)
    score = affinity(subgoal, item, situation.page) * (0.75 if subgoal.conditional else 1.0)
    if subgoal.kind == "select" and "readonly" in item.element.states and any(map(parse_date, subgoal.targets)):
        return _calendar_score(subgoal.surroundings.split(), item)
    if subgoal.kind == "select" and item.role in FIELDS | {"combobox"}:
        score = max(score, 0.75 * max((similarity(word, item.label) for word in subgoal.surroundings.split()), default=0.0))
    if score >= 0.3 and not subgoal.multiple:
        score *= _rival_factor(situation, subgoal, item, score)
    return score * (0.6 if subgoal.kind == "find" else 1.0)


def _rival_factor(situation: Situation, subgoal: Subgoal, item: Item, score: float) -> float:
    """Return the factor that reduces the score of an element with equal rivals, in [0, 1].

    The element nearest to the instruction's values keeps most of its score.
    """
    rivals = [other for other in situation.page.actable if affinity(subgoal, other, situation.page) >= score - 0.01]
    if len(rivals) < 2:
        return 1.0
    near = proximity(item, situation.goal, situation.page)
    all_near = [proximity(other, situation.goal, situation.page) for other in rivals]
    if near < max(all_near):
        return 0.4
    level = all_near.count(near)
    return 0.97 if near and level == 1 else 0.9 if level < len(rivals) else 0.8


def _calendar_score(names: Iterable[str], field: Item) -> float:
    return 0.8 * max(0.5, max((similarity(name, field.label) for name in names), default=0.0))


def _score_for_fill(status: SubgoalStatus, item: Item) -> float:
    """Return the score of a click for text to enter: it accepts a completion, or opens a picker."""
    if status.subgoal.ending and holds_text(item.label, status.text, status.subgoal.ending):
        return 0.95
    locked = "readonly" in item.element.states
    if locked and parse_date(status.text):
        return _calendar_score(status.subgoal.targets, item)
    if "focused" in item.element.states or item.role not in FIELDS:
        return 0.0
    return 0.3 if locked else 0.15


def _score_submit(situation: Situation) -> ActionScore:
    progress = situation.progress
    if progress.open:
        names = ", ".join(str(s.subgoal) for s in progress.open[:3])
        reach = all(s.best_affinity < 0.3 for s in progress.open)
        return ActionScore((0.22 if reach else 0.08) * (0.5 + 0.5 * progress.share), f"would send the form with open parts: {names}")
    if progress.stray_count:
        return ActionScore(0.2, f"boxes or fields set without being asked for: {progress.stray_count}")
    if progress.confidence < 1.0:
        return ActionScore(0.95 * progress.confidence, "all parts seem done")
    return ActionScore(
        0.95 if progress.tasks or not any(s.subgoal.kind == "find" for s in progress.statuses) else 0.5, "all parts are done"
    )


def _score_exploration(situation: Situation, item: Item) -> ActionScore:
    """Return the score of a click that may reveal something new, for elements that fit no subgoal better."""
    mentioned, near = mention_score(item.label, situation.goal), proximity(item, situation.goal, situation.page)
    seen = _was_clicked(situation, item)
    base = _novelty(situation, item) * (1.0 if situation.target_hidden or not situation.progress.open else 0.3) * (0.5 if seen else 1.0)
    score = base + (0.1 if item.inert else 0.22) * mentioned + 0.14 * near * (0.3 if item.role in TEXTS else 1.0)
    if item.unlabelled and not situation.progress.open:
        score += 0.0005 * item.index  # a confirming button usually follows the cancelling one
    reason = f"may lead on ({item.role})" + (", is mentioned" if mentioned >= 0.7 else "") + (", is near" if near else "")
    return ActionScore(min(score * (0.6 if seen else 1.0), 0.7), reason, True)


def _was_clicked(situation: Situation, item: Item) -> bool:
    """Return whether the element was acted on before.

    In an application, which repeats its links on every page, an element with the same role and label counts too.
    """
    if any(step.action.elements and step.action.elements[0] == item.element.id for step in situation.history):
        return True
    return situation.application and bool(item.label) and (item.role, item.label) in situation.clicked_labels


def _novelty(situation: Situation, item: Item) -> float:
    """Return how often a click on such an element reveals something new, in [0, 1]."""
    states = set(item.element.states)
    if is_submit(item):
        base = 0.06
    elif item.role in FIELDS:
        base = 0.03 if "focused" in states else 0.05
    elif item.role in CHOICES:
        base = 0.08
    elif item.role in ("image", "img"):
        base = 0.25 if item.unlabelled and not situation.progress.open else 0.1
    else:
        base = _NOVELTY.get(item.role, 0.05)
        if normalise(item.label) in _LEADS_ON and item.role not in TEXTS:
            base = max(base, 0.4)
    if situation.application and words(item.label)[:1] == ("skip",):
        base = 0.02
    elif situation.application and item.role in ("link", "button"):
        base *= (0.6 if item.role == "button" else 1.0) * (0.7 if (item.role, item.label) in situation.previous_labels else 1.0)
    if not {"collapsed", "expanded"} & states and any(s.subgoal.literal and item.role in s.subgoal.roles for s in situation.progress.open):
        base *= 0.5
    if {"selected", "expanded"} & states and item.role in ("tab", "treeitem", "summary", "button"):
        base *= 0.3
    return base


_BACK = vocabulary("prev previous < ‹ « ◀ ←")
_ON = vocabulary("next > › » ▶ →")


@functools.lru_cache(maxsize=512)
def calendar_step(date: str, page: PageModel) -> Item | None:
    """Return the element to click next on the way to a date, or None if the page has no calendar.

    It is the day, or the control that leads towards its month.
    """
    found, shown = parse_date(date), _shown_month(page)
    if found is None or shown is None:
        return None
    year, month, day = found
    away = (year * 12 + month) - shown
    wanted = {str(day)} if not away else _ON if away > 0 else _BACK
    fitting = [item for item in page.actable if normalise(item.label) in wanted and item.role not in FIELDS]
    return min(fitting, key=lambda item: (item.role not in ("link", "button", "gridcell"), item.index), default=None)


def _shown_month(page: PageModel) -> int | None:
    """Return the month that the page shows, in months since the year 0. None if it shows none."""
    names = [item.element.name for item in page.items if item.role not in FIELDS and not item.echo]
    for n, name in enumerate(names):
        found = normalise(name).split()
        if found and found[0] in MONTHS:
            year = re.search(r"\b(\d{4})\b", " ".join(names[n : n + 2]))
            if year:
                return int(year[1]) * 12 + MONTHS.index(found[0]) + 1
    return None
