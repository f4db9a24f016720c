"""Values that the instruction only describes: copied from a field, found next to a label, counted, or computed.

Part of the built-in agent, which is not a language model.

Statements of a page: each short text with the words in its context, so that a question's words lead to its answer.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from itertools import pairwise

import msgspec

from exact.agents.builtin.language.clauses import parse_date
from exact.agents.builtin.language.lexical import normalise, vocabulary, words
from exact.agents.builtin.language.subgoals import Subgoal, first_ordinal, names_field, ordinal_value
from exact.agents.builtin.page.matching import affinity
from exact.agents.builtin.page.page import FIELDS, TEXTS, Item, PageModel

_UNITS = {"sentence": r"[^.!?]+", "word": r"[\w'’-]+", "letter": r"[^\W\d_]", "character": r"\S"}
"""Patterns of text units by noun, large units first."""
_POINTING = vocabulary("below above shown displayed see seen visible appears screen page picture image reads says")

_SUM = re.compile(r"(-?\d+)\s*([+\-−x×*/÷])\s*(-?\d+)\s*=")
_EQUATION = re.compile(r"[a-z]\s*([+\-−])\s*(\d+)\s*=\s*(-?\d+)|(\d+)\s*([+\-−])\s*[a-z]\s*=\s*(-?\d+)")
_OPERATORS: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "−": operator.sub} | dict.fromkeys(
    "x×*", operator.mul
)


def derive_text(subgoal: Subgoal, page: PageModel) -> str:
    """Return the text to enter if the instruction gives none. Empty if the page suggests none."""
    adjacent = next(filter(None, (adjacent_text(target, page) for target in subgoal.targets)), "")
    described = words(subgoal.description)
    return (
        adjacent
        or _piece_of_text(described, page)
        or _computed(page)
        or _looked_up_value(described, subgoal, page)
        or _copied_value(described, subgoal, page)
        or _shown_text(described, page)
    )


def adjacent_text(label: str, page: PageModel) -> str:
    """Return the text next to an equal label elsewhere on the page, as in a table of two columns, or an empty string."""
    wanted = normalise(label)
    return next((value for name, value in _records(page) if wanted and normalise(name) == wanted), "")


def _records(page: PageModel) -> list[tuple[str, str]]:
    """Return names and the text next to each."""
    cells = [item for item in page.items if item.role in ("cell", "gridcell", "definition", "term", "rowheader")]
    return [(cell.label, other.label) for cell, other in pairwise(cells)]


def _piece_of_text(described: tuple[str, ...], page: PageModel) -> str:
    """Return the word, letter or sentence at the position that the description names, in the longest text of the page."""
    text = max((item.label for item in page.items if item.role in TEXTS | {"paragraph"} and not item.echo), key=len, default="")
    asked = False
    for unit, pattern in _UNITS.items():
        place = _place(described, unit)
        every = re.findall(pattern, text)
        if place and abs(place) <= len(every):
            text, asked = every[place - 1 if place > 0 else place], True
    return text.strip() if asked else ""


def _place(described: tuple[str, ...], unit: str) -> int | None:
    """Return the number before the noun, or soon after it."""
    at = next((n for n, word in enumerate(described) if word == unit), None)
    if at is None:
        return None
    after = [int(word) if word.isdigit() else ordinal_value(word) for word in described[at + 1 : at + 4]]
    return next(filter(None, [*map(ordinal_value, described[max(0, at - 2) : at][::-1]), *after]), None)


def _computed(page: PageModel) -> str:
    for item in page.items:
        if item.echo or item.role not in TEXTS:
            continue
        if (match := _SUM.search(item.label)) and match[2] in _OPERATORS:
            return str(_OPERATORS[match[2]](int(match[1]), int(match[3])))
        if match := _EQUATION.search(item.label):
            return str(_solve_unknown(match))
    return ""


def _looked_up_value(described: tuple[str, ...], subgoal: Subgoal, page: PageModel) -> str:
    """Return the text next to the longest mentioned name, or in the field of that name."""
    records = [*_records(page), *((item.label, item.element.value or "") for item in _filled_fields(subgoal, page))]
    named = [(len(name), at, value) for label, value in records if value and (name := words(label)) for at in _places(name, described)]
    return max(named, default=(0, 0, ""))[2]


def _places(name: tuple[str, ...], described: tuple[str, ...]) -> list[int]:
    return [at for at in range(len(described)) if described[at : at + len(name)] == name]


def _copied_value(described: tuple[str, ...], subgoal: Subgoal, page: PageModel) -> str:
    """Return the value of another field if the description mentions one: by its position, or the first."""
    full = _filled_fields(subgoal, page) if any(map(names_field, described)) else []
    place = first_ordinal(list(described)) or 1
    return full[place - 1 if 0 < place <= len(full) else -1].element.value or "" if full else ""


def _filled_fields(subgoal: Subgoal, page: PageModel) -> list[Item]:
    """Return the fields that hold a value, without the one to fill in."""
    fields = [item for item in page.actable if item.role in FIELDS]
    own = max(reversed(fields), key=lambda item: affinity(subgoal, item, page), default=None)
    return [item for item in fields if item.element.value and item is not own]


def _shown_text(described: tuple[str, ...], page: PageModel) -> str:
    """Return the longest text that is not a label, if the description only points at text on the page."""
    if not _POINTING & set(described):
        return ""
    labels = {item.label for item in page.actable if item.widget} | {item.label for item in page.items if item.role == "heading"}
    roles = TEXTS | {"graphics-symbol", "generic"}
    texts = [item.label for item in page.items if item.role in roles and not item.echo and item.label not in labels]
    return max(texts, key=len, default="")


def _solve_unknown(match: re.Match[str]) -> int:
    if match[1]:
        return int(match[3]) - int(match[2]) if match[1] == "+" else int(match[3]) + int(match[2])
    return int(match[6]) - int(match[4]) if match[5] == "+" else int(match[4]) - int(match[6])


def format_for_field(item: Item, text: str) -> str:
    """Return the text in the notation of the field: 24-hour times in time fields, ISO 8601 dates in date fields."""
    if "time" in item.role and (match := re.fullmatch(r"\s*(\d{1,2}):(\d\d)\s*([AaPp])\.?[Mm]\.?\s*", text)):
        hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0)
        return f"{hour:02d}:{match[2]}"
    if "date" in item.role and (date := parse_date(text)):
        return "{}-{:02d}-{:02d}".format(*date)
    return text


def field_settings(item: Item, subgoal: Subgoal) -> list[str]:
    """Return the subgoal's targets in the notation of a field that takes only numbers or only dates."""
    fitting = str.isdigit if item.role == "spinbutton" else parse_date if "date" in item.role else None
    if fitting is None or subgoal.kind != "select":
        return []
    return [format_for_field(item, target) for target in subgoal.targets if fitting(target.lstrip("-"))]


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
