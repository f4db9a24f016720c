"""Loading pages that are not observed: those of an evaluator or of a log-in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from playwright.async_api import Page, Response

T = TypeVar("T")
LOAD_SECONDS = 10.0
"""Seconds that a whole document has to load what it shows. Some never do."""


class JudgedDocuments(NamedTuple):
    """JudgedDocuments that an evaluator reads."""

    seconds: float = 15.0
    """Seconds that a document has to come and be parsed: a part of one is not judged."""
    partial: Mapping[str, str] = MappingProxyType({})
    """Addresses of those of which only a part has come, by frame."""

    def still_loading(self, url: str) -> EnvironmentFailure:
        """Return the failure of an evaluation whose document is not whole in time."""
        return EnvironmentFailure(
            f"the page {url} was still loading after {self.seconds:g} s: raise browser.answer_seconds, or look at its server"
        )


_UNJUDGED = JudgedDocuments()
_DOCUMENTS: ContextVar[JudgedDocuments] = ContextVar("documents that an evaluator reads", default=_UNJUDGED)
_NAVIGATIONS = ("goto", "reload", "go_back", "go_forward", "wait_for_url")


async def load(page: Page, url: str) -> Response | None:
    """Open an address and return its answer once the document is whole, and loaded if it loads in time.

    Raises EnvironmentFailure where it is not whole in time, and Playwright's Error.
    """
    answer = await _committed(page, page.goto(url, wait_until="commit"))
    await loaded(page)
    return answer


async def _committed(page: Page, navigation: Awaitable[T]) -> T:
    """Return the result of a navigation. Raises EnvironmentFailure where it ended because its document did not come as a whole."""
    from playwright.async_api import Error

    try:
        return await navigation
    except Error:
        await _require_whole(page)
        raise


async def _require_whole(page: Page) -> None:
    """Raise EnvironmentFailure where only a part of the document of a page has come."""
    documents = _DOCUMENTS.get()
    if documents.partial:
        cdp = await page.context.new_cdp_session(page)
        frame = (await cdp.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
        await cdp.detach()
        if frame in documents.partial:
            raise documents.still_loading(documents.partial[frame])


async def loaded(page: Page) -> None:
    """Wait until the present document is whole, and then for at most `LOAD_SECONDS` until it has loaded.

    Raises EnvironmentFailure where it is not whole in time, and Playwright's Error where the page is gone.
    """
    from playwright.async_api import TimeoutError as Late

    await whole(page)
    with suppress(Late):
        await page.wait_for_load_state("load", timeout=1000 * LOAD_SECONDS)


async def whole(page: Page) -> None:
    """Wait until the present document is parsed to its end. Raises EnvironmentFailure where it is not in time, and Playwright's Error."""
    from playwright.async_api import Page as PlaywrightPage
    from playwright.async_api import TimeoutError as Late

    if not isinstance(page, PlaywrightPage):  # a double of a test
        return
    await _require_whole(page)
    documents = _DOCUMENTS.get()
    try:
        await page.wait_for_load_state("domcontentloaded", timeout=1000 * documents.seconds)
    except Late as error:
        if await page.evaluate("document.readyState") == "loading":  # else a script that is to run afterwards is late
            raise documents.still_loading(page.url) from error


@contextmanager
def judging(documents: JudgedDocuments) -> Iterator[None]:
    """Require whole documents of these in the block."""
    before = _DOCUMENTS.set(documents)
    try:
        yield
    finally:
        _DOCUMENTS.reset(before)


@contextmanager
def bounded_loads(page: Page) -> Iterator[None]:
    """Let the navigations of a page, and of pages that its context opens, return in time while the block runs.

    They return as `load` does. Those that ask for another state than `load` stay as they are.
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
        is_bounded = wait_until in (None, "load")
        found = await _committed(page, navigate(*arguments, wait_until="commit" if is_bounded else wait_until, **options))
        if is_bounded:
            await loaded(page)
        return found

    return call
