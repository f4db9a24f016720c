"""The life cycle of an environment's tabs: they are opened, watched, waited for and closed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from exact.config import BrowserConfig
from exact.environments.base import SideEffect
from exact.environments.browser.network.gate import Gate
from exact.environments.browser.network.message import PageReports
from exact.environments.browser.network.rules import PolicyRules
from exact.environments.browser.observe import redaction
from exact.environments.browser.page.background import BackgroundRequests
from exact.environments.browser.page.cdp import FLOOD
from exact.environments.browser.page.dialogs import Dialogs
from exact.environments.browser.page.downloads import Downloads
from exact.environments.browser.page.settle import AGAIN_AND_AGAIN, Patience, changed, content_of, give_up, quiet
from exact.environments.browser.page.setup import PageSetup
from exact.environments.browser.page.tab import Navigation, Tab, TargetIds
from exact.environments.browser.page.timeouts import Clock, Timeouts
from exact.environments.browser.page.window import BrowserWindow
from exact.environments.browser.snapshot.state import Memo
from exact.errors import EnvironmentFailure
from exact.origins import origin
from exact.slowness import REST_CLOCK

if TYPE_CHECKING:
    from playwright.async_api import Dialog, Page

    from exact.environments.browser.backend import Backend

_LOOK = 250
"""Milliseconds after which a blank page is looked at again, even if nothing changes in its main frame."""


_TOO_MANY = "net::ERR_INSUFFICIENT_RESOURCES"
"""Chromium's error of a request beyond those that it keeps waiting for one renderer."""


