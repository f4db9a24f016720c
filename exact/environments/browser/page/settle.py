"""Waiting until pages are quiet: the one rule by which every navigation and every other step ends.

A server has a separate time to answer a navigation. From then on a page has `settle_seconds` to become quiet; it is observed as it is
afterwards, whether or not its load event has fired. Causes that keep a page from becoming quiet are remembered, and not waited for again.

Loading pages that are not observed: those of an evaluator or of a log-in.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from exact.environments.browser.page.cdp import script_call
from exact.environments.browser.page.tab import Tab
from exact.errors import EnvironmentFailure
from exact.slowness import REST_CLOCK, Limit

if TYPE_CHECKING:
    from playwright.async_api import Page, Response


_CALM = 18.0
"""Milliseconds without a change after which a page is quiet: longer than a frame and than the tick of usual animations."""


AGAIN_AND_AGAIN = 3
"""Documents that a page has had in one wait if it replaces itself without end. Redirects by script are fewer."""
_CANVASES = 4
"""Canvases of a page of which it is asked whether they are painted."""
_HEARD = 2.0
"""Seconds within which Playwright hears of a document, unless it never does."""
_NEXT = 1.0
"""Seconds within which such a page requests its next document."""


class Patience:
    """The remaining time of one wait: seconds for pages to become quiet, and seconds for servers to answer navigations."""

    def __init__(self, quiet: float, answer: float, suspend: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """Take the seconds of each. `suspend`: suspends the limit of the whole call while a server is waited for."""
        self._quiet, self._answer, self._suspend = quiet, answer, suspend
        self._limit: Limit | None = None
        self._late: float | None = None
        """Seconds that pages have left if a server was late."""

    @asynccontextmanager
    async def limited(self) -> AsyncIterator[None]:
        """Limit the block to the time that pages have left. Raises TimeoutError."""
        limit, self._late = Limit(self._quiet), None
        try:
            async with limit as self._limit:
                yield
        finally:
            self._quiet, self._limit = limit.left if self._late is None else self._late, None

    @asynccontextmanager
    async def for_answer(self) -> AsyncIterator[None]:
        """Let the time of servers run during the block, not that of pages."""
        limit = self._limit
        assert limit is not None
        quiet = limit.left
        limit.set(self._answer)
        try:
            with self._suspend():
                yield
        finally:
            self._answer = limit.left
            if limit.expired:
                self._late = quiet
            else:
                limit.set(quiet)


async def quiet(tab: Tab, patience: Patience) -> bool:
    """Wait until no request that counts is in flight and no frame has changed for a moment. Return whether parts change without end.

    Answers whose body the page does not read are not waited for. Raises TimeoutError if `patience` ends, and Playwright's Error.
    """
    from playwright.async_api import Error

    traffic = tab.traffic
    while True:
        if traffic.is_arriving:
            async with patience.for_answer():
                await traffic.arrived()
        await traffic.idle()
        begun, partial = traffic.started, traffic.is_partial
        try:
            frames = list(tab.frames)
            found = await asyncio.gather(*(_frame_quiet(tab, frame, partial) for frame in frames))
        except Error as error:
            if not tab.is_navigation_error(error):
                raise
            continue
        if traffic.is_arriving or not traffic.is_idle or traffic.started != begun:
            continue
        _note(tab, frames, [each.noted for each in found])
        if partial and not any(each.painted for each in found):  # a missing style sheet prevents drawing
            await tab.stop_loading()
            continue
        if not (read := traffic.unfinished_reads([url for each in found for url in each.unread])):
            return any(each.restless for each in found)
        await traffic.any_ended(read)


async def heard(tab: Tab) -> None:
    """Wait until Playwright's page has the address that the browser told: it hears of a document later than we do, on its own connection.

    It may never hear of it, such as of one that was replaced meanwhile: the wait ends after `_HEARD` seconds.
    """
    told = asyncio.Event()

    def tell(_: object) -> None:
        told.set()

    tab.page.on("framenavigated", tell)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(_HEARD * REST_CLOCK.slowness):
                while tab.page.url != tab.url:
                    await told.wait()
                    told.clear()
    finally:
        tab.page.remove_listener("framenavigated", tell)


async def give_up(tab: Tab, seconds: float, documents: int) -> None:
    """Remember the causes that keep a page from becoming quiet after `seconds`. They are not waited for again.

    `documents`: how many the page has had since the wait began. If it replaces itself again and again, the next document is stopped
    before it comes, so that the present one can be observed.
    """
    from playwright.async_api import Error

    if documents >= AGAIN_AND_AGAIN:
        with suppress(TimeoutError):
            async with asyncio.timeout(_NEXT):
                await tab.traffic.leaving()
            await tab.stop_loading()
    tab.traffic.give_up(seconds)
    try:
        frames = list(tab.frames)
        _note(tab, frames, await asyncio.gather(*(tab.evaluate_in(frame, "globalThis.exact?.giveUp()") for frame in frames)))
    except Error as error:
        if not (tab.is_navigation_error(error) or tab.is_closing_error(error)):
            raise


class _Quiet(NamedTuple):
    """A frame that is quiet."""

    restless: bool
    """Whether parts of it change without end."""
    painted: bool
    unread: list[str]
    """Addresses of answers whose body it does not read."""
    noted: object
    """Its size and its mark; None for a frame that was never loaded."""


async def _frame_quiet(tab: Tab, frame: str, partial: bool) -> _Quiet:
    """Wait until a frame is quiet."""
    found = await tab.evaluate_in(frame, f"globalThis.exact?.quiet({_CALM}, {json.dumps(partial)})")
    if found is None:  # a frame that was never loaded, which does not change
        return _Quiet(restless=False, painted=False, unread=[], noted=None)
    restless, painted, unread, *noted = found
    return _Quiet(restless, painted, _addresses(unread), noted)


class Content(NamedTuple):
    """The content of a page."""

    shows: int
    """2: something to act on. 1: text, or a painted picture or canvas. 0: nothing, the page is blank."""
    changes: bool
    """Whether a blank page may still change by itself."""


async def content_of(tab: Tab) -> Content:
    """Return the content of a page, in all frames that are drawn. A page that is being replaced is blank."""
    from playwright.async_api import Error

    try:
        found = [each for each in await asyncio.gather(*(_shown(tab, frame) for frame in list(tab.frames))) if each]
        shows = max((int(each["shows"]) for each in found), default=0)
        boxes = found[0]["canvases"][:_CANVASES] if found and not shows else []
        if any([await _is_painted(tab, box) for box in boxes]):
            shows = 1
        return Content(shows, not tab.traffic.is_idle or any(each["changes"] for each in found))
    except Error as error:
        if not (tab.is_navigation_error(error) or tab.is_closing_error(error)):
            raise
        return Content(0, changes=True)


async def changed(tab: Tab, limit: int) -> None:
    """Wait until the main frame of a page changes, for at most `limit` milliseconds. A page that is replaced has changed."""
    from playwright.async_api import Error

    try:
        await tab.evaluate(f"exact.change({limit})")
    except Error as error:
        if not (tab.is_navigation_error(error) or tab.is_closing_error(error)):
            raise


async def _shown(tab: Tab, frame: str) -> dict[str, Any] | None:
    """Return the answer of content.js for a frame; None for a frame that is not drawn."""
    if frame != tab.main_frame:
        outer, owner = await tab.owner(frame)
        if not await tab.call(
            owner, outer, "function () { return this.checkVisibility({visibilityProperty: true}) && this.offsetWidth > 1 }"
        ):
            return None
    return dict(await tab.evaluate_in(frame, script_call("page/content")))


async def _is_painted(tab: Tab, box: Sequence[float]) -> bool:
    """Return whether a part of the page, in CSS pixels, has more than one colour."""
    from PIL import Image

    x, y, width, height = box
    clip = {"x": x, "y": y, "width": max(1, width), "height": max(1, height), "scale": 1}
    shot = await tab.cdp.send("Page.captureScreenshot", {"format": "png", "clip": clip, "optimizeForSpeed": True})
    with Image.open(io.BytesIO(base64.b64decode(shot["data"]))) as image:
        return len(image.convert("RGB").getcolors(2) or "many") > 1


def _note(tab: Tab, frames: Sequence[str], answers: Iterable[object]) -> None:
    """Note the size of a page, and the marks of its documents, given those of its frames."""
    known = [(frame, each) for frame, each in zip(frames, answers, strict=True) if isinstance(each, list)]
    tab.size = sum(int(size[0]) for _, (size, _) in known), sum(int(size[1]) for _, (size, _) in known)
    tab.marks = {frame: mark for frame, (_, mark) in known}


def _addresses(answer: object) -> list[str]:
    """Return the strings of a JSON list; empty for anything else, since pages can forge it."""
    try:
        found = json.loads(answer) if isinstance(answer, str) else []
    except ValueError:
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


T = TypeVar("T")
LOAD_SECONDS = 10.0
"""Seconds that a whole document has to load its content. Some never do."""


class JudgedDocuments(NamedTuple):
    """JudgedDocuments that an evaluator reads."""

    seconds: float = 15.0
    """Seconds that a document has to arrive and be parsed: a part of one is not evaluated."""
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

    Raises EnvironmentFailure if it is not whole in time, and Playwright's Error.
    """
    answer = await _committed(page, page.goto(url, wait_until="commit"))
    await loaded(page)
    return answer


