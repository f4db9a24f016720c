"""A live page to read: the texts, boxes and pictures of Playwright's page, and nothing that acts.

Only the methods below are there, so that what a later Playwright adds is refused too. Texts and pictures lack what observations hide.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from exact.environments.browser.observe.redaction import SHOWN
from exact.environments.browser.tabs import first_line
from exact.errors import UsageError

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

    from exact.environments.browser.environment import BrowserEnvironment

Given: TypeAlias = "str | int | bool | re.Pattern[str] | LocatorView | None"
"""An argument of a method that finds elements."""
Lend = Callable[[], AbstractAsyncContextManager["BrowserEnvironment"]]
"""Lends the environment whose page is read, for one call."""


class _Finder:
    """What a page and a locator share: finding elements, with the arguments of Playwright's methods."""

    def locator(self, selector: str, **options: Given) -> LocatorView:
        """Return the elements that a selector matches."""
        return self._found("locator", selector, **options)

    def get_by_role(self, role: str, **options: Given) -> LocatorView:
        """Return the elements of a role, and with `name` of that name."""
        return self._found("get_by_role", role, **options)

    def get_by_text(self, text: str | re.Pattern[str], **options: Given) -> LocatorView:
        """Return the elements that show a text."""
        return self._found("get_by_text", text, **options)

    def get_by_label(self, text: str | re.Pattern[str], **options: Given) -> LocatorView:
        """Return the fields with a label."""
        return self._found("get_by_label", text, **options)

    def get_by_placeholder(self, text: str | re.Pattern[str], **options: Given) -> LocatorView:
        """Return the fields with a placeholder."""
        return self._found("get_by_placeholder", text, **options)

    def get_by_alt_text(self, text: str | re.Pattern[str], **options: Given) -> LocatorView:
        """Return the pictures with an alternative text."""
        return self._found("get_by_alt_text", text, **options)

    def get_by_title(self, text: str | re.Pattern[str], **options: Given) -> LocatorView:
        """Return the elements with a title."""
        return self._found("get_by_title", text, **options)

    def get_by_test_id(self, id: str | re.Pattern[str]) -> LocatorView:
        """Return the elements with a test id."""
        return self._found("get_by_test_id", id)

    def _found(self, method: str, *args: Given, **options: Given) -> LocatorView:
        raise NotImplementedError

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        reads = ", ".join(sorted(each for each in dir(self) if not each.startswith("_")))
        raise UsageError(f"{name} does not only read: use `async with session.page_for_acting() as page`, or one of {reads}")


class PageView(_Finder):
    """The present page of a session, to read."""

    def __init__(self, lend: Lend) -> None:
        """Read the page of the environment that `lend` lends."""
        self._lend = lend

    async def url(self) -> str:
        """Return the address."""
        async with self._read("url") as (page, _, hide):
            return hide(page.url)

    async def title(self) -> str:
        """Return the title."""
        async with self._read("title") as (page, _, hide):
            return hide(await page.title())

    async def text(self) -> str:
        """Return the text that the page shows."""
        return await self.locator("body").inner_text()

    async def screenshot(self) -> bytes:
        """Return a picture of the viewport, as PNG."""
        async with self._read("screenshot") as (_, environment, _):
            return await environment.episode.observer.picture(environment.episode.tabs.config)

    def _found(self, method: str, *args: Given, **options: Given) -> LocatorView:
        return LocatorView(self, lambda page: _called(page, page, method, args, options))

    @asynccontextmanager
    async def _read(self, what: str) -> AsyncIterator[tuple[Page, BrowserEnvironment, Callable[[str], str]]]:
        """Lend the page, its environment, and what hides secrets. Raises UsageError if the page cannot be read so."""
        from playwright.async_api import Error

        async with self._lend() as environment, environment.lent() as page:
            tabs = environment.episode.tabs
            if tabs.dialogs.is_asked:
                raise UsageError(f"{what}: a dialog is open, behind which no page answers: let a goal answer it")
            try:
                yield page, environment, await environment.episode.observer.hides(tabs.config)
            except Error as error:
                raise UsageError(f"{what}: {first_line(error)}") from error

    def __repr__(self) -> str:
        return "<PageView: the present page of a session, to read>"


