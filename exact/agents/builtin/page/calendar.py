"""Navigation to a day in a calendar that shows one month at a time.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import functools
import re

from exact.agents.builtin.language.dates import MONTHS, parse_date
from exact.agents.builtin.language.lexical import normalise, vocabulary
from exact.agents.builtin.page.page import FIELDS, Item, PageModel

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
