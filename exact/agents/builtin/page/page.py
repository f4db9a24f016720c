"""Page model of an observation: each element's role, label and nearby text.

Part of the built-in agent, which is not a language model. Element ids, URL and title are never used.
"""

from __future__ import annotations

import functools

import msgspec

from exact.agents.builtin.language.lexical import alphanumeric, normalise
from exact.observation import Box, Element, Observation

FIELDS = frozenset({"textbox", "searchbox", "textarea", "spinbutton", "inputtime", "date", "inputdate", "datetime", "colorwell"})
CHOICES = frozenset({"checkbox", "radio", "switch", "option", "menuitemcheckbox", "menuitemradio"})
WIDGETS = frozenset(
    {"button", "link", "tab", "menuitem", "treeitem", "combobox", "listbox", "slider", "summary", "gridcell", *FIELDS, *CHOICES}
)
"""Roles of elements that a user can act on."""
TEXTS = frozenset({"statictext", "text"})
_IDLE = frozenset({"rootwebarea", "linebreak", "inlinetextbox", "none", "document", "webarea", "menulistpopup", "status", "main", "banner"})
_REACH = 60


class Item(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """An element, with the page's information about it."""

    index: int
    """Position in document order."""
    element: Element
    role: str
    """Role in lower case."""
    label: str
    """The element's own name, otherwise the text that labels it."""
    nearby: str
    """Text of the smallest surrounding group that says more than the label."""
    echo: bool
    """Whether the element is part of the instruction, repeated on the page."""
    ordinal: int
    """1-based position among the elements of its role, without the echo of the instruction."""
    inert: bool
    """Whether the element is plain text outside anything that can be acted on."""
    parent: int
    """Index of the parent element. -1 at the top."""
    widget: bool
    """Whether a user can act on the element."""
    unlabelled: bool
    """Whether the label is empty or has only symbols."""

    @property
    def selected(self) -> bool:
        """Return whether the element is checked, selected or pressed."""
        return bool({"checked", "selected", "pressed"} & set(self.element.states))


class PageModel(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The elements of a state."""

    items: tuple[Item, ...]
    by_id: dict[str, Item]
    counts: dict[str, int]
    """Number of elements by role."""
    actable: tuple[Item, ...]
    """Elements that can be acted on, in document order."""


@functools.lru_cache(maxsize=256)
def read_page(observation: Observation, instruction: str) -> PageModel:
    """Return the page model of an observation."""
    elements = observation.elements
    parents = _parents(elements)
    echo = _echo_indices(elements, parents, instruction)
    ends = _subtree_ends(elements)
    counts: dict[str, int] = {}
    items: list[Item] = []
    for index, element in enumerate(elements):
        role = element.role.casefold()
        if index not in echo:
            counts[role] = counts.get(role, 0) + 1
        label = element.name.strip() or _label(index, elements, parents, ends, echo)
        near = _nearby_text(index, elements, parents, ends, echo)
        items.append(
            Item(
                index=index,
                element=element,
                role=role,
                label=label,
                nearby=near,
                echo=index in echo,
                ordinal=counts.get(role, 0),
                inert=role in TEXTS and _is_inert(parents[index], elements, parents),
                parent=parents[index],
                widget=role in WIDGETS,
                unlabelled=not alphanumeric(label),
            )
        )
    return PageModel(
        items=tuple(items),
        by_id={item.element.id: item for item in items},
        counts=counts,
        actable=tuple(item for item in items if _is_actable(item, items)),
    )


def _is_actable(item: Item, items: list[Item]) -> bool:
    if item.echo or item.role in _IDLE or "disabled" in item.element.states:
        return False
    if item.widget:
        return True
    holder = item.parent
    while holder >= 0:
        above = items[holder]
        if above.widget or (above.role not in _IDLE and normalise(above.element.name) == normalise(item.element.name) != ""):
            return False
        holder = above.parent
    return True


def _parents(elements: tuple[Element, ...]) -> list[int]:
    parents, open_ = [], list[tuple[int, int]]()
    for index, element in enumerate(elements):
        while open_ and open_[-1][0] >= element.depth:
            open_.pop()
        parents.append(open_[-1][1] if open_ else -1)
        open_.append((element.depth, index))
    return parents


def _subtree_ends(elements: tuple[Element, ...]) -> list[int]:
    """Return, for each element, the index after its last descendant."""
    ends, open_ = [len(elements)] * len(elements), list[int]()
    for index, element in enumerate(elements):
        while open_ and elements[open_[-1]].depth >= element.depth:
            ends[open_.pop()] = index
        open_.append(index)
    return ends


def _echo_indices(elements: tuple[Element, ...], parents: list[int], instruction: str) -> set[int]:
    """Return the indices of text that repeats the instruction, and of elements that contain nothing else."""
    goal = alphanumeric(instruction)
    texts = [(i, alphanumeric(e.name)) for i, e in enumerate(elements) if e.role.casefold() in TEXTS]
    if not texts:
        texts = [(i, alphanumeric(e.name)) for i, e in enumerate(elements) if e.role.casefold() not in WIDGETS and e.name]
    for start in range(len(texts)):
        run, at, matched = [], 0, 0
        for index, text in texts[start:]:
            found = goal.find(text, at)
            if found < 0 or found - at > 12 or at >= len(goal):
                break
            run.append(index)
            matched += len(text)
            at = found + len(text)
        if goal and matched >= 0.7 * len(goal):
            return _holders(set(run), elements, parents)
    return set()


def _holders(echo: set[int], elements: tuple[Element, ...], parents: list[int]) -> set[int]:
    inside: dict[int, list[int]] = {}
    for index, parent in enumerate(parents):
        inside.setdefault(parent, []).append(index)
    for index in sorted(set(inside) - {-1}, reverse=True):
        texts = [i for i in inside[index] if elements[i].role.casefold() not in ("linebreak", "inlinetextbox")]
        if texts and any(i in echo for i in texts) and all(i in echo for i in texts):
            echo.add(index)
    return echo


def _label(index: int, elements: tuple[Element, ...], parents: list[int], ends: list[int], echo: set[int]) -> str:
    """Return the text that labels an unnamed control.

    It is inside the control, otherwise before it. For checkboxes and other choices, the text after the control comes first.
    """
    role = elements[index].role.casefold()
    inner = " ".join(e.name.strip() for e in elements[index + 1 : min(ends[index], index + 8)] if e.name and e.role.casefold() in TEXTS)
    if role not in FIELDS | CHOICES | {"combobox", "slider", "listbox"}:
        return inner[:120]
    sides = (1, -1) if role in CHOICES else (-1,)
    for side in sides:
        at, end = (ends[index], 1) if side == 1 else (index - 1, -1)
        for step in range(5):
            place = at + end * step
            if not 0 <= place < len(elements) or place in echo:
                break
            other = elements[place]
            if other.role.casefold() in FIELDS | CHOICES | {"button", "combobox"} or _inside_field(place, elements, parents):
                break
            if other.name.strip() and other.role.casefold() != "linebreak":
                return other.name.strip()
    return ""


def _is_inert(holder: int, elements: tuple[Element, ...], parents: list[int]) -> bool:
    while holder >= 0:
        if elements[holder].role.casefold() in WIDGETS | {"generic", "listitem", "cell", "row"}:
            return False
        holder = parents[holder]
    return True


def _inside_field(index: int, elements: tuple[Element, ...], parents: list[int]) -> bool:
    while index >= 0:
        if elements[index].role.casefold() in WIDGETS:
            return True
        index = parents[index]
    return False


def _text_before(index: int, elements: tuple[Element, ...], echo: set[int]) -> str:
    """Return the text before an element among its siblings, such as a record's text before its buttons in a flat list."""
    depth, at, texts = elements[index].depth, index - 1, list[str]()
    while at >= 0 and elements[at].depth >= depth and index - at < _REACH:
        is_text = elements[at].role.casefold() in TEXTS
        if texts and elements[at].depth == depth and not is_text:
            break
        if is_text and elements[at].depth == depth and at not in echo:
            texts.append(elements[at].name.strip())
        at -= 1
    return " ".join(reversed(texts))[:400]


def _nearby_text(index: int, elements: tuple[Element, ...], parents: list[int], ends: list[int], echo: set[int]) -> str:
    own = normalise(elements[index].name)
    holder = parents[index]
    while holder >= 0 and ends[holder] - holder <= _REACH and elements[holder].role.casefold() not in _IDLE:
        inside = range(holder, ends[holder])
        texts = [
            elements[i].name.strip() for i in inside if i not in echo and elements[i].name.strip() and normalise(elements[i].name) != own
        ]
        if texts:
            if _one_group(holder, ends, elements):
                return " ".join(dict.fromkeys(texts))
            break
        holder = parents[holder]
    around = range(max(0, index - _REACH), min(len(elements), index + _REACH))
    return _text_before(index, elements, echo) or _row_text(elements[index].box, around, elements)


def _one_group(holder: int, ends: list[int], elements: tuple[Element, ...]) -> bool:
    """Return whether the parent's content reads as one group: at most 12 texts."""
    return sum(1 for e in elements[holder : ends[holder]] if e.role.casefold() in TEXTS) <= 12


def _row_text(box: Box | None, inside: range, elements: tuple[Element, ...]) -> str:
    """Return the text at the same height."""
    if box is None:
        return ""
    texts = []
    for i in inside:
        other = elements[i].box
        if (
            other
            and elements[i].name.strip()
            and min(other.y + other.height, box.y + box.height) - max(other.y, box.y) > 0.5 * min(other.height, box.height)
        ):
            texts.append(elements[i].name.strip())
    return " ".join(dict.fromkeys(texts))[:400]
