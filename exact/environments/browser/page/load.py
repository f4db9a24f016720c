"""Loading pages that are not observed: those of an evaluator or of a log-in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import Page, Response

LOAD_SECONDS = 10.0
"""Seconds that a document has to load what it shows. Some never do."""
_NAVIGATIONS = ("goto", "reload", "go_back", "go_forward", "wait_for_url")


async def load(page: Page, url: str) -> Response | None:
    """Open an address and return its answer once the document is there, and loaded if it loads in time. Raises Playwright's Error."""
    answer = await page.goto(url, wait_until="commit")
    await loaded(page)
    return answer


async def loaded(page: Page) -> None:
    """Wait until the present document has loaded, for at most `LOAD_SECONDS`. Raises Playwright's Error where the page is gone."""
    from playwright.async_api import TimeoutError as Late

    with suppress(Late):
        await page.wait_for_load_state("load", timeout=1000 * LOAD_SECONDS)


@contextmanager
def bounded_loads(page: Page) -> Iterator[None]:
    """Let the navigations of a page, and of pages that its context opens, return in time while the block runs.

    They return once the document is there, and loaded if it loads in time. Those that ask for another state than `load` stay as they are.
    """
    from playwright.async_api import Page as PlaywrightPage

    if not isinstance(page, PlaywrightPage):  # a double of a test
        yield
        return
    bounded = list[Any]()

    def bound(one: Any) -> None:
        bounded.append(one)
        for name in _NAVIGATIONS:
            setattr(one, name, _bounded(one, getattr(one, name)))

    bound(page)
    page.context.on("page", bound)
    try:
        yield
    finally:
        page.context.remove_listener("page", bound)
        for one in bounded:
            for name in _NAVIGATIONS:
                delattr(one, name)


def _bounded(page: Page, navigate: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def call(*arguments: Any, wait_until: str | None = None, **options: Any) -> Any:
        whole = wait_until in (None, "load")
        found = await navigate(*arguments, wait_until="commit" if whole else wait_until, **options)
        if whole:
            await loaded(page)
        return found

    return call
