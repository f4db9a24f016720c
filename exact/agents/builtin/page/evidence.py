"""Statements of a page: each short text with the words in its context, so that a question's words lead to its answer.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import functools
import re

import msgspec

from exact.agents.builtin.language.lexical import normalise, words
from exact.agents.builtin.page.page import FIELDS, Item, PageModel

OWN, ROW, SECTION, TOP = 1.0, 0.9, 0.75, 0.6
"""Weight of a word by its position: same sentence or label, same row or record, heading above, any heading."""

_SAYS = frozenset({"statictext", "text", "cell", "gridcell", "listitem", "link", "heading", "definition", "paragraph", "time", "emphasis"})
_HEADS = frozenset({"heading", "columnheader", "rowheader", "term", "caption"})
_RECORDS = frozenset({"row", "listitem", "article"})
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")
_LABELLED = re.compile(r"^([^:]{2,40}):\s+(\S.*)$")
_VALUE = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}/\d{1,2}/\d{2,4}|[$€£]?\d+(?:[.,:-]\d+)*%?|(?<![.!?]\s)(?<!^)\b[A-Z]\w+(?:\s[A-Z]\w+)*")
"""Possible answer inside a sentence: a date, a number, a name."""
_SHORT, _LONG = 5, 40


class Statement(msgspec.Struct, frozen=True, eq=False):
    """Text that may be an answer."""

    text: str
    surroundings: dict[str, float]
    """Words in the text's context with the weight of their position: see `OWN`."""
    whole: bool = False
    """Whether the text is a whole sentence or record rather than one value."""


@functools.lru_cache(maxsize=128)
def read_statements(page: PageModel) -> tuple[Statement, ...]:
    """Return all statements of a page, in document order, including duplicates."""
    found: list[Statement] = []
    tops = {word for item in page.items if _is_heading(item, page) for word in words(item.element.name)}
    section: tuple[str, ...] = ()
    for item in page.items:
        text = " ".join(item.element.name.split())
        if item.role == "heading" and text:
            section = words(text)
        if item.echo or item.role not in _SAYS or not text or _repeats_parent(item, page):
            continue
        far = dict.fromkeys(tops, TOP) | dict.fromkeys(section, SECTION) | dict.fromkeys(words(_record_text(item, page)), ROW)
        far |= dict.fromkeys(words(_label_of(item, page)), OWN)
        found.extend(_text_statements(text, far))
    return (*found, *_row_statements(page, tops))


def _text_statements(text: str, far: dict[str, float]) -> list[Statement]:
    """Return the statements of one text: the whole text and its parts."""
    if match := _LABELLED.match(text):
        far = far | dict.fromkeys(words(match[1]), OWN)
        return (
            [Statement(match[2], far), *_sentence_statements(match[2], far)]
            if len(words(match[2])) <= _LONG
            else _sentence_statements(match[2], far)
        )
    if len(words(text)) <= _SHORT:
        return [Statement(text, far), *(_sentence_statements(text, far) if any(c.isdigit() for c in text) else [])]
    return _sentence_statements(text, far)


def _sentence_statements(text: str, far: dict[str, float]) -> list[Statement]:
    found = []
    for sentence in _SENTENCE.split(text):
        spoken = dict.fromkeys(words(sentence), OWN)
        values = [match[0] for match in _VALUE.finditer(sentence) if match[0].strip() != text]
        found += [Statement(value, {**far, **{word: OWN for word in spoken if word not in words(value)}}) for value in values]
        if _SHORT < len(spoken) <= _LONG:
            found.append(Statement(sentence, far | spoken, whole=True))
    return found


def _row_statements(page: PageModel, tops: set[str]) -> list[Statement]:
    """Return each table row as one statement: its cells and the headers of its columns."""
    found = []
    for item in page.items:
        cells = _cells(item, page)
        if cells:
            text = " ".join(cell.element.name for cell in cells if cell.element.name)
            heads = [word for cell in cells for word in words(_label_of(cell, page))]
            if 1 < len(words(text)) <= _LONG:
                found.append(
                    Statement(text, dict.fromkeys(tops, TOP) | dict.fromkeys(heads, OWN) | dict.fromkeys(words(text), OWN), whole=True)
                )
    return found


def _cells(row: Item, page: PageModel) -> list[Item]:
    if row.role != "row":
        return []
    return [cell for cell in page.items if cell.parent == row.index and cell.role in ("cell", "gridcell")]


def _is_heading(item: Item, page: PageModel) -> bool:
    """Return whether the item is a heading or inside one."""
    return not item.echo and "heading" in (item.role, page.items[item.parent].role if item.parent >= 0 else "")


def _repeats_parent(item: Item, page: PageModel) -> bool:
    """Return whether the parent element has the same name."""
    above = page.items[item.parent] if item.parent >= 0 else None
    return above is not None and normalise(above.element.name) == normalise(item.element.name)


def _record_text(item: Item, page: PageModel) -> str:
    """Return the text of the row or record that contains the item, without the item itself."""
    holder = item.parent
    while holder >= 0 and page.items[holder].role not in _RECORDS:
        holder = page.items[holder].parent
    if holder < 0:
        return ""
    inside = [other for other in page.items[holder + 1 : holder + 60] if other.index != item.index and _is_within(other, holder, page)]
    return " ".join(other.element.name for other in inside if other.role not in FIELDS)


def _is_within(item: Item, holder: int, page: PageModel) -> bool:
    above = item.parent
    while above > holder:
        above = page.items[above].parent
    return above == holder


def _label_of(item: Item, page: PageModel) -> str:
    """Return the label of an item.

    For a cell: the row header before it and the header of its column. For other items: the term or label before it.
    """
    if item.role not in ("cell", "gridcell", "definition"):
        before = page.items[item.index - 1].element.name if item.index else ""
        named = before.endswith(":") or (bool(item.index) and page.items[item.index - 1].role in _HEADS - {"heading"})
        return before if named else ""
    row = [other for other in page.items[: item.index] if other.parent == item.parent]
    head = row[-1].element.name if row and row[-1].role in _HEADS else ""
    return f"{head} {_column_header(item, len(row), page)}"


def _column_header(item: Item, place: int, page: PageModel) -> str:
    for other in reversed(page.items[: item.index]):
        if other.role == "row" and other.index != item.parent:
            heads = [each for each in page.items[other.index : item.index] if each.parent == other.index]
            if heads and all(each.role == "columnheader" for each in heads):
                return heads[place].element.name if place < len(heads) else ""
    return ""
