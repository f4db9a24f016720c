"""A factory of browser environments that fork: Chromium and its services run in one sandbox and are checkpointed together."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from exact.config import BrowserConfig, SandboxConfig
from exact.environments.base import Snapshot
from exact.environments.browser.environment import Evaluator
from exact.environments.browser.fork.browser import ForkedBrowser
from exact.environments.browser.fork.environment import ForkingEnvironment
from exact.environments.browser.fork.store import ForkStore
from exact.environments.browser.launch.driver import start_driver
from exact.environments.browser.network.recording import Recording
from exact.environments.browser.page.setup import PageSetup
from exact.environments.browser.shared import SharedState
from exact.environments.sandbox.application import SandboxApplication
from exact.environments.sandbox.sandboxes import LIMIT, open_sandboxes
from exact.environments.sandbox.service import Service
from exact.environments.sites.accounts import AccountLease, Accounts
from exact.environments.sites.site import Outside
from exact.machine import scratch


class ForkingFactory:
    """Opens environments of one kind, and forks of their snapshots. Made by `forking`."""

    def __init__(self, store: ForkStore, evaluator: Evaluator | None) -> None:
        self.store = store
        self._evaluator, self._shared = evaluator, SharedState.of(store.config, store.outside)
        self._accounts: Accounts | None = None
        outside = store.outside
        if outside and outside.accounts:
            self._accounts = Accounts(outside.accounts, os.environ, shared=store.states is not None)

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[ForkingEnvironment]:
        """Open a fresh environment, which is closed on leaving."""
        async with self._leased() as login, self._opened(self.store.fresh, simulation, login) as environment:
            yield environment

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[ForkingEnvironment]:
        """Open another environment at a snapshot that any environment took. Raises EnvironmentFailure if it is gone."""
        memo = self.store.memo(snapshot)
        make = partial(self.store.fork_browser, snapshot.id)
        async with self._leased(memo.account) as login, self._opened(make, simulation, login) as environment:
            await environment.take_over(memo)
            yield environment

    @property
    def isolated(self) -> bool:
        """Guarantee that every side effect of an environment is undone."""
        return self.store.isolated

    @property
    def bytes(self) -> int:
        """Size of all snapshots' images."""
        return self.store.bytes

    def has(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot can still be restored. Images are dropped if their size exceeds the limit."""
        return self.store.has(snapshot)

    def drop(self, snapshot: Snapshot) -> None:
        """Drop a snapshot that will not be restored again."""
        self.store.drop(snapshot)

    @asynccontextmanager
    async def _leased(self, name: str = "") -> AsyncIterator[AccountLease | None]:
        """Lease an account while the block runs: the one of that name, or any. None without accounts."""
        if self._accounts is None:
            yield None
            return
        leased = AccountLease(self._accounts, self._accounts.take(name) if name else await self._accounts.lease())
        try:
            yield leased
        finally:
            leased.close()

    @asynccontextmanager
    async def _opened(
        self, make: Callable[[], Awaitable[ForkedBrowser]], simulation: bool, login: AccountLease | None
    ) -> AsyncIterator[ForkingEnvironment]:
        environment = ForkingEnvironment(
            self.store, await make(), simulation=simulation, evaluator=self._evaluator, shared=self._shared, login=login
        )
        try:
            yield environment
        finally:
            await environment.close()


@asynccontextmanager
async def forking(
    config: BrowserConfig,
    setup: PageSetup,
    *,
    services: Sequence[Service] = (),
    application: SandboxConfig | None = None,
    outside: Outside | None = None,
    recording: Recording | None = None,
    evaluator: Evaluator | None = None,
    limit: int = LIMIT,
    idle: float = 5.0,
    warn: Callable[[str], None] = lambda text: None,
) -> AsyncIterator[ForkingFactory]:
    """Open a factory of environments that fork, while the block runs.

    `application`: the file system of the services, if it is not this machine's. The browser stays outside of it.
    `outside`: the way to sites that are not in the sandbox. Without hooks for such a site it keeps its changes: the environments are not
    isolated then, and their snapshots are of the client. `recording`: file of its recorded or replayed answers. `limit`: bytes of snapshots
    that are retained. `idle`: seconds after which an environment that is not used is paused. `warn` is called with facts that a user should
    know.
    Raises EnvironmentFailure without a usable runsc or a browser.
    """
    place = SandboxApplication.from_config(application or SandboxConfig())
    with scratch("artifacts") as artifacts:
        async with open_sandboxes(limit=limit) as sandboxes, start_driver() as playwright:
            store = ForkStore(
                sandboxes, playwright, artifacts, setup, config,
                services=services, application=place, outside=outside, recording=recording, idle=idle, warn=warn,
            )  # fmt: skip
            try:
                yield ForkingFactory(store, evaluator)
            finally:
                if store.states:
                    await store.states.close()
