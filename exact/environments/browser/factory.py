"""A factory of browser environments that share one browser."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from exact.config import BrowserConfig
from exact.environments.base import Snapshot
from exact.environments.browser.environment import Evaluator
from exact.environments.browser.launch.browser import Browser
from exact.environments.browser.page.setup import PageSetup
from exact.environments.browser.shared import SharedState
from exact.environments.browser.snapshot.environment import PageEnvironment
from exact.environments.browser.snapshot.state import PageSnapshots
from exact.environments.sites.accounts import AccountLease, Accounts
from exact.environments.sites.site import Outside


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
        self._browser, self._setup, self._config = browser, setup, config
        self._isolated, self._evaluator = isolated, evaluator
        self._shared, self._pages = SharedState.of(config, outside), PageSnapshots()
        self._accounts = Accounts(outside.accounts, os.environ) if outside and outside.accounts else None
        self._site = outside.site if outside else None

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[PageEnvironment]:
        """Open a fresh environment, which is closed on leaving."""
        login = AccountLease(self._accounts, await self._accounts.lease()) if self._accounts else None
        environment = PageEnvironment(
            self._browser, self._setup, self._config, isolated=self._isolated, simulation=simulation, evaluator=self._evaluator,
            shared=self._shared, pages=self._pages, login=login, site=None if simulation else self._site,
        )  # fmt: skip
        try:
            yield environment
        finally:
            try:
                await environment.close()
            finally:
                if login:
                    login.close()

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[PageEnvironment]:
        """Open another environment at a snapshot that any environment of this factory took. Compare the fingerprints.

        Raises EnvironmentFailure if the snapshot is gone.
        """
        async with self.open(simulation=simulation) as environment:
            await environment.restore(snapshot)
            yield environment

    def has(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot can still be restored. The number of snapshots that are retained is bounded."""
        return snapshot.id in self._pages

    def drop(self, snapshot: Snapshot) -> None:
        """Drop a snapshot that will not be restored again."""
        self._pages.drop(snapshot.id)
