"""Progress on the instruction: which subgoals are visibly completed, and which are open.

Part of the built-in agent, which is not a language model. Progress is read from the page and the actions taken, never from events after an
episode's end.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from exact.agents.builtin.language.clauses import parse_date
from exact.agents.builtin.language.lexical import normalise, similarity
from exact.agents.builtin.language.subgoals import Goal, Subgoal
from exact.agents.builtin.page import page as pages
from exact.agents.builtin.page.derive import adjacent_text, derive_text, format_for_field
from exact.agents.builtin.page.matching import CONFIDENT, affinity, mention_score, ranked
from exact.agents.builtin.page.page import CHOICES, FIELDS, Item, PageModel
from exact.context import Taken


class SubgoalStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of one subgoal."""

    subgoal: Subgoal
    text: str
    """Text to enter: the subgoal's own, or the one that the page gives for it."""
    done: bool
    best_affinity: float
    """Affinity of the best matching element, in [0, 1]. 0 if there is none."""
    clicked_ids: tuple[str, ...] = ()
    """Ids of the elements clicked for the subgoal."""
    confidence: float = 1.0
    """Confidence in `done`, in [0, 1], if the subgoal is done."""


class InstructionProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Status of all subgoals, in the instruction's order."""

    statuses: tuple[SubgoalStatus, ...]
    stray_count: int
    """Number of checked boxes that no subgoal asks for, plus fields that hold the value of another field."""

    @property
    def tasks(self) -> tuple[SubgoalStatus, ...]:
        """Subgoals to complete before the form is submitted: all except those to find and to submit."""
        return tuple(s for s in self.statuses if s.subgoal.kind != "find" and not s.subgoal.submits)

    @property
    def open(self) -> tuple[SubgoalStatus, ...]:
        """Subgoals of `tasks` that are not done."""
        return tuple(s for s in self.tasks if not s.done)

    @property
    def share(self) -> float:
        """Completed share of `tasks`, in [0, 1]. A visible target counts a little. 0.5 without tasks."""
        if not self.tasks:
            return 0.5
        return sum(s.confidence if s.done else 0.3 * s.best_affinity for s in self.tasks) / len(self.tasks)

    @property
    def confidence(self) -> float:
        """Confidence that all subgoals that seem done are done, in [0, 1]."""
        return min((s.confidence for s in self.tasks if s.done), default=1.0)


def assess_progress(goal: Goal, page: PageModel, history: Sequence[Taken], *, application: bool = False) -> InstructionProgress:
    """Return the progress in a state reached by these steps.

    `application` says that boxes which the agent did not touch are checked for a reason.
    """
    clicked = _clicks_by_subgoal(goal, history)
    statuses = tuple(_status(n, subgoal, goal, page, clicked, history) for n, subgoal in enumerate(goal.subgoals))
    return InstructionProgress(statuses=statuses, stray_count=_count_stray(goal, page, touched_ids(history) if application else None))


def _gesture(step: Taken) -> str:
    """Return the action's name. Scrolling by keys counts as scrolling."""
    return "scroll" if step.action.name == "press" and step.action.args[0] in ("Control+End", "Control+Home") else step.action.name


def _status(
    n: int, subgoal: Subgoal, goal: Goal, page: PageModel, clicked: dict[int, list[str]], history: Sequence[Taken]
) -> SubgoalStatus:
    text = subgoal.text or (derive_text(subgoal, page) if subgoal.kind == "fill" else "")
    fitting = ranked(subgoal, page)
    best = fitting[0][0] if fitting else 0.0
    meant = [item for score, item in fitting if score >= CONFIDENT and score >= best - 0.02]
    sure = 1.0
    match subgoal.kind:
        case "fill":
            done = _is_filled(subgoal, text, page, history)
            sure = (1.0 if subgoal.text else 0.85) * (0.75 if _is_misnamed(subgoal, page) else 1.0)
        case "select" | "unselect":
            done = _is_selected(subgoal, meant, page) or (n in clicked and not any(item.role in CHOICES for item in meant))
            done = done or (subgoal.opens_next and _is_in_sight(goal.subgoals[n + 1], page))
        case "click":
            ticks = [item for item in meant if item.role in ("checkbox", "radio", "switch", "option")]
            done = all(item.selected for item in ticks) if ticks else _all_clicked(subgoal, meant, clicked.get(n, []))
            sure = 0.45 if subgoal.conditional else 1.0 if subgoal.literal else 0.8
        case "find":
            done = not subgoal.targets or any(mention_score(item.label, goal) >= 0.7 for item in page.actable) or best >= CONFIDENT
        case "answer":
            done = False
        case kind:
            done = any(_gesture(step) == kind for step in history if not step.error)
            sure = {"scroll": 0.7, "hover": 0.8}.get(kind, 0.35)
    return SubgoalStatus(subgoal=subgoal, text=text, done=done, best_affinity=best, confidence=sure, clicked_ids=tuple(clicked.get(n, ())))


