"""Browser environments that fork: Chromium and the services it needs in one sandbox, checkpointed and restored together."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from exact.config import BrowserConfig, SandboxConfig
from exact.environments.base import Fidelity, Snapshot
from exact.environments.browser.environment import Evaluator
from exact.environments.browser.fork import init_process
from exact.environments.browser.fork.browser import ConnectionState, ForkedBrowser, binary, command, connect
from exact.environments.browser.fork.dial import dialling
from exact.environments.browser.fork.egress import flags
from exact.environments.browser.fork.environment import ForkingEnvironment
from exact.environments.browser.launch.driver import drive
from exact.environments.browser.launch.find import find_browser
from exact.environments.browser.memo import Memo
from exact.environments.browser.network.recording import Tape, tape_of
from exact.environments.browser.page.setup import PageSetup
from exact.environments.browser.shared import Common
from exact.environments.sandbox import Guest, Sandbox, Sandboxes, Service, interpreter, open_sandboxes
from exact.environments.sandbox.application import Application
from exact.environments.sandbox.sandboxes import LIMIT
from exact.environments.sites.accounts import Accounts, Leased
from exact.environments.sites.site import Outside
from exact.environments.sites.states import SiteStates, Standing
from exact.errors import EnvironmentFailure
from exact.scratch import scratch

if TYPE_CHECKING:
    from playwright.async_api import Playwright

_PROXY_PORT = 1
"""Port of the sandbox's loopback at which its browser finds the way out: none that a service has."""


