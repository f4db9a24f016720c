"""Browser environments of one kind, all in one browser."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from exact.config import BrowserConfig
from exact.environments.base import Snapshot
from exact.environments.browser.environment import Evaluator
from exact.environments.browser.launch.launch import Browser
from exact.environments.browser.page.setup import PageSetup
from exact.environments.browser.shared import SharedState
from exact.environments.browser.snapshot.environment import PageEnvironment
from exact.environments.browser.snapshot.state import PageSnapshots
from exact.environments.sites.accounts import AccountLease, Accounts
from exact.environments.sites.site import Outside


class BrowserFactory:
    """Opens browser environments; any number at once, each in a context of its own."""

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
        """`isolated`: whether a reset undoes all that a step may do. `evaluator` gives the verdict on the last page. `outside`: whose
        accounts are leased, one for each environment, and whose site is reset for the environment that acts for good."""
        self._browser, self._setup, self._config = browser, setup, config
        self._isolated, self._evaluator = isolated, evaluator
        self._shared, self._pages = SharedState.of(config), PageSnapshots()
        self._accounts = Accounts(outside.accounts, os.environ) if outside and outside.accounts else None
        self._site = outside.site if outside else None

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[PageEnvironment]:
        """A fresh environment, closed on leaving."""
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
        """Another environment, brought to a page that any environment of these environments took a snapshot of; compare the fingerprints.

        Raises EnvironmentFailure if it is gone.
        """
        async with self.open(simulation=simulation) as environment:
            await environment.restore(snapshot)
            yield environment

    def has(self, snapshot: Snapshot) -> bool:
        """Whether it can still be restored: the number of snapshots kept is bounded."""
        return snapshot.id in self._pages

    def drop(self, snapshot: Snapshot) -> None:
        """Nobody will come back to it."""
        self._pages.drop(snapshot.id)
