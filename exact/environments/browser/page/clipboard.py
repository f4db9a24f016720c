"""A clipboard for each of several environments that share a browser, which has only one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from exact.environments.browser.page.cdp import script

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page


def uses_clipboard(chord: str) -> bool:
    """Return whether keys pressed together copy, cut or paste."""
    *modifiers, key = chord.split("+")
    return (bool({"Control", "Meta"} & set(modifiers)) and key in ("c", "x", "v", "Insert")) or (
        "Shift" in modifiers and key in ("Insert", "Delete")
    )


class SharedClipboard:
    """The clipboard of a browser, lent to one environment at a time. It holds texts and HTML, not pictures."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._page: Page | None = None
        self._holder: Clipboard | None = None
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def lend(self, one: Clipboard) -> AsyncIterator[None]:
        """Hold the content of an environment's clipboard while the block runs."""
        async with self._lock:
            if self._holder is not one:
                last, self._holder = self._holder, None
                if last is not None:
                    last.content = await self._read()
                await self._write(one.content)
                self._holder = one
            yield

    def release(self, one: Clipboard) -> None:
        """Forget an environment that is gone."""
        if self._holder is one:
            self._holder = None

    async def _read(self) -> dict[str, str]:
        page = await self._open_page()
        await page.keyboard.press("Control+v")
        found: dict[str, str] = await page.evaluate("content")
        return found

    async def _write(self, content: dict[str, str]) -> None:
        page = await self._open_page()
        await page.evaluate("texts => { content = texts; }", content)
        await page.keyboard.press("Control+c")

    async def _open_page(self) -> Page:
        if self._page is None or self._page.is_closed():
            self._page = await (await self._browser.new_context()).new_page()
            await self._page.set_content(f"<textarea>-</textarea><script>{script('page/clipboard')}</script>")
        await self._page.evaluate("document.querySelector('textarea').select()")
        return self._page


class Clipboard:
    """The clipboard of one environment."""

    def __init__(self, shared: SharedClipboard) -> None:
        self._shared = shared
        self.content: dict[str, str] = {}
        """Texts by content type, kept while another environment's content is in the browser."""

    @asynccontextmanager
    async def use(self) -> AsyncIterator[None]:
        """Use this clipboard for copying and pasting while the block runs."""
        async with self._shared.lend(self):
            yield

    def close(self) -> None:
        """Release the browser's clipboard."""
        self._shared.release(self)
