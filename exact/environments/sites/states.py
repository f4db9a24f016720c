"""The states of a site outside that belong to the branches of one kind of environment."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

from exact.environments.sites.site import Hook, Site
from exact.errors import EnvironmentFailure


@dataclass(eq=False)
class SiteClient:
    """What one branch has of the site."""

    still: Callable[[], Awaitable[None]]
    """Stop whatever in this branch might speak to the site."""
    base: str
    """Where it is."""
    live: bool = False
    """Whether what it does is meant to last: it acts in the site itself, which is left in its state."""
    saved: str = ""
    """The name its state was kept under while others have their turn."""
    stands: bool = False
    """Whether it has a state: not before it began or arrived somewhere, nor when that failed."""


class SiteStates:
    """Keeps and brings back a site. Where it forks each branch has an instance; else one branch at a time has its turn."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._mark, self._numbers = secrets.token_hex(4), count(1)
        self._start = ""
        self._first, self._turn = asyncio.Lock(), asyncio.Lock()
        self._holder: SiteClient | None = None
        self._names: set[str] = set()
        self._chores: set[asyncio.Task[None]] = set()

    @property
    def forks(self) -> bool:
        return self.site.fork is not None

    @asynccontextmanager
    async def turn(self, standing: SiteClient) -> AsyncIterator[None]:
        """While the block runs the site is in this branch's state. First come, first served. Raises EnvironmentFailure."""
        if self.forks:
            yield
            return
        async with self._turn:
            if self._holder is not standing:
                await self._change(standing)
            yield

    async def begin(self, standing: SiteClient) -> None:
        """The start of a task. Within a turn. Raises EnvironmentFailure."""
        standing.stands = False
        if self.forks:
            async with self._first:
                if not self._start:
                    await self._call("reset", self.site.reset, base=self.site.base)
                    self._start = await self._keep(self.site.base)
        if self.forks and not standing.live:
            await self._fork(standing, self._start)
        else:
            await self._call("reset", self.site.reset, base=self.site.base)
        standing.stands = True

    async def keep(self, standing: SiteClient) -> str:
        """Keep the branch's state; its name. Within a turn. Raises EnvironmentFailure."""
        return await self._keep(standing.base)

    async def arrive(self, standing: SiteClient, name: str) -> None:
        """Come to a state that was kept. Within a turn. Raises EnvironmentFailure."""
        standing.stands = False
        if self.forks:
            await self._fork(standing, name)
        else:
            await self._call("restore", self.site.restore, name=name, base=self.site.base)
        standing.stands = True

    async def leave(self, standing: SiteClient) -> None:
        """The branch is gone. Never raises."""
        if standing.live and standing.saved:
            with suppress(EnvironmentFailure):  # then the site stays as others left it
                async with self.turn(standing):
                    pass
        if self._holder is standing:
            self._holder = None
        if standing.saved:
            self.drop(standing.saved)
        await self._end(standing)

    def drop(self, name: str) -> None:
        """Nobody comes back to a state; done in the background."""
        if name in self._names:
            self._names.discard(name)
            self._later(self._call("drop", self.site.drop, name=name, base=self.site.base))

    async def close(self) -> None:
        """Drop all that was kept. Never raises."""
        for name in list(self._names):
            self.drop(name)
        await asyncio.gather(*self._chores, return_exceptions=True)

    async def _change(self, standing: SiteClient) -> None:
        """Keep what the last one did, and bring back what this one had."""
        last, self._holder = self._holder, None
        if last is not None and last.stands:
            await last.still()
            last.saved = await self._keep(last.base)
        if standing.stands and not standing.saved:
            raise EnvironmentFailure(
                "the site's state in this branch could not be kept when others had their turn: return by another route"
            )
        if standing.stands:
            await self._call("restore", self.site.restore, name=standing.saved, base=self.site.base)
            self.drop(standing.saved)
            standing.saved = ""
        self._holder = standing

    async def _fork(self, standing: SiteClient, name: str) -> None:
        base = await self._call("fork", self.site.fork, name=name, base=self.site.base)
        await self._end(standing)
        standing.base = base

    async def _end(self, standing: SiteClient) -> None:
        base, standing.base = standing.base, self.site.base
        if self.forks and base != self.site.base:
            with suppress(EnvironmentFailure):
                await self._call("end", self.site.end, base=base)

    async def _keep(self, base: str) -> str:
        name = f"exact_{self._mark}_{next(self._numbers)}"
        await self._call("snapshot", self.site.snapshot, name=name, base=base)
        self._names.add(name)
        return name

    async def _call(self, role: str, hook: Hook | None, **values: str) -> str:
        return await hook.call(role, **values) if hook else ""

    def _later(self, work: Coroutine[Any, Any, str]) -> None:
        async def done() -> None:
            with suppress(EnvironmentFailure):  # what cannot be dropped stays: that is the server's affair
                await work

        task = asyncio.ensure_future(done())
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