class ForkingFactory:
    """Opens environments of one kind, and branches of their snapshots. Made by `forking`."""

    def __init__(
        self,
        sandboxes: Sandboxes,
        playwright: Playwright,
        artifacts: Path,
        setup: PageSetup,
        config: BrowserConfig,
        *,
        services: Sequence[Service],
        application: Application,
        outside: Outside | None,
        tape: Tape | None,
        evaluator: Evaluator | None,
        idle: float,
    ) -> None:
        self._sandboxes, self._playwright, self._artifacts = sandboxes, playwright, artifacts
        self.setup, self.config, self.services, self.evaluator = setup, config, tuple(services), evaluator
        self._application = application
        self.outside, self.idle, self.common = outside, idle, Common.of(config)
        self.states = SiteStates(outside.site) if outside and outside.site else None
        self.accounts: Accounts | None = None
        if outside and outside.accounts:
            self.accounts = Accounts(outside.accounts, os.environ, shared=outside.site is not None)
        self._tape = tape or tape_of(config.recording)
        self._memos: dict[str, Memo] = {}
        self._connections: dict[str, ConnectionState] = {}
        self._origin = ""
        """Image of an environment that is ready and has seen nothing."""
        self._first = asyncio.Lock()

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[ForkingEnvironment]:
        """A fresh environment, ended on leaving."""
        async with self._logged_in() as login, self._around(self.fresh, simulation, login) as environment:
            yield environment

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[ForkingEnvironment]:
        """Another environment that stands at a snapshot, whichever environment took it. Raises EnvironmentFailure if it is gone."""
        memo = self.memo(snapshot)
        make = partial(self.fork_browser, snapshot.id)
        async with self._logged_in(memo.account) as login, self._around(make, simulation, login) as environment:
            await environment.take_up(memo)
            yield environment

    @property
    def isolated(self) -> bool:
        """Whether all that is done in these environments is undone: there is no outside, or a site that can be kept and brought back."""
        return self.outside is None or self.states is not None

    @property
    def stateless(self) -> bool:
        """Whether no server of these environments keeps anything."""
        return self.outside is None and all(service.stateless for service in self.services)

    @property
    def bytes(self) -> int:
        """Of all images kept, that of the environment which has seen nothing included."""
        return self._sandboxes.images.bytes

    def has(self, snapshot: Snapshot) -> bool:
        """Whether it can still be restored: images are bounded by bytes."""
        return snapshot.id in self._sandboxes.images

    def drop(self, snapshot: Snapshot) -> None:
        """Nobody will come back to it."""
        self._forget(snapshot.id)
        self._sandboxes.images.drop(snapshot.id)

    async def fresh(self) -> ForkedBrowser:
        """A browser that has seen nothing, in an environment of its own. Raises EnvironmentFailure."""
        async with self._first:
            if not self._origin:
                return await self._begin()
        return await self.fork_browser(self._origin)

    async def fork_browser(self, id: str) -> ForkedBrowser:
        """A browser in a new branch of an image, also if it is dropped meanwhile. Raises EnvironmentFailure."""
        if (connection := self._connections.get(id)) is None:
            raise EnvironmentFailure(f"snapshot {id} was dropped: return by another route")
        async with self._sandboxes.branch(id) as sandbox:
            try:
                return await self._connect(sandbox, connection)
            except BaseException:
                await self._sandboxes.end(sandbox)
                raise

    async def keep(self, browser: ForkedBrowser, memo: Memo, fidelity: Fidelity, standing: Standing) -> Snapshot:
        """Take a snapshot of a browser's environment and, with it, of what it has of a site outside; both go on. Raises
        EnvironmentFailure."""
        await browser.relay.hold()
        try:
            if self.states:
                memo = replace(memo, site=await self.states.keep(standing))
            connection = browser.connection
            image = await self._sandboxes.checkpoint(browser.relay.sandbox)
        finally:
            await browser.relay.release()
        for id in [id for id in self._memos if id not in self._sandboxes.images]:
            self._forget(id)
        self._memos[image.id], self._connections[image.id] = memo, connection
        return Snapshot(id=image.id, fidelity=fidelity, fingerprint=memo.fingerprint)

    def _forget(self, id: str) -> None:
        self._connections.pop(id, None)
        memo = self._memos.pop(id, None)
        if memo and memo.site and self.states:
            self.states.drop(memo.site)

    def memo(self, snapshot: Snapshot) -> Memo:
        """What is to be known about a snapshot besides its image. Raises EnvironmentFailure if it is not one of these environments."""
        if snapshot.id not in self._memos:
            raise EnvironmentFailure(f"snapshot {snapshot.id} is not of these environments, or was dropped: return by another route")
        return self._memos[snapshot.id]

    async def end(self, browser: ForkedBrowser) -> None:
        """Let a browser go with its environment. Never raises."""
        try:
            await browser.close()
        finally:
            await self._sandboxes.end(browser.relay.sandbox)

    @asynccontextmanager
    async def _logged_in(self, name: str = "") -> AsyncIterator[Leased | None]:
        """A log-in while the block runs, that one or any; None where there are none."""
        if self.accounts is None:
            yield None
            return
        leased = Leased(self.accounts, self.accounts.take(name) if name else await self.accounts.lease())
        try:
            yield leased
        finally:
            leased.close()

    @asynccontextmanager
    async def _around(
        self, make: Callable[[], Awaitable[ForkedBrowser]], simulation: bool, login: Leased | None
    ) -> AsyncIterator[ForkingEnvironment]:
        environment = ForkingEnvironment(self, await make(), simulation=simulation, login=login)
        try:
            yield environment
        finally:
            await environment.close()

    async def _begin(self) -> ForkedBrowser:
        """The first environment, of which an image is kept before anything is done in it."""
        sandbox = await self._sandboxes.start(self._guest())
        try:
            browser = await self._connect(sandbox, None)
            await browser.relay.hold()
            connection = browser.connection
            self._origin = (await self._sandboxes.checkpoint(sandbox, pinned=True)).id
            self._connections[self._origin] = connection
            await browser.relay.release()
        except BaseException:
            await self._sandboxes.end(sandbox)
            raise
        return browser

    async def _connect(self, sandbox: Sandbox, connection: ConnectionState | None) -> ForkedBrowser:
        return await connect(
            self._playwright,
            sandbox,
            self._artifacts,
            connection=connection,
            hosts=self.outside.hosts if self.outside else None,
            tape=self._tape,
            dial=dialling(self.config.proxy),
        )

    def _guest(self) -> Guest:
        executable, python, place = binary(find_browser().resolve()), interpreter(), self._application
        way_out = flags(self.outside, self._inner(), _PROXY_PORT) if self.outside else ("--no-proxy-server",)
        spec = {
            "services": [{**msgspec.to_builtins(each), **place.service(), "env": {**place.env, **each.env}} for each in self.services],
            "browser": command(str(executable), self.config, self.setup.hosts, way_out),
            "proxy_port": _PROXY_PORT if self.outside else 0,
        }
        reads = (Path(init_process.__file__), executable.parent, python.parents[1], Path(sys.prefix), Path(sys.base_prefix))
        return Guest(
            args=(str(python), "-I", "-S", init_process.__file__, json.dumps(spec)),
            env={"TZ": "UTC", "LANG": "C.UTF-8"},
            reads=(*reads, *(Path(path) for service in self.services for path in service.reads)),
            programs=(executable,),
            beside=place.root,
            mounts=place.mounts,
            capable=not place.plain,
        )

    def _inner(self) -> tuple[str, ...]:
        """Hosts to which no way leads out: loopback is the sandbox's own where it has services, else the host's."""
        return tuple(self.setup.hosts) if self.services else (*self.setup.hosts, "<-loopback>")


@asynccontextmanager
async def forking(
    config: BrowserConfig,
    setup: PageSetup,
    *,
    services: Sequence[Service] = (),
    application: SandboxConfig | None = None,
    outside: Outside | None = None,
    tape: Tape | None = None,
    evaluator: Evaluator | None = None,
    limit: int = LIMIT,
    idle: float = 5.0,
) -> AsyncIterator[ForkingFactory]:
    """Environments that fork, while the block runs.

    `application`: what the services run in, where that is not this machine's files. The browser stays outside of it.
    `outside`: a way to sites that are not in the sandbox. Without hooks for one of them they keep what is done to them: the environments
    are not isolated then, and their snapshots are of the client. `tape`: where its answers are recorded, or replayed from.
    `limit`: bytes of snapshots kept. `idle`: seconds after which an environment that nobody uses is paused.
    Raises EnvironmentFailure where there is no usable runsc or no browser.
    """
    place = Application.of(application or SandboxConfig())
    with scratch("artifacts") as artifacts:
        async with open_sandboxes(limit=limit) as sandboxes, drive() as playwright:
            environments = ForkingFactory(
                sandboxes, playwright, artifacts, setup, config,
                services=services, application=place, outside=outside, tape=tape, evaluator=evaluator, idle=idle,
            )  # fmt: skip
            try:
                yield environments
            finally:
                if environments.states:
                    await environments.states.close()
