"""A clipboard for each environment, where environments share a browser: it has one clipboard for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from exact.environments.browser.page.script import script

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page


def uses_clipboard(chord: str) -> bool:
    """Whether keys pressed together copy, cut or paste."""
    *held, key = chord.split("+")
    return (bool({"Control", "Meta"} & set(held)) and key in ("c", "x", "v", "Insert")) or ("Shift" in held and key in ("Insert", "Delete"))


class SharedClipboard:
    """The one of a browser. Texts and HTML go from environment to environment; pictures do not."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._desk: Page | None = None
        self._holder: Clipboard | None = None
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def held_by(self, one: Clipboard) -> AsyncIterator[None]:
        """While the block runs it holds what that environment's clipboard does."""
        async with self._turn:
            if self._holder is not one:
                last, self._holder = self._holder, None
                if last is not None:
                    last.content = await self._read()
                await self._write(one.content)
                self._holder = one
            yield

    def let_go(self, one: Clipboard) -> None:
        """That environment is gone."""
        if self._holder is one:
            self._holder = None

    async def _read(self) -> dict[str, str]:
        desk = await self._at_desk()
        await desk.keyboard.press("Control+v")
        found: dict[str, str] = await desk.evaluate("content")
        return found

    async def _write(self, content: dict[str, str]) -> None:
        desk = await self._at_desk()
        await desk.evaluate("held => { content = held; }", content)
        await desk.keyboard.press("Control+c")

    async def _at_desk(self) -> Page:
        if self._desk is None or self._desk.is_closed():
            self._desk = await (await self._browser.new_context()).new_page()
            await self._desk.set_content(f"<textarea>-</textarea><script>{script('page/clipboard')}</script>")
        await self._desk.evaluate("document.querySelector('textarea').select()")
        return self._desk


class Clipboard:
    """One environment's."""

    def __init__(self, shared: SharedClipboard) -> None:
        self._shared = shared
        self.content: dict[str, str] = {}
        """By kind: what it holds while another environment's is in the browser."""

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """While the block runs, keys copy to and paste from this one."""
        async with self._shared.held_by(self):
            yield

    def close(self) -> None:
        self._shared.let_go(self)
