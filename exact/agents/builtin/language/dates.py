"""Dates in text: recognition and parsing.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import functools
import re

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_NAME = "(?:" + "|".join(f"{name[:3].title()}(?:{name[3:]})?" for name in MONTHS) + ")"
WRITTEN_DATE = rf"{_NAME}\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_NAME}\.?,? \d{{4}}"
"""Regular expression for dates with the name of the month."""
_SLASHED, _ISO = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})"), re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")


@functools.lru_cache(maxsize=1024)
def parse_date(text: str) -> tuple[int, int, int] | None:
    """Return the year, month and day of a date, or None for any other text.

    Accepted forms are month/day/year, ISO 8601, and dates with the name of the month.
    """
    plain = text.strip()
    if match := _SLASHED.fullmatch(plain):
        return int(match[3]), int(match[1]), int(match[2])
    if match := _ISO.fullmatch(plain):
        return int(match[1]), int(match[2]), int(match[3])
    if not re.fullmatch(WRITTEN_DATE, plain):
        return None
    day, year = sorted(map(int, re.findall(r"\d+", plain)))
    return year, next(n for n, name in enumerate(MONTHS, 1) if name[:3].title() in plain), day