def _clicks_by_subgoal(goal: Goal, history: Sequence[Taken]) -> dict[int, list[str]]:
    """Return the ids of the clicked elements by subgoal index. A click counts for the first open subgoal that it fits."""
    found: dict[int, list[str]] = {}
    for step in history:
        if step.error or step.action.name not in ("click", "select") or not step.action.elements:
            continue
        page = pages.read_page(step.observation, goal.instruction)
        item = page.by_id.get(step.action.elements[0])
        if item is None:
            continue
        for n, subgoal in enumerate(goal.subgoals):
            if subgoal.kind not in ("click", "select") or (n in found and not subgoal.multiple):
                continue
            if not subgoal.targets and any(item.element.id in ids for ids in found.values()):
                continue
            if affinity(subgoal, item, page) >= (CONFIDENT if subgoal.targets else 0.4):
                found.setdefault(n, []).append(item.element.id)
                break
    return found


def _all_clicked(subgoal: Subgoal, meant: list[Item], ids: list[str]) -> bool:
    if not subgoal.multiple or not meant:
        return bool(ids)
    return all(ids.count(item.element.id) % 2 == 1 for item in meant)


def _field_value(item: Item, written: dict[str, str]) -> str:
    """Return the value of a field. For fields without a text value (time, date, colour), return the text last entered."""
    if item.element.value is None and item.role not in ("textbox", "searchbox", "textarea"):
        return written.get(item.element.id, "")
    return item.element.value or ""


def _is_in_sight(subgoal: Subgoal, page: PageModel) -> bool:
    return any(affinity(subgoal, item, page) >= CONFIDENT for item in page.actable)


def holds_text(value: str, text: str, ending: str = "") -> bool:
    """Return whether a field with `value` holds the text, masked or not.

    With an ending: whether the value begins with the text and ends with the ending.
    """
    if ending:
        return value.casefold().startswith(text.casefold()) and value.casefold().rstrip(" ,;").endswith(ending.casefold())
    masked = bool(value) and set(value) <= set("•●*∗")
    return len(value) == len(text) if masked else normalise(value) == normalise(text) or _same_day(value, text)


def _same_day(value: str, text: str) -> bool:
    return parse_date(text) is not None and parse_date(value) == parse_date(text)


def _is_filled(subgoal: Subgoal, text: str, page: PageModel, history: Sequence[Taken]) -> bool:
    fields = [item for item in page.actable if item.role in FIELDS]
    if not text:
        expected = [(item, adjacent_text(item.label, page)) for item in fields]
        return any(given for _, given in expected) and all(
            normalise(item.element.value or "") == normalise(given) for item, given in expected if given
        )
    written = {step.action.elements[0]: str(step.action.args[1]) for step in history if step.action.name == "fill" and not step.error}
    holding = [
        item
        for item in fields
        if holds_text(_field_value(item, written), text, subgoal.ending)
        or (not subgoal.ending and _field_value(item, written) == format_for_field(item, text))
    ]
    if subgoal.multiple:
        return bool(fields) and len(holding) == len(fields)
    best = max((affinity(subgoal, item, page) for item in fields), default=0.0)
    return any(affinity(subgoal, item, page) >= best - 0.02 for item in holding)


def _is_misnamed(subgoal: Subgoal, page: PageModel) -> bool:
    """Return whether the page's only field has a label that differs from the instruction's name for it."""
    labels = [item.label for item in page.actable if item.role in FIELDS]
    return len(labels) == 1 and bool(subgoal.targets) and not any(similarity(target, labels[0]) >= 0.3 for target in subgoal.targets)


def _is_selected(subgoal: Subgoal, meant: list[Item], page: PageModel) -> bool:
    wanted = subgoal.kind == "select"
    choices = [item for item in meant if item.role in CHOICES]
    if choices:
        return all(item.selected for item in choices) == wanted if wanted else not any(item.selected for item in choices)
    holding = [item for item in page.items if item.role in FIELDS | {"combobox", "listbox", "slider"} and item.element.value]
    shown = [item.element.value or "" for item in holding]
    return any(similarity(target, value) >= 0.9 or _same_day(value, target) for value in shown for target in subgoal.targets)


def touched_ids(history: Sequence[Taken]) -> set[str]:
    """Return the ids of all elements that were acted on."""
    return {id for step in history if not step.error for id in step.action.elements}


def _count_stray(goal: Goal, page: PageModel, only: set[str] | None) -> int:
    """Return the number of stray boxes and fields. `only` is the set of box ids that count; None counts all."""
    wanted = [subgoal for subgoal in goal.subgoals if subgoal.kind in ("select", "click") and (subgoal.targets or subgoal.ordinal)]
    ticked = [item for item in page.items if item.role in ("checkbox", "switch") and "checked" in item.element.states]
    ticked = [item for item in ticked if only is None or item.element.id in only]
    return sum(1 for item in ticked if not any(affinity(subgoal, item, page) >= 0.6 for subgoal in wanted)) + sum(
        1 for item in page.actable if is_misplaced(item, goal, page)
    )


def is_misplaced(item: Item, goal: Goal, page: PageModel) -> bool:
    """Return whether a field holds a text that belongs into another field."""
    value = item.element.value or ""
    fitting = (
        [subgoal for subgoal in goal.subgoals if subgoal.kind == "fill" and subgoal.text and holds_text(value, subgoal.text)]
        if value and item.role in FIELDS
        else []
    )
    return bool(fitting) and all(
        affinity(subgoal, item, page) < max((affinity(subgoal, other, page) for other in page.actable), default=0.0) - 0.3
        for subgoal in fitting
    )
