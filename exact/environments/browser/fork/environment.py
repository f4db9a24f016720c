"""A browser environment whose whole environment, server and client, can be kept and returned to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

import msgspec

from exact.environments.base import Capabilities, Fidelity, Snapshot
from exact.environments.browser.environment import BrowserEnvironment
from exact.environments.browser.fork.browser import ForkedBrowser
from exact.environments.browser.memo import Memo, OpenTab
from exact.environments.browser.network.interceptor import Ward
from exact.environments.browser.page.clock import START
from exact.environments.browser.page.tab import Tab
from exact.environments.process.cpu import processor_seconds
from exact.environments.sites.accounts import Leased
from exact.environments.sites.states import Standing
from exact.errors import EnvironmentFailure
from exact.observation import Observation
from exact.safety import origins
from exact.task import Task

if TYPE_CHECKING:
    from exact.environments.browser.fork.factory import ForkingFactory


class ForkingEnvironment(BrowserEnvironment):
    """One branch. Made by ForkingFactory."""

    _browser: ForkedBrowser

    def __init__(self, environments: ForkingFactory, browser: ForkedBrowser, *, simulation: bool, login: Leased | None = None) -> None:
        super().__init__(
            browser,
            environments.setup,
            environments.config,
            isolated=environments.isolated,
            simulation=simulation,
            evaluator=environments.evaluator,
            common=environments.common,
            login=login,
        )
        self._environments, self._states = environments, environments.states
        self._standing = Standing(
            self._still, environments.outside.site.base if environments.outside and environments.outside.site else "", live=not simulation
        )
        self._entered = False
        """Whether an episode was begun in this branch's browser, or before it branched off."""
        self._is_fork = False

    @property
    def capabilities(self) -> Capabilities:
        return msgspec.structs.replace(super().capabilities, fidelity="full" if self._isolated else "client")

    @property
    def observation(self) -> Observation:
        """The last one: of a branch that was just made, how it arrived. Raises EnvironmentFailure before the first."""
        if self._seen is None:
            raise EnvironmentFailure("nothing was observed yet: reset first")
        return self._seen

    @property
    def pid(self) -> int:
        """Of the sandbox's process."""
        return self._browser.relay.sandbox.pid

    @property
    def processor(self) -> float:
        """Processor seconds that this branch has taken."""
        return processor_seconds(self.pid)

    @property
    def paused(self) -> bool:
        """Whether its processes are stopped."""
        return self._browser.relay.sandbox.paused

    @property
    def address(self) -> str:
        """The WebSocket at which the browser is driven; secret."""
        return self._browser.relay.address

    @property
    def obstacle(self) -> str:
        """What stands in the way of a snapshot now: it is taken only of an environment in which nothing is under way. Empty if nothing
        does."""
        if found := self._obstacle:
            return found
        if self._browser.guard.busy:
            return "a request is held back"
        return ""

    async def snapshot(self) -> Snapshot:
        """The present state; the environment goes on. Raises EnvironmentFailure where there is an obstacle, and then nothing is lost."""
        if self.obstacle:
            raise EnvironmentFailure(f"no snapshot now: {self.obstacle}")
        async with self._environment("snapshot"):
            severed = self.severed
            fidelity: Fidelity = "page" if severed else self.capabilities.fidelity
            memo = self._memo()
            await self._collect_garbage()
            with self._patience.unlimited():
                snapshot = await self._environments.keep(self._browser, memo, fidelity, self._standing)
            return msgspec.structs.replace(snapshot, severed=severed)

    async def _collect_garbage(self) -> None:
        """Of pages that were left: else each snapshot is 1.5 MB larger than the one before, and slower to come back to."""
        await asyncio.gather(*(tab.cdp.send("HeapProfiler.collectGarbage") for tab in self._window.tabs))

    @property
    def severed(self) -> str:
        """What a branch of the present state would find cut off, so that its snapshot counts as `page`. Empty if nothing."""
        if sockets := self._browser.relay.egress.sockets:
            return f"{sockets} WebSocket{'s' * (sockets > 1)} to the outside"
        if self._environments.outside and any(tab.traffic.streaming for tab in self._window.tabs):
            return "a response that still comes in"
        return ""

    def _ward_of(self, task: Task) -> Ward:
        ward = super()._ward_of(task)
        self._admit_egress(ward)
        return ward

    def _admit_egress(self, ward: Ward) -> None:
        if self._environments.outside:
            self._browser.relay.egress.admit(ward.allowed, sockets=ward.writable)

    @property
    def _undone(self) -> tuple[str, ...] | None:
        return origins(self._states.site.base) if self._states else None

    async def _still(self) -> None:
        with suppress(EnvironmentFailure):  # it is gone, and says nothing any more
            await self._browser.relay.sandbox.pause()

    async def _arrive(self, name: str = "") -> None:
        """Bring the site outside to where this branch goes: to what was kept under a name, else to the start."""
        if self._states:
            with self._patience.unlimited():
                await (self._states.arrive(self._standing, name) if name else self._states.begin(self._standing))
            if self._states.forks:
                self._browser.relay.egress.move(self._states.site.base, self._standing.base)

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Leave this branch for a new one of a snapshot, whichever environment of these environments took it. Raises EnvironmentFailure."""
        memo = self._environments.memo(snapshot)
        if self._login:
            self._login.change(memo.account)
        await self._exchange(lambda: self._environments.fork_browser(snapshot.id))
        return await self.take_up(memo)

    async def take_up(self, memo: Memo) -> Observation:
        """Go on in a browser that was just restored: all that lived in the old connection is put back before the first command."""
        async with self._environment("restore"):
            self._entered = self._is_fork = True
            self._patience.broken, self._task = "", memo.task
            self._observer.ids, self._observer.instruction = memo.ids.copy(), memo.instruction
            self._observer.mask_for(memo.task)
            self._context_id, self._ward = self._browser.context_id, super()._ward_of(memo.task)
            self._begin_episode(memo.task, memo.downloads)
            self._browser.guard.admit(self._context_id, self._ward)
            self._browser.guard.hold()
            _, pages = await asyncio.gather(self._connect(memo.now), self._pages())
            await self._take_up_all(memo, pages)
            _, observation, self._terminated = await self._look(run=False, expected=memo.fingerprint)
        self._ward.take()
        if self._terminated:
            raise EnvironmentFailure(f"{memo.task.id} is over after the restore: return by another route")
        return observation

    async def close(self) -> None:
        async with AsyncExitStack() as stack:  # each is done though it be cancelled in the middle of another
            if self._states:
                stack.push_async_callback(self._states.leave, self._standing)
            stack.push_async_callback(self._environments.end, self._browser)
            await super().close()

    @asynccontextmanager
    async def _environment(self, what: str) -> AsyncIterator[None]:
        """Awake while something is asked of it, paused when nothing was for a while. A site that branches share is in its state."""
        try:
            async with self._states.turn(self._standing) if self._states else nullcontext():
                await self._browser.idle.rouse()
                async with super()._environment(what):
                    yield
        except EnvironmentFailure as error:
            if lost := await self._browser.relay.loss():
                raise EnvironmentFailure(f"{what}: {lost}") from error
            raise
        finally:
            self._browser.idle.rest(self._environments.idle)

    async def _enter(self, now: int = START) -> None:
        """In an environment that has seen nothing."""
        if self._entered:
            with self._patience.unlimited():
                await self._exchange(self._environments.fresh)
        self._entered, self._is_fork = True, False
        await super()._enter(now)
        if self._environments.outside:
            await self._arrive()

    async def _renew(self) -> bool:
        """Emptying the context does for servers that keep nothing, and pages whose past is known."""
        return self._environments.stateless and not self._is_fork and await super()._renew()

    async def _exchange(self, make: Callable[[], Awaitable[ForkedBrowser]]) -> None:
        """Let the present environment go, then get another."""
        await self._leave()
        await self._environments.end(self._browser)
        self._browser = await make()

    def _memo(self) -> Memo:
        assert self._task is not None and self._seen is not None
        tabs = [OpenTab(tab.target.id, tab.index, tab.traffic.documents) for tab in self._window.tabs]
        return Memo(
            self._task,
            self._seen.fingerprint,
            self._observer.instruction,
            self._observer.ids.copy(),
            self._window.opened,
            tuple(tabs),
            self._clock.now if self._clock else 0,
            downloads=self._downloads.kept,
            account=self._who,
        )

    async def _pages(self) -> dict[str, Tab]:
        """Those of a browser that was just restored, by their targets."""
        watched = await asyncio.gather(*map(self._watch, self._browser.context.pages))
        return {target.id: tab for tab, target in watched}

    async def _take_up_all(self, memo: Memo, pages: Mapping[str, Tab]) -> None:
        """The pages that were open, in their order, with their numbers."""
        for target in pages:
            self._ward.forget(target)  # no popup
        if self._environments.outside:
            await self._arrive(memo.site)
            self._admit_egress(self._ward)
        self._browser.guard.go()
        for kept in memo.tabs:
            if kept.target not in pages:
                raise EnvironmentFailure("restore: a page is missing: return by another route")
            tab = pages[kept.target]
            tab.index, tab.traffic.documents = kept.index, kept.documents
            self._window.add(tab)
        self._window.opened = memo.opened
