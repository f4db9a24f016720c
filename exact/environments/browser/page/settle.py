"""Waiting until pages are quiet: the one rule by which every navigation and every other step ends.

A server has its time to answer a navigation. From then on a page has `settle_seconds` to become quiet; it is observed as it is afterwards,
whether or not its load event has fired. What keeps a page from becoming quiet is remembered, and is not waited for again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress

from exact.environments.browser.page.tab import Tab

_CALM = 18.0
"""Milliseconds without a change after which a page is quiet: longer than a frame and than the tick of usual animations."""


_AGAIN_AND_AGAIN = 3
"""Documents that a page has had in one wait if it replaces itself without end. Redirects by script are fewer."""
_NEXT = 1.0
"""Seconds within which such a page requests its next document."""


class Patience:
    """The time that is left for one wait: seconds for pages to become quiet, and seconds for servers to answer navigations."""

    def __init__(self, quiet: float, answer: float, suspend: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """Take the seconds of each. `suspend`: suspends the limit of the whole call while a server is waited for."""
        self._quiet, self._answer, self._suspend = quiet, answer, suspend
        self._limit: asyncio.Timeout | None = None

    @asynccontextmanager
    async def limited(self) -> AsyncIterator[None]:
        """Limit the block to the time that pages have left. Raises TimeoutError."""
        begun = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._quiet) as self._limit:
                yield
        finally:
            self._quiet = max(0.0, self._quiet - (asyncio.get_running_loop().time() - begun))
            self._limit = None

    @asynccontextmanager
    async def for_answer(self) -> AsyncIterator[None]:
        """Let the time of servers run during the block, not that of pages."""
        limit, begun = self._limit, asyncio.get_running_loop().time()
        assert limit is not None
        when = limit.when()
        assert when is not None
        limit.reschedule(begun + self._answer)
        try:
            with self._suspend():
                yield
        finally:
            spent = asyncio.get_running_loop().time() - begun
            self._answer, self._quiet = max(0.0, self._answer - spent), self._quiet + spent
            if not limit.expired():
                limit.reschedule(when + spent)


async def quiet(tab: Tab, patience: Patience) -> bool:
    """Wait until nothing that is waited for is in flight and no frame has changed for a moment. Return whether parts change without end.

    Answers whose body the page does not read are not waited for. Raises TimeoutError where `patience` ends, and Playwright's Error.
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
            found = await asyncio.gather(*(_frame_quiet(tab, frame, partial) for frame in list(tab.frames)))
        except Error as error:
            if not tab.is_navigation_error(error):
                raise
            continue
        if traffic.is_arriving or not traffic.is_idle or traffic.started != begun:
            continue
        _note_size(tab, [size for *_, size in found])
        if partial and not any(painted for _, painted, *_ in found):  # a style sheet that does not come keeps it from being drawn
            await tab.stop_loading()
            continue
        if not (read := traffic.unfinished_reads([url for _, _, urls, _ in found for url in urls])):
            return any(restless for restless, *_ in found)
        await traffic.any_ended(read)


async def give_up(tab: Tab, seconds: float, documents: int) -> None:
    """Remember what keeps a page from becoming quiet after `seconds`. It is not waited for again.

    `documents`: how many the page has had since the wait began. Where it replaces itself again and again, the next document is stopped
    before it comes, so that the present one can be observed.
    """
    from playwright.async_api import Error

    if documents >= _AGAIN_AND_AGAIN:
        with suppress(TimeoutError):
            async with asyncio.timeout(_NEXT):
                await tab.traffic.leaving()
            await tab.stop_loading()
    tab.traffic.give_up(seconds)
    try:
        sizes = await asyncio.gather(*(tab.evaluate_in(frame, "globalThis.exact?.giveUp()") for frame in list(tab.frames)))
        _note_size(tab, sizes)
    except Error as error:
        if not (tab.is_navigation_error(error) or tab.is_closing_error(error)):
            raise


async def _frame_quiet(tab: Tab, frame: str, partial: bool) -> tuple[bool, bool, list[str], object]:
    """Wait until a frame is quiet.

    Return whether parts of it change without end, whether it was drawn, the addresses of answers whose body it does not read, and its size.
    """
    found = await tab.evaluate_in(frame, f"globalThis.exact?.quiet({_CALM}, {json.dumps(partial)})")
    if found is None:  # a frame that was never loaded, which does not change
        return False, False, [], None
    restless, painted, unread, size = found
    return restless, painted, _addresses(unread), size


def _note_size(tab: Tab, sizes: Iterable[object]) -> None:
    """Note the size of a page, given the answers of `exact.size` of its frames; None for a frame that was never loaded."""
    counted = [(int(each[0]), int(each[1])) for each in sizes if isinstance(each, list)]
    tab.size = sum(elements for elements, _ in counted), sum(characters for _, characters in counted)


def _addresses(answer: object) -> list[str]:
    """Return the strings of a JSON list; empty for anything else, since pages can forge it."""
    try:
        found = json.loads(answer) if isinstance(answer, str) else []
    except ValueError:
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