async def _committed(page: Page, navigation: Awaitable[T]) -> T:
    """Return the result of a navigation. Raises EnvironmentFailure if it ended because its document did not come as a whole."""
    from playwright.async_api import Error

    try:
        return await navigation
    except Error:
        await _require_whole(page)
        raise


async def _require_whole(page: Page) -> None:
    """Raise EnvironmentFailure if only a part of the document of a page has come."""
    documents = _DOCUMENTS.get()
    if documents.partial:
        cdp = await page.context.new_cdp_session(page)
        frame = (await cdp.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
        await cdp.detach()
        if frame in documents.partial:
            raise documents.still_loading(documents.partial[frame])


async def loaded(page: Page) -> None:
    """Wait until the present document is whole, and then for at most `LOAD_SECONDS` until it has loaded.

    Raises EnvironmentFailure if it is not whole in time, and Playwright's Error if the page is gone.
    """
    from playwright.async_api import TimeoutError as Late

    await whole(page)
    with suppress(Late):
        await page.wait_for_load_state("load", timeout=1000 * LOAD_SECONDS * REST_CLOCK.slowness)


async def whole(page: Page) -> None:
    """Wait until the present document is parsed to its end. Raises EnvironmentFailure if it is not in time, and Playwright's Error."""
    from playwright.async_api import Page as PlaywrightPage
    from playwright.async_api import TimeoutError as Late

    if not isinstance(page, PlaywrightPage):  # a double of a test
        return
    await _require_whole(page)
    documents = _DOCUMENTS.get()
    try:
        await page.wait_for_load_state("domcontentloaded", timeout=1000 * documents.seconds * REST_CLOCK.slowness)
    except Late as error:
        if await page.evaluate("document.readyState") == "loading":  # else a script that must run afterwards is late
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

    They return as for `load`. Navigations that wait for another state than `load` are unchanged.
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
