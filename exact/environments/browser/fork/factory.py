"""A factory of browser environments that fork: Chromium and its services run in one sandbox and are checkpointed together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from exact.config import BrowserConfig, SandboxConfig
from exact.environments.base import Fidelity, Snapshot
from exact.environments.browser.fork.browser import ForkedBrowser
from exact.environments.browser.fork.store import ForkStore
from exact.environments.browser.launch.driver import start_driver
from exact.environments.browser.network.recording import Recording
from exact.environments.browser.page.setup import PageSetup
from exact.environments.sandbox.application import SandboxApplication
from exact.environments.sandbox.sandboxes import LIMIT, open_sandboxes
from exact.environments.sandbox.service import Service
from exact.environments.sites.accounts import AccountLease, Accounts
from exact.environments.sites.site import Outside
from exact.environments.sites.states import SiteClient, SiteStates
from exact.errors import EnvironmentFailure
from exact.machine import scratch
from exact.observation import Observation
from exact.origins import origins

if TYPE_CHECKING:  # imported while the driver starts
    from exact.environments.browser.environment import BrowserEnvironment, Evaluator
    from exact.environments.browser.snapshot.state import Memo
    from exact.environments.browser.tabs import Tabs


class ForkingFactory:
    """Opens environments of one kind, and forks of their snapshots. Made by `forking`."""

    def __init__(self, store: ForkStore, evaluator: Evaluator | None) -> None:
        from exact.environments.browser.shared import SharedState

        self.store = store
        self._evaluator, self._shared = evaluator, SharedState.of(store.config, store.outside)
        self._accounts: Accounts | None = None
        outside = store.outside
        if outside and outside.accounts:
            self._accounts = Accounts(outside.accounts, os.environ, shared=store.states is not None)

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[BrowserEnvironment]:
        """Open a fresh environment, which is closed on leaving."""
        async with self._leased() as login, self._opened(self.store.fresh, simulation, login) as environment:
            yield environment

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[BrowserEnvironment]:
        """Open another environment at a snapshot that any environment took. Raises EnvironmentFailure if it is gone."""
        memo = self.store.memo(snapshot)
        make = partial(self.store.fork_browser, snapshot.id)
        async with self._leased(memo.account) as login, self._opened(make, simulation, login, is_fork=True) as environment:
            await environment.resume(memo)
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
        self, make: Callable[[], Awaitable[ForkedBrowser]], simulation: bool, login: AccountLease | None, *, is_fork: bool = False
    ) -> AsyncIterator[BrowserEnvironment]:
        from exact.environments.browser.environment import BrowserEnvironment
        from exact.environments.browser.episode import BrowserEpisode

        store, outside = self.store, self.store.outside
        backend = ForkedBackend(store, await make(), simulation=simulation, is_fork=is_fork)
        site = outside.site if outside and not (store.states or simulation) else None  # a site whose states are retained begins otherwise
        episode = BrowserEpisode(backend, store.setup, store.config, simulation=simulation, shared=self._shared, account=login, site=site)
        environment = BrowserEnvironment(episode, self._evaluator)
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


class ForkedBackend:
    """A browser in a separate sandbox, which is checkpointed and forked as a whole. Made by ForkingFactory."""

    def __init__(self, store: ForkStore, browser: ForkedBrowser, *, simulation: bool, is_fork: bool) -> None:
        """Take a browser of a store's. `is_fork`: whether it has had an episode before it was forked."""
        self.browser, self.isolated, self._store, self._states = browser, store.isolated, store, store.states
        base = store.outside.site.base if store.outside and store.outside.site else ""
        self._client = SiteClient(self._pause, base, live=not simulation)
        self._used = self._is_fork = is_fork
        """Whether the browser has had an episode, here or before it was forked; and whether it was forked then."""

    @property
    def pid(self) -> int:
        """Process id of the sandbox."""
        return self.browser.relay.sandbox.pid

    @property
    def undone_origins(self) -> tuple[str, ...] | None:
        """Origins of the site whose states are retained."""
        return origins(self._states.site.base) if self._states else None

    @property
    def keeps_context(self) -> bool:
        """Return whether a context may be emptied: servers keep no state, and all its pages were opened here."""
        return self._store.stateless and not self._is_fork

    def is_inside(self, url: str) -> bool:
        """Return whether an address is answered in the sandbox."""
        return self._store.is_inside(url)

    def fidelity(self, config: BrowserConfig) -> Fidelity:
        """Return the state that a restore recovers."""
        return "full" if self.isolated else "client"

    def obstacle(self, tabs: Tabs) -> str:
        """Return the reason why no snapshot can be taken now; empty if there is none."""
        return "a request waits to be answered" if self.browser.interceptor.busy else ""

    def severed(self, tabs: Tabs) -> str:
        """Return the connections that a fork of the present state would find cut off, so that its fidelity is `page`; empty without any."""
        if sockets := self.browser.relay.egress.sockets:
            return f"{sockets} WebSocket{'s' * (sockets > 1)} to the outside"
        if self._store.outside and any(tab.traffic.streaming for tab in tabs.window.tabs):
            return "a response that still comes in"
        return ""

    @asynccontextmanager
    async def call(self, what: str) -> AsyncIterator[None]:
        """Wake the sandbox for a call and let it be paused when idle. A shared site is in this environment's state meanwhile."""
        try:
            async with self._states.turn(self._client) if self._states else nullcontext():
                await self.browser.idle.wake()
                yield
        except EnvironmentFailure as error:
            if lost := await self.browser.relay.loss():
                raise EnvironmentFailure(f"{what}: {lost}") from error
            raise
        finally:
            self.browser.idle.pause_after(self._store.idle)

    async def renew(self) -> None:
        """Replace the sandbox by a fresh one, unless it has not been used. Bring the site outside to its start."""
        if self._used:
            await self._replace(self._store.fresh)
        self._used, self._is_fork = True, False
        if self._states:
            await self._states.begin(self._client)
            self._move_site(self._states)

    async def take(self, tabs: Tabs, seen: Observation, memo: Memo) -> Snapshot:
        """Checkpoint the sandbox, and the site outside if it has hooks. Both continue."""
        severed = self.severed(tabs)
        fidelity: Fidelity = "page" if severed else self.fidelity(tabs.config)
        await self._collect_garbage(tabs)
        with tabs.timeouts.unlimited():
            snapshot = await self._store.take(self.browser, memo, fidelity, self._client)
        return msgspec.structs.replace(snapshot, severed=severed)

    def memo(self, snapshot: Snapshot) -> Memo:
        """Return the facts about a snapshot besides its image. Raises EnvironmentFailure if it is gone."""
        return self._store.memo(snapshot)

    async def restore(self, snapshot: Snapshot) -> None:
        """Replace the sandbox by a new fork of a snapshot. Raises EnvironmentFailure."""
        self._used = self._is_fork = True
        await self._replace(lambda: self._store.fork_browser(snapshot.id))

    async def resume(self, memo: Memo) -> None:
        """Bring the site outside into the state that was saved with a snapshot."""
        if self._states:
            await (self._states.restore(self._client, memo.site) if memo.site else self._states.begin(self._client))
            self._move_site(self._states)

    async def close(self) -> None:
        """End the sandbox, and the share of the site outside. Each is done even if the other is cancelled."""
        try:
            await self._store.end(self.browser)
        finally:
            if self._states:
                await self._states.leave(self._client)

    async def _pause(self) -> None:
        with suppress(EnvironmentFailure):  # a sandbox that is gone does nothing
            await self.browser.relay.sandbox.pause()

    async def _collect_garbage(self, tabs: Tabs) -> None:
        """Free the memory of pages that were left. Otherwise each snapshot is 1.5 MB larger than the one before and slower to restore."""
        await asyncio.gather(*(tab.cdp.send("HeapProfiler.collectGarbage") for tab in tabs.window.tabs))

    async def _replace(self, make: Callable[[], Awaitable[ForkedBrowser]]) -> None:
        """End the sandbox, whose context was left, and get a browser in another one."""
        await self._store.end(self.browser)
        self.browser = await make()

    def _move_site(self, states: SiteStates) -> None:
        """Send connections to the site to the instance of this environment, if it has one."""
        if states.forks:
            self.browser.relay.egress.destinations.move(states.site.base, self._client.base)
