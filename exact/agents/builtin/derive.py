"""Values that the instruction only describes: copied from a field, found beside a label, counted out, or reckoned.

Part of the embedded agent, which is not a language model.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from exact.agents.builtin.lexical import normal, words
from exact.agents.builtin.page import FIELDS, TEXTS, Item, Page
from exact.agents.builtin.parts import Goal, Part

_SUM = re.compile(r"(-?\d+)\s*([+\-−x×*/÷])\s*(-?\d+)\s*=")
_REST = re.compile(r"[a-z]\s*([+\-−])\s*(\d+)\s*=\s*(-?\d+)|(\d+)\s*([+\-−])\s*[a-z]\s*=\s*(-?\d+)")
_OPERATORS: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "−": operator.sub} | dict.fromkeys(
    "x×*", operator.mul
)


def derived(part: Part, goal: Goal, page: Page) -> str:
    """The text that a field should get though no text was given; empty when nothing suggests one."""
    told = next(filter(None, (beside(target, page) for target in part.targets)), "")
    return told or _copied(goal, page) or _shown(part, page) or _counted(goal, page) or _reckoned(goal, page)


def beside(label: str, page: Page) -> str:
    """The text that stands next to an equal label elsewhere on the page, as in a table of two columns; else empty."""
    cells = [item for item in page.items if item.role in ("cell", "gridcell", "definition", "term", "rowheader")]
    wanted = normal(label)
    return next((cells[n + 1].label for n, cell in enumerate(cells[:-1]) if wanted and normal(cell.label) == wanted), "")


def _shown(part: Part, page: Page) -> str:
    """The text on the page that the part points to (`the text below`)."""
    if not re.search(r"\btext\b.*\b(below|above|shown|displayed)\b", part.clause):
        return ""
    texts = [item.label for item in page.items if item.role in TEXTS | {"graphics-symbol", "generic"} and not item.echo and item.label]
    return max(texts, key=len, default="")


def _copied(goal: Goal, page: Page) -> str:
    if not goal.verbs & {"copy", "copying"}:
        return ""
    source = next((part for part in goal.parts if part.clause.startswith("copy")), None)
    full = [item for item in page.actable if item.role in FIELDS and item.element.value]
    nth = source.ordinal if source and source.ordinal else 1
    return full[nth - 1 if 0 < nth <= len(full) else -1].element.value or "" if full else ""


def _counted(goal: Goal, page: Page) -> str:
    asked = next((part for part in goal.parts if part.ordinal and re.search(r"\bword\b", part.clause)), None)
    text = max((item.label for item in page.items if item.role in TEXTS | {"paragraph"} and not item.echo), key=len, default="")
    if asked is None or not asked.ordinal or not text:
        return ""
    every = re.findall(r"[\w'’-]+", text)
    place = asked.ordinal - 1 if asked.ordinal > 0 else -1
    return every[place] if place < len(every) else ""


def _reckoned(goal: Goal, page: Page) -> str:
    if not set(words(goal.instruction)) & {"solve", "calculate", "compute", "answer", "sum", "result"}:
        return ""
    for item in page.items:
        if item.echo or item.role not in TEXTS:
            continue
        if (match := _SUM.search(item.label)) and match[2] in _OPERATORS:
            return str(_OPERATORS[match[2]](int(match[1]), int(match[3])))
        if match := _REST.search(item.label):
            return str(_unknown(match))
    return ""


def _unknown(match: re.Match[str]) -> int:
    if match[1]:
        return int(match[3]) - int(match[2]) if match[1] == "+" else int(match[3]) + int(match[2])
    return int(match[6]) - int(match[4]) if match[5] == "+" else int(match[4]) - int(match[6])


def field_text(item: Item, text: str) -> str:
    """The text in the form that the field takes: 24-hour time in time fields, ISO dates in date fields."""
    if "time" in item.role and (match := re.fullmatch(r"\s*(\d{1,2}):(\d\d)\s*([AaPp])\.?[Mm]\.?\s*", text)):
        hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0)
        return f"{hour:02d}:{match[2]}"
    if "date" in item.role and (match := re.fullmatch(r"\s*(\d{1,2})/(\d{1,2})/(\d{4})\s*", text)):
        return f"{match[3]}-{int(match[1]):02d}-{int(match[2]):02d}"
    return text
