"""Windowed histories: the last steps in full, and a summary of the steps before them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from urllib.parse import urlsplit

from exact.context import Taken

MAX_PAGES = 6
"""Maximum number of pages named in a summary."""


def summarise_steps(steps: Sequence[Taken]) -> str:
    """Return one line about some steps: counts by verb, pages, and number of refused steps. Empty for no steps.

    It is computed from verbs and addresses without a model: equal steps give equal lines, and no text of a page enters it.
    """
    if not steps:
        return ""
    verbs = Counter(step.action.name for step in steps)
    pages = list(dict.fromkeys(place for step in steps if (place := _page_address(step.observation.url))))
    refused = sum(bool(step.error) for step in steps)
    parts = [", ".join(f"{count} {verb}" for verb, count in verbs.most_common())]
    if pages:
        more = f" and {len(pages) - MAX_PAGES} more" if len(pages) > MAX_PAGES else ""
        parts.append(f"on {', '.join(pages[:MAX_PAGES])}{more}")
    if refused:
        parts.append(f"{refused} refused")
    return "; ".join(parts)


def _page_address(url: str) -> str:
    parts = urlsplit(url) if url else None
    return f"{parts.netloc}{parts.path}"[:60] if parts else ""
