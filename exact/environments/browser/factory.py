"""A factory of browser environments that share one browser on this machine, and return to pages."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace

from exact.config import BrowserConfig
from exact.environments.base import Fidelity, Snapshot
from exact.environments.browser.environment import BrowserEnvironment, Evaluator
from exact.environments.browser.episode import BrowserEpisode
from exact.environments.browser.launch.browser import Browser
from exact.environments.browser.page.setup import PageSetup
from exact.environments.browser.shared import SharedState
from exact.environments.browser.snapshot.state import Memo, PageSnapshots, SavedPage, read_content
from exact.environments.browser.tabs import Tabs
from exact.environments.sites.accounts import AccountLease, Accounts
from exact.environments.sites.site import Outside
from exact.observation import Observation


class PlainBackend:
    """A browser on this machine that environments share. A snapshot holds the present page, without the state of scripts and servers."""

    pid = undone_origins = None

    def __init__(self, browser: Browser, *, isolated: bool) -> None:
        """Take a browser. `isolated`: whether a reset undoes everything that a step may do, so that no cache holds what servers had."""
        self.browser, self.isolated, self.keeps_context = browser, isolated, isolated
        self.snapshots = PageSnapshots()

    def is_inside(self, url: str) -> bool:
        """Return whether an address is answered by a server whose changes are undone."""
        return self.isolated

    def fidelity(self, config: BrowserConfig) -> Fidelity:
        """Return the state that a restore recovers, under the configuration of the present task."""
        return "page" if config.page_snapshots else "replay"

    def obstacle(self, tabs: Tabs) -> str:
        """Return the reason why no snapshot can be taken of the tabs now; empty if there is none."""
        if not tabs.config.page_snapshots:
            return "page snapshots are off: set browser.page_snapshots"
        if len(tabs.window.tabs) > 1:
            return "another tab is open"
        return "" if tabs.present.traffic.is_idle else "a request is under way"

    def call(self, what: str) -> AbstractAsyncContextManager[None]:
        """Return a context that does nothing."""
        return nullcontext()

    async def renew(self) -> None:
        """Do nothing: a context can be opened at any time."""

    async def take(self, tabs: Tabs, seen: Observation, memo: Memo) -> Snapshot:
        """Take a snapshot of the present page. Raises EnvironmentFailure if a part of it is out of reach."""
        tab = tabs.present
        content = await read_content(tab, tab.page.context)
        page = SavedPage(seen.elements, (*tabs.history, *await tab.history()), content)
        return Snapshot(id=self.snapshots.add(replace(memo, page=page)), fidelity="page", fingerprint=memo.fingerprint)

    def memo(self, snapshot: Snapshot) -> Memo:
        """Return the facts about a snapshot. Raises EnvironmentFailure if it is gone."""
        return self.snapshots.get(snapshot.id)

    async def restore(self, snapshot: Snapshot) -> None:
        """Do nothing: the page is loaded in the same browser."""

    async def resume(self, memo: Memo) -> None:
        """Do nothing: servers stay in their state."""

    async def close(self) -> None:
        """Do nothing: others share the browser."""


class BrowserFactory:
    """Opens browser environments of one kind, any number at once, each in a separate browser context."""

    def __init__(
        self,
        browser: Browser,
        setup: PageSetup,
        config: BrowserConfig,
        *,
        isolated: bool,
        evaluator: Evaluator | None = None,
        outside: Outside | None = None,
    ) -> None:
        """Make a factory.

        `isolated`: whether a reset undoes everything that a step may do. `evaluator` scores the last page. `outside`: its accounts are
        leased, one for each environment, and its site is reset with the live environment.
        """
        self._backend, self._setup, self._config = PlainBackend(browser, isolated=isolated), setup, config
        self._shared, self._evaluator = SharedState.of(config, outside), evaluator
        self._accounts = Accounts(outside.accounts, os.environ) if outside and outside.accounts else None
        self._site = outside.site if outside else None

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[BrowserEnvironment]:
        """Open a fresh environment, which is closed on leaving."""
        login = AccountLease(self._accounts, await self._accounts.lease()) if self._accounts else None
        site = None if simulation else self._site
        episode = BrowserEpisode(
            self._backend, self._setup, self._config, simulation=simulation, shared=self._shared, account=login, site=site
        )  # fmt: skip
        environment = BrowserEnvironment(episode, self._evaluator)
        try:
            yield environment
        finally:
            try:
                await environment.close()
            finally:
                if login:
                    login.close()

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[BrowserEnvironment]:
        """Open another environment at a snapshot that any environment of this factory took. Compare the fingerprints.

        Raises EnvironmentFailure if the snapshot is gone.
        """
        async with self.open(simulation=simulation) as environment:
            await environment.restore(snapshot)
            yield environment

    def has(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot can still be restored. The number of snapshots that are retained is bounded."""
        return snapshot.id in self._backend.snapshots

    def drop(self, snapshot: Snapshot) -> None:
        """Drop a snapshot that will not be restored again."""
        self._backend.snapshots.drop(snapshot.id)
