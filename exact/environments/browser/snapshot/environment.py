"""A browser environment that returns to a page: without the state of its scripts, and without the server's."""

from __future__ import annotations

from urllib.parse import urldefrag

import msgspec

from exact.config import BrowserConfig
from exact.environments.base import Capabilities, Snapshot
from exact.environments.browser.environment import BrowserEnvironment, Evaluator
from exact.environments.browser.interaction import Observed
from exact.environments.browser.launch.browser import Browser
from exact.environments.browser.page.setup import PageSetup
from exact.environments.browser.shared import SharedState
from exact.environments.browser.snapshot.state import PageSnapshot, PageSnapshots, load_page, move_pointer, read_content, restore_fields
from exact.environments.sites.accounts import AccountLease
from exact.environments.sites.site import Site
from exact.errors import EnvironmentFailure
from exact.observation import Observation


class PageEnvironment(BrowserEnvironment):
    """An environment whose snapshots hold the present page. Made by BrowserFactory."""

    def __init__(
        self,
        browser: Browser,
        setup: PageSetup,
        config: BrowserConfig,
        *,
        isolated: bool,
        simulation: bool,
        evaluator: Evaluator | None,
        shared: SharedState | None = None,
        pages: PageSnapshots | None = None,
        login: AccountLease | None = None,
        site: Site | None = None,
    ) -> None:
        """`pages`: the snapshots that environments of one kind share. `site`: it is reset whenever this environment is."""
        super().__init__(browser, setup, config, isolated=isolated, simulation=simulation, evaluator=evaluator, shared=shared, login=login)
        self._pages, self._site = pages or PageSnapshots(), site

    @property
    def capabilities(self) -> Capabilities:
        return msgspec.structs.replace(super().capabilities, fidelity="page" if self.tabs.config.page_snapshots else "replay")

    @property
    def obstacle(self) -> str:
        """The reason why no snapshot can be taken now: something is under way on the page. Empty if there is none."""
        if not self.tabs.config.page_snapshots:
            return "page snapshots are off: set browser.page_snapshots"
        if found := super().obstacle:
            return found
        if len(self.tabs.window.tabs) > 1:
            return "another tab is open"
        if not self.tabs.present.traffic.is_idle:
            return "a request is under way"
        return ""

    async def before_episode(self) -> None:
        """Reset the site if that is due."""
        if self._site is None:
            return
        from exact.environments.sites.lease import reset_is_due

        if reset_is_due(self._site):
            with self.tabs.timeouts.unlimited():
                await self._site.reset.call("reset", base=self._site.base)

    async def take_snapshot(self) -> Snapshot:
        """Take a snapshot of the present page; see `state`."""
        assert self.episode.context is not None
        tab, seen, memo = self.tabs.present, self.observation, self.episode.memo()
        content = await read_content(tab, self.episode.context)
        history = (*self.tabs.history, *await tab.history())
        id = self._pages.add(PageSnapshot(memo, seen.volatile, seen.elements, history, content))
        return Snapshot(id=id, fidelity="page", fingerprint=seen.fingerprint)

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Bring the page to a snapshot that any environment of this kind took. Raises EnvironmentFailure if it is gone.

        Compare the fingerprints: parts that the snapshot does not hold may be missing. Elements get the ids they had, as far as the page is
        built alike.
        """
        retained = self._pages.get(snapshot.id)
        if self.episode.account:
            self.episode.account.change(retained.memo.account)
        return await self.resume(retained.memo.task, lambda: self._load(retained))

    async def _load(self, retained: PageSnapshot) -> Observed:
        """Load the page into an empty context and bring it into its state."""
        memo, tabs = retained.memo, self.tabs
        self.observer.mask_for(memo.task)
        begins = bool(tabs.setup.begin) and _is_same_page(retained.state.url, memo.task.start)
        now = memo.now - (1 + begins) * tabs.config.clock  # a paused clock runs for that long until the page is restored
        await self.episode.begin(memo.task, now, memo.downloads, memo.flow)
        self.observer.instruction, tabs.history = memo.instruction, retained.history
        assert self.episode.context is not None
        loading = load_page(tabs.present, self.episode.context, retained.state, lambda: tabs.settle(run=False))
        await tabs.dialogs.race(loading)
        await tabs.dialogs.race(tabs.settle())
        if tabs.dialogs.is_asked:
            raise EnvironmentFailure("restore: the page opens a dialog as it loads: return by another route")
        if begins:
            await self.episode.run_begin(memo.task)
            await tabs.settle()
        return await self._fill(retained)

    async def _fill(self, retained: PageSnapshot) -> Observed:
        """Restore the fields, and the ids of elements. If the page then looks otherwise, report the changes to it as a user's."""
        tab, observe = self.tabs.present, self.interaction.observe
        changed = await restore_fields(tab, retained.state)
        observed = await observe(run=False)
        if observed.observation.fingerprint != retained.memo.fingerprint and not observed.terminated:
            await restore_fields(tab, retained.state, changed)
            await move_pointer(tab, retained.state)
            observed = await observe(run=False)
        if observed.terminated:
            return observed
        self.observer.ids = retained.memo.ids.moved(self.observer.ids, retained.elements, observed.observation.elements)
        return await observe(run=False)


def _is_same_page(one: str, other: str) -> bool:
    return urldefrag(one).url == urldefrag(other).url
