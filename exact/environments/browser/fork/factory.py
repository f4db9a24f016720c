"""A factory of browser environments that fork: Chromium and its services run in one sandbox and are checkpointed together.

A browser environment whose whole state, server and client, is snapshotted and restored.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from functools import partial

import msgspec

from exact.config import BrowserConfig, SandboxConfig
from exact.environments.base import Capabilities, Fidelity, Snapshot
from exact.environments.browser.environment import BrowserEnvironment, Evaluator
from exact.environments.browser.fork.browser import ForkedBrowser
from exact.environments.browser.fork.store import ForkStore
from exact.environments.browser.interaction import Observed
from exact.environments.browser.launch.driver import start_driver
from exact.environments.browser.network.gate import Gate
from exact.environments.browser.network.recording import Recording
from exact.environments.browser.page.setup import PageSetup
from exact.environments.browser.page.tab import Tab
from exact.environments.browser.shared import Memo, SharedState
from exact.environments.process.process import processor_seconds
from exact.environments.sandbox.application import SandboxApplication
from exact.environments.sandbox.sandboxes import LIMIT, open_sandboxes
from exact.environments.sandbox.service import Service
from exact.environments.sites.accounts import AccountLease, Accounts
from exact.environments.sites.lease import reset_is_due
from exact.environments.sites.site import Outside
from exact.environments.sites.states import SiteClient
from exact.errors import EnvironmentFailure
from exact.machine import scratch
from exact.observation import Observation
from exact.origins import origins


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


class ForkingEnvironment(BrowserEnvironment):
    """An environment in a separate sandbox, fresh or forked from a snapshot. Made by ForkingFactory."""

    def __init__(
        self,
        store: ForkStore,
        browser: ForkedBrowser,
        *,
        simulation: bool,
        evaluator: Evaluator | None,
        shared: SharedState,
        login: AccountLease | None = None,
    ) -> None:
        super().__init__(
            browser,
            store.setup,
            store.config,
            isolated=store.isolated,
            simulation=simulation,
            evaluator=evaluator,
            shared=shared,
            login=login,
        )
        self._browser, self._store, self._states = browser, store, store.states
        base = store.outside.site.base if store.outside and store.outside.site else ""
        self._standing = SiteClient(self._pause, base, live=not simulation)
        self._used = False
        """Whether the browser has had an episode, here or before it was forked."""
        self._is_fork = False

    @property
    def capabilities(self) -> Capabilities:
        return msgspec.structs.replace(super().capabilities, fidelity="full" if self._store.isolated else "client")

    @property
    def pid(self) -> int:
        """Process id of the sandbox."""
        return self._browser.relay.sandbox.pid

    @property
    def processor(self) -> float:
        """Processor seconds that the sandbox has used."""
        return processor_seconds(self.pid)

    @property
    def paused(self) -> bool:
        """Pause state of the sandbox: True while its processes are paused."""
        return self._browser.relay.sandbox.paused

    @property
    def address(self) -> str:
        """WebSocket address at which the browser is driven. It is a secret."""
        return self._browser.relay.address

    @property
    def obstacle(self) -> str:
        """The reason why no snapshot can be taken now: something is under way in the environment. Empty if there is none."""
        if found := super().obstacle:
            return found
        return "a request waits to be answered" if self._browser.interceptor.busy else ""

    @property
    def severed(self) -> str:
        """The connections that a fork of the present state would find cut off, so that its fidelity is `page`. Empty if there are none."""
        if sockets := self._browser.relay.egress.sockets:
            return f"{sockets} WebSocket{'s' * (sockets > 1)} to the outside"
        if self._store.outside and any(tab.traffic.streaming for tab in self.tabs.window.tabs):
            return "a response that still comes in"
        return ""

    async def take_snapshot(self) -> Snapshot:
        """Checkpoint the sandbox, and the site outside if it has hooks. Both continue."""
        severed = self.severed
        fidelity: Fidelity = "page" if severed else self.capabilities.fidelity
        memo = self.episode.memo()
        await self._collect_garbage()
        with self.tabs.timeouts.unlimited():
            snapshot = await self._store.take(self._browser, memo, fidelity, self._standing)
        return msgspec.structs.replace(snapshot, severed=severed)

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Replace the sandbox by a new fork of a snapshot that any environment took. Raises EnvironmentFailure if it is gone."""
        memo = self._store.memo(snapshot)
        if self.episode.account:
            self.episode.account.change(memo.account)
        await self.leave()
        await self._replace_browser(lambda: self._store.fork_browser(snapshot.id))
        return await self.take_over(memo)

    async def take_over(self, memo: Memo) -> Observation:
        """Resume the episode of a browser that was just forked, and observe it. Raises EnvironmentFailure."""
        return await self.resume(memo.task, lambda: self._reconnect(memo))

    async def close(self) -> None:
        async with AsyncExitStack() as stack:  # each step is taken even if another one is cancelled
            if self._states:
                stack.push_async_callback(self._states.leave, self._standing)
            stack.push_async_callback(self._store.end, self._browser)
            await super().close()

    @property
    def keeps_context(self) -> bool:
        """Return whether a context may be emptied: servers keep no state, and this environment opened all its pages."""
        return self._store.stateless and not self._is_fork

    @property
    def undone_origins(self) -> tuple[str, ...] | None:
        """Origins of the site whose states are retained."""
        return origins(self._states.site.base) if self._states else None

    def is_inside(self, url: str) -> bool:
        """Return whether requests to an address are answered in the sandbox."""
        return self._store.is_inside(url)

    async def before_episode(self) -> None:
        """Reset a site whose states are not retained, for the live environment, if that is due."""
        site = self._store.outside.site if self._store.outside else None
        if site and not self._states and not self.episode.simulation and reset_is_due(site):
            with self.tabs.timeouts.unlimited():
                await site.reset.call("reset", base=site.base)

    async def before_context(self) -> None:
        """Replace the sandbox by a fresh one, unless it has not been used."""
        if self._used:
            with self.tabs.timeouts.unlimited():
                await self._replace_browser(self._store.fresh)
        self._used, self._is_fork = True, False

    async def after_context(self) -> None:
        """Bring the site outside to its start."""
        if self._store.outside:
            await self._move_site()

    def policy_changed(self, policy: Gate) -> None:
        """Let the sandbox connect to the origins that the policy allows."""
        if self._store.outside:
            self._browser.relay.egress.admit(policy.rules.allowed, sockets=policy.socket_origins)
            self._browser.relay.egress.listener = policy

    @asynccontextmanager
    async def around_call(self, what: str) -> AsyncIterator[None]:
        """Wake the sandbox for a call and let it be paused when idle. A shared site is in this environment's state meanwhile."""
        try:
            async with self._states.turn(self._standing) if self._states else nullcontext():
                await self._browser.idle.wake()
                yield
        except EnvironmentFailure as error:
            if lost := await self._browser.relay.loss():
                raise EnvironmentFailure(f"{what}: {lost}") from error
            raise
        finally:
            self._browser.idle.pause_after(self._store.idle)

    async def _pause(self) -> None:
        with suppress(EnvironmentFailure):  # a sandbox that is gone does nothing
            await self._browser.relay.sandbox.pause()

    async def _collect_garbage(self) -> None:
        """Free the memory of pages that were left. Otherwise each snapshot is 1.5 MB larger than the one before and slower to restore."""
        await asyncio.gather(*(tab.cdp.send("HeapProfiler.collectGarbage") for tab in self.tabs.window.tabs))

    async def _replace_browser(self, make: Callable[[], Awaitable[ForkedBrowser]]) -> None:
        """End the sandbox, whose context was left, and get a browser in another one."""
        await self._store.end(self._browser)
        self._browser = self.tabs.browser = await make()

    async def _move_site(self, name: str = "") -> None:
        """Bring the site outside into the state retained under a name, or to its start if the name is empty."""
        if self._states:
            with self.tabs.timeouts.unlimited():
                await (self._states.restore(self._standing, name) if name else self._states.begin(self._standing))
            if self._states.forks:
                self._browser.relay.egress.destinations.move(self._states.site.base, self._standing.base)

    async def _reconnect(self, memo: Memo) -> Observed:
        """Restore the state of the old connection before the first command is sent, then observe."""
        self._used = self._is_fork = True
        interceptor = self._browser.interceptor
        self.episode.resume(memo, self._browser.context_id)
        interceptor.register(self.episode.context_id, self.tabs.policy)
        interceptor.pause()
        _, pages = await asyncio.gather(self.episode.connect(memo.now), self._watch_pages())
        for target in pages:
            self.tabs.policy.forget_popup(target)  # these are not popups
        if self._store.outside:
            await self._move_site(memo.site)
            self.policy_changed(self.tabs.policy)
        interceptor.resume()
        self._restore_tabs(memo, pages)
        return await self.interaction.observe(run=False, expected=memo.fingerprint)

    async def _watch_pages(self) -> dict[str, Tab]:
        """Watch the pages of a browser that was just forked. Return them by the CDP ids of their targets."""
        watched = await asyncio.gather(*map(self.tabs.watch, self._browser.context.pages))
        return {tab.target.id: tab for tab in watched}

    def _restore_tabs(self, memo: Memo, pages: Mapping[str, Tab]) -> None:
        """Make the pages that were open tabs, in their order and with their numbers."""
        for open_tab in memo.tabs:
            if open_tab.target not in pages:
                raise EnvironmentFailure("restore: a page is missing: return by another route")
            tab = pages[open_tab.target]
            tab.index, tab.traffic.documents = open_tab.index, open_tab.documents
            self.tabs.window.add(tab)
        self.tabs.window.opened = memo.opened
