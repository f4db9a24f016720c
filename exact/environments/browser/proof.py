"""The proof of a log-in: a text or an element that only a logged-in page shows."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING

from exact.environments.browser.page.script import script_call
from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from playwright.async_api import Frame, Locator, Page

    from exact.environments.browser.page.tab import Tab

_ELEMENT = re.compile(r"\[\s*(?P<role>[A-Za-z]+)\s+(?P<name>\"(?:[^\"\\]|\\.)*\")\s*\]")
"""An element by role and name, as in log-in scripts: `[link "Log out"]`."""


async def is_shown(page: Page, proof: str, *, seconds: float = 0.0) -> bool:
    """Return whether a page shows a proof in any of its frames, waiting for it for at most `seconds`."""
    from playwright.async_api import Error

    for frame in page.frames:
        try:
            found = _locator(frame, proof)
            if await found.count():
                return True
        except Error:  # the frame is gone, or the page is being replaced
            continue
    if seconds:
        try:
            await _locator(page.main_frame, proof).first.wait_for(timeout=seconds * 1000)
            return True
        except Error:
            return False
    return False


async def is_in_answer(tab: Tab, url: str, proof: str) -> bool | None:
    """Return whether the HTML that a server answers with holds a proof. None where it cannot be asked from the present page."""
    from playwright.async_api import Error

    try:
        text = await tab.evaluate(script_call("page/fetch_text", url))
    except (EnvironmentFailure, Error):  # the page's own policy forbids it, the server does not answer, or the page is being replaced
        return None
    words = words_of(proof)
    return words in text or html.escape(words) in text


async def asks_for_password(tab: Tab) -> bool:
    """Return whether a page shows a field for a password. A page that is being replaced shows none."""
    from playwright.async_api import Error

    try:
        return bool(await tab.evaluate(script_call("page/asks_for_password")))
    except Error as error:
        if not tab.is_navigation_error(error):
            raise
        return False


def words_of(proof: str) -> str:
    """Return the text of a proof, or the name of its element."""
    found = _ELEMENT.fullmatch(proof.strip())
    return str(json.loads(found["name"])) if found else proof


def _locator(frame: Frame, proof: str) -> Locator:
    found = _ELEMENT.fullmatch(proof.strip())
    if not found:
        return frame.get_by_text(proof).filter(visible=True)
    return frame.get_by_role(found["role"], name=words_of(proof), exact=True).filter(visible=True)  # type: ignore[arg-type]