class Tabs:
    """The tabs of one environment, with their common parts: dialogs, downloads, clock and timeouts.

    A page becomes a tab by `adopt`, popups do so by themselves.
    """

    def __init__(self, backend: Backend, setup: PageSetup, config: BrowserConfig, background: BackgroundRequests | None = None) -> None:
        """Make tabs in the browser of a backend.

        `config`: the configuration until an episode begins. `background`: the requests that are learned not to be waited for, which
        environments share.
        """
        self._backend, self.setup, self.config = backend, setup, config
        self._background = background or BackgroundRequests()
        self.window = BrowserWindow(lambda why: self.timeouts.fail(why))
        self.gate = Gate(PolicyRules(), self.window)
        """The gate of the episode; side effects are recorded in its log."""
        self.dialogs = Dialogs("accept" if setup.one_page else config.dialogs)
        self.downloads = self._new_downloads()
        self.clock = Clock(config.clock) if config.clock else None
        """The paused clock of the pages; None if their time is the machine's."""
        self.timeouts = Timeouts(lambda: self.config.settle_seconds)
        self._ready_by = 0.0
        """Time of a machine at rest until which a page that is opened may take to be ready."""
        self.history: Sequence[str] = ()
        """Addresses behind a restored page, which its tab does not know. The next one is the last."""

    @property
    def present(self) -> Tab:
        """The tab that actions go to. Raises EnvironmentFailure if none is open."""
        return self.window.present

    @property
    def obstacle(self) -> str:
        """The reason why no snapshot can be taken of the tabs now; empty if there is none."""
        if self.dialogs.is_open:
            return "a dialog is open"
        if self.window.is_opening:
            return "a page is opening"
        if any(tab.traffic.navigating for tab in self.window.tabs):
            return "a page is loading"
        return "a file is coming in" if self.downloads.in_progress else ""

    def begin(self, config: BrowserConfig, gate: Gate, downloads: tuple[str, ...] = (), history: Sequence[str] = ()) -> None:
        """Begin an episode with the configuration of its task, without dialogs.

        `downloads`: lines about the files that it had downloaded before. `history`: addresses behind the page that it begins with.
        """
        self.config, self.gate, self.history = config, gate, history
        self._ready_by = REST_CLOCK.time() + config.start_seconds
        self.downloads = self._new_downloads(downloads)
        self.timeouts.broken = ""
        self.dialogs.clear()
        if not self.setup.one_page:
            self.dialogs.mode = config.dialogs

    async def adopt(self, page: Page) -> TargetIds:
        """Make a new page the present tab. Return its CDP ids."""
        tab = await self.watch(page, self.window.opened)
        self.window.opened += 1
        self.window.add(tab)
        return tab.target

    async def watch(self, page: Page, index: int = 0) -> Tab:
        """Attach to a page and watch it, without making it a tab. `index`: its number among the episode's pages, from 0."""
        page.on("dialog", self._dialog)
        page.on("crash", self._crashed)
        browser, seconds = self._backend.browser, self.config.answer_seconds
        holds, goes_to = lambda frame: self.gate.holds(frame), lambda url: self.gate.goes_to(url)
        tab = Tab(page, await browser.attach(page), index, holds, goes_to, seconds, self._background)
        tab.cdp.on("Page.downloadWillBegin", lambda event: self.downloads.begin(event))
        tab.cdp.on("Page.downloadProgress", lambda event: self.downloads.progress(event))
        tab.cdp.on(FLOOD, lambda event: self.gate.end_pages(str(event["why"])))
        tab.cdp.on("Network.loadingFailed", self._request_failed)
        PageReports(tab.cdp, lambda: self.gate)
        await asyncio.gather(browser.prepare_page(tab.cdp, self.config), tab.open(self.setup, redaction.rules(self.config.mask)))
        return tab

    async def watch_all(self, pages: Iterable[Page]) -> dict[str, Tab]:
        """Watch the pages of a browser that was just forked. Return them by the CDP ids of their targets."""
        return {tab.target.id: tab for tab in await asyncio.gather(*map(self.watch, pages))}

    def reopen(self, memo: Memo, watched: Mapping[str, Tab]) -> None:
        """Make the pages that were open tabs, in their order and with their numbers. Raises EnvironmentFailure if one is missing."""
        for each in memo.tabs:
            if each.target not in watched:
                raise EnvironmentFailure("restore: a page is missing: return by another route")
            tab = watched[each.target]
            tab.index, tab.traffic.documents = each.index, each.documents
            self.window.add(tab)
        self.window.opened = memo.opened

    def adopt_popup(self, page: Page) -> None:
        """Record a popup and make it the present tab in the background; `settle` waits for it."""
        self.gate.log.record(SideEffect(kind="tab", url=page.url))
        self.window.open(self._adopt_popup(page))

    def back(self) -> str:
        """Take the address that going back from a restored page leads to; empty if there is none, or if another tab is open."""
        if len(self.window.tabs) > 1 or not self.history:
            return ""
        *self.history, url = self.history
        return url

    def take_too_large(self) -> str:
        """Return the reason, once, if a page was not opened because it is too large; empty if all were opened."""
        found, self.gate.too_large = self.gate.too_large, {}
        return next((found[tab.main_frame] for tab in self.window.tabs if tab.main_frame in found), "")

    async def open(self, url: str) -> None:
        """Open an address in the present tab and wait until it is quiet, or has been waited for long enough.

        Raises EnvironmentFailure with the way out if no document comes, or the server answers with an error.
        """
        self.timeouts.renew()
        found = await self.dialogs.race(self.present.navigate(url or "about:blank"), keep_running=True)
        if found is not None:
            self._check_opened(url, found)
        self._ready_by = REST_CLOCK.time() + self.config.start_seconds
        await self.dialogs.race(self.settle(ready=not self.setup.begin))

    async def show_content(self) -> str:
        """Wait until the present page is not blank, for at most `start_seconds` since it was opened, or since the episode began.

        Return a note about a page that stays blank; empty if it shows something, or is empty on purpose. A paused clock runs meanwhile.
        """
        now = self.clock.now if self.clock else 0
        while not self.dialogs.is_asked and self.present.url != "about:blank":
            self.timeouts.renew()
            found = await self.dialogs.race(content_of(self.present))
            if found is None or found.shows:
                break
            late = REST_CLOCK.time() >= self._ready_by or (self.clock and self.clock.now - now >= 1000 * self.config.start_seconds)
            if late or not found.changes:
                how_long = f"stayed blank for {self.config.start_seconds:g} s" if late else "is blank, and nothing in it would change that"
                return f"the page {how_long}: it shows no text, control or picture"
            if not self.clock:
                await self.dialogs.race(changed(self.present, _LOOK))
            await self.dialogs.race(self.settle(ready=True))
        return ""

    def patience(self) -> Patience:
        """Return the time that the pages have to become quiet, and servers to answer navigations."""
        return Patience(self.config.settle_seconds, self.config.answer_seconds, self.timeouts.unlimited)

    async def settle(self, patience: Patience | None = None, *, run: bool = True, ready: bool = False) -> str:
        """Wait until the pages are quiet. Return the reason if `patience` ended first; empty if they are quiet.

        `run`: whether a paused clock runs for its step. `ready`: an opened page that is not ready yet has more time, up to `start_seconds`.
        """
        patience, seconds = patience or self.patience(), self.config.settle_seconds
        before = {tab: tab.traffic.documents for tab in self.window.tabs}
        try:
            async with patience.limited():
                restless = await self._quiet(patience)
                if self.clock and run:
                    await self.clock.run(self.window.tabs)
                    restless = await self._quiet(patience)
        except TimeoutError:
            if self.gate.confirmations.waiting:  # a person is slower than any page
                await self.gate.confirmations.answered()
                return await self.settle(run=run)
            tab = self.present
            documents = tab.traffic.documents - before.get(tab, 0)
            more = ready and documents < AGAIN_AND_AGAIN and REST_CLOCK.time() < self._ready_by
            if more and not await self._is_ready(tab):
                self.timeouts.renew()
                return await self.settle(run=run, ready=True)
            await give_up(tab, seconds, documents)
            return f"still changing after {seconds:g} s"
        return f"still changing after {seconds:g} s before, so it was not waited for again" if restless else ""

    async def _is_ready(self, tab: Tab) -> bool:
        """Return whether a page shows something to act on, or something to read while its scripts request no more."""
        shows = (await content_of(tab)).shows
        return shows > 1 or (shows == 1 and not tab.traffic.is_fetching)

    async def _quiet(self, patience: Patience) -> bool:
        """Wait until the present page is quiet. Return whether parts of it change without end."""
        from playwright.async_api import Error

        while True:
            await self.gate.no_popups()
            await self.window.all_open()
            tab, restless = self.present, False
            try:
                restless = await quiet(tab, patience)
            except Error as error:
                if not await self.window.recovers_from(tab, error):
                    raise
            for each in tuple(self.window.tabs):
                await self.gate.beacons_judged(each.traffic)
            await self.downloads.done()
            if not self.window.is_opening and tab is self.present:
                return restless

    async def try_empty(self) -> bool:
        """Leave the only page and delete its storage. Return False if something may be left: then a new context is needed.

        Nothing is left if there was one page, which never left its origin.
        """
        from playwright.async_api import Error

        window = self.window
        if self.dialogs.is_open or self.clock or self.timeouts.broken:
            return False
        if window.opened != 1 or len(window.tabs) != 1 or window.is_opening:
            return False
        try:
            with self.dialogs.accepting():
                return await self.present.renew()
        except (Error, EnvironmentFailure):
            return False

    def clear(self) -> None:
        """Forget the tabs and dialogs: their browser context is gone."""
        self.window.clear()
        self.dialogs.clear()

    def _check_opened(self, url: str, found: Navigation) -> None:
        """Raise EnvironmentFailure if a navigation brought no document, or a server's error: which is not an attempt at the task."""
        if found.error and self.window.unanswered():
            seconds = self.config.answer_seconds
            raise EnvironmentFailure(f"the start page {url} did not answer for {seconds:g} s: raise browser.answer_seconds")
        if found.error and (large := self.take_too_large()):
            raise EnvironmentFailure(f"the start page {large}")
        if found.error and (blocked := [effect for effect in self.gate.take_effects() if effect.kind == "blocked"]):
            way_out = f"allow {origin(blocked[0].url)} with --allow-origin if it belongs to the task"
            raise EnvironmentFailure(f"the start page {url} leads to {blocked[0].url}: {way_out}")
        if found.is_download:
            raise self._cannot_open(url, "it is a file to download, not a page")
        if found.error == "ABORTED" and found.status:
            raise self._cannot_open(url, f"status {found.status} without a page")
        if found.error:
            raise self._cannot_open(url, f"net::ERR_{found.error}")
        if found.status >= 500:
            raise self._cannot_open(url, f"status {found.status}")

    def _cannot_open(self, url: str, why: str) -> EnvironmentFailure:
        way_out = self.setup.way_out(url) if self.setup.way_out else ""
        return EnvironmentFailure(f"the start page {url} cannot be opened ({why}){way_out}")

    def _new_downloads(self, downloads: tuple[str, ...] = ()) -> Downloads:
        store = self._backend.browser.store
        return Downloads(self.config.download_bytes, store, lambda effect: self.gate.log.record(effect), downloads)

    async def _adopt_popup(self, page: Page) -> None:
        from playwright.async_api import Error

        with suppress(Error):  # the popup was closed before it could be watched
            await self.adopt(page)
            self.gate.forget_popup(self.present.main_frame)

    def _crashed(self, page: Page) -> None:
        if any(tab.page is page for tab in self.window.tabs):  # else it belongs to an earlier episode
            self.timeouts.fail("the page crashed")

    def _request_failed(self, event: dict[str, Any]) -> None:
        if event["errorText"] == _TOO_MANY:
            self.gate.end_pages("it has sent more requests than the browser keeps waiting")

    async def _dialog(self, dialog: Dialog) -> None:
        url = dialog.page.url if dialog.page else ""
        self.gate.log.record(SideEffect(kind="dialog", method=dialog.type, url=url, detail=dialog.message))
        await self.dialogs.opened(dialog)


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, or its type if it is empty."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