class LocatorView(_Finder):
    """Elements of a session's page, to read. They are looked for at each call."""

    def __init__(self, page: PageView, find: Callable[[Page], Locator]) -> None:
        """Read elements of a page. `find`: returns Playwright's locator of them."""
        self._page, self._find = page, find

    def filter(self, **options: Given) -> LocatorView:
        """Return those of the elements with a text (`has_text`), or with an element inside (`has`)."""
        return self._found("filter", **options)

    def nth(self, index: int) -> LocatorView:
        """Return one of the elements, from 0; -1 for the last."""
        return self._found("nth", index)

    @property
    def first(self) -> LocatorView:
        """The first of the elements."""
        return self.nth(0)

    @property
    def last(self) -> LocatorView:
        """The last of the elements."""
        return self.nth(-1)

    async def count(self) -> int:
        """Return the number of elements."""
        return int(await self._value("count"))

    async def all(self) -> list[LocatorView]:
        """Return the elements one by one."""
        return [self.nth(index) for index in range(await self.count())]

    async def inner_text(self) -> str:
        """Return the text that the element shows."""
        return await self._text("inner_text") or ""

    async def text_content(self) -> str | None:
        """Return the text in the element, hidden text included."""
        return await self._text("text_content")

    async def all_inner_texts(self) -> list[str]:
        """Return the texts that the elements show."""
        return [await each.inner_text() for each in await self.all()]

    async def all_text_contents(self) -> list[str]:
        """Return the texts in the elements, hidden text included."""
        return [await each.text_content() or "" for each in await self.all()]

    async def get_attribute(self, name: str) -> str | None:
        """Return an attribute of the element; None without it."""
        return await self._text("get_attribute", name)

    async def input_value(self) -> str:
        """Return the content of a field."""
        return await self._text("input_value") or ""

    async def bounding_box(self) -> dict[str, float] | None:
        """Return x, y, width and height of the element in CSS pixels of the viewport; None if it is not drawn."""
        found = await self._value("bounding_box")
        return None if found is None else dict(found)

    async def is_visible(self) -> bool:
        """Return whether the element is visible."""
        return bool(await self._value("is_visible"))

    async def is_enabled(self) -> bool:
        """Return whether the element is enabled."""
        return bool(await self._value("is_enabled"))

    async def is_checked(self) -> bool:
        """Return whether the element is checked."""
        return bool(await self._value("is_checked"))

    def _found(self, method: str, *args: Given, **options: Given) -> LocatorView:
        return LocatorView(self._page, lambda page: _called(page, self._find(page), method, args, options))

    async def _value(self, method: str) -> Any:
        async with self._page._read(method) as (page, _, _):
            return await getattr(self._find(page), method)()

    async def _text(self, method: str, *args: str) -> str | None:
        """Return a text of the element without what observations hide."""
        async with self._page._read(method) as (page, environment, hide):
            locator, masked = self._find(page), ", ".join(environment.episode.tabs.config.mask)
            found: str | None = await getattr(locator, method)(*args)
            if found and masked and await locator.and_(page.locator(f":is({masked}), :is({masked}) *")).count():
                return SHOWN
            return None if found is None else hide(found)

    def __repr__(self) -> str:
        return "<LocatorView: elements of a session's page, to read>"


def _called(page: Page, on: Page | Locator, method: str, args: tuple[Given, ...], options: dict[str, Given]) -> Any:
    """Return the result of a method of Playwright's, whose arguments may be views."""
    plain = {name: each._find(page) if isinstance(each, LocatorView) else each for name, each in options.items()}
    return getattr(on, method)(*args, **plain)
