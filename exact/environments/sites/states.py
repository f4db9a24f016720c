"""States of a site outside the sandbox, one for each environment that uses it."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

from exact.environments.sites.site import Hook, Site
from exact.errors import EnvironmentFailure

_logger = logging.getLogger("exact.sites")


@dataclass(eq=False)
class SiteClient:
    """Share of the site that one environment has."""

    stop_traffic: Callable[[], Awaitable[None]]
    """Stops everything in this environment that might send requests to the site."""
    base: str
    """Address of its instance."""
    live: bool = False
    """Whether it is the live environment: it acts on the site itself, which is left in its state."""
    saved: str = ""
    """Name of its saved state while others have their turn."""
    has_state: bool = False
    """Whether it has a state: False before it began or was restored, and when that failed."""


class SiteStates:
    """Saves and restores states of a site. If the site forks, each environment has an instance; otherwise they take turns."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._prefix, self._numbers = secrets.token_hex(4), count(1)
        self._start = ""
        self._start_lock, self._turn_lock = asyncio.Lock(), asyncio.Lock()
        self._current: SiteClient | None = None
        self._names: set[str] = set()
        self._background: set[asyncio.Task[None]] = set()

    @property
    def forks(self) -> bool:
        """Return whether the site has a hook `fork`."""
        return self.site.fork is not None

    @asynccontextmanager
    async def turn(self, client: SiteClient) -> AsyncIterator[None]:
        """Put the site in this environment's state for the time of the block. Requests are served in order. Raises EnvironmentFailure."""
        if self.forks:
            yield
            return
        async with self._turn_lock:
            if self._current is not client:
                await self._switch_to(client)
            yield

    async def begin(self, client: SiteClient) -> None:
        """Bring the site to the start of a task. Call within a turn. Raises EnvironmentFailure."""
        client.has_state = False
        if self.forks:
            async with self._start_lock:
                if not self._start:
                    await self._call("reset", self.site.reset, base=self.site.base)
                    self._start = await self._save(self.site.base)
        if self.forks and not client.live:
            await self._fork(client, self._start)
        else:
            await self._call("reset", self.site.reset, base=self.site.base)
        client.has_state = True

    async def save(self, client: SiteClient) -> str:
        """Save the environment's state and return its name. Call within a turn. Raises EnvironmentFailure."""
        return await self._save(client.base)

    async def restore(self, client: SiteClient, name: str) -> None:
        """Restore a saved state. Call within a turn. Raises EnvironmentFailure."""
        client.has_state = False
        if self.forks:
            await self._fork(client, name)
        else:
            await self._call("restore", self.site.restore, name=name, base=self.site.base)
        client.has_state = True

    async def leave(self, client: SiteClient) -> None:
        """Release the share of an environment that is closed. Never raises."""
        if client.live and client.saved:
            with suppress(EnvironmentFailure):  # then the site stays in the state of another environment
                async with self.turn(client):
                    pass
        if self._current is client:
            self._current = None
        if client.saved:
            self.drop(client.saved)
        await self._end(client)

    def drop(self, name: str) -> None:
        """Delete a saved state, in the background."""
        if name in self._names:
            self._names.discard(name)
            self._in_background(self._delete(name))

    async def close(self) -> None:
        """Delete all saved states, once more those that could not be deleted before. Never raises."""
        for _ in range(2):
            for name in list(self._names):
                self.drop(name)
            await asyncio.gather(*self._background, return_exceptions=True)
        if self._names:
            _logger.warning("saved states that the site did not delete stay on it: %s: delete them there", ", ".join(sorted(self._names)))

    async def _delete(self, name: str) -> None:
        try:
            await self._call("drop", self.site.drop, name=name, base=self.site.base)
        except EnvironmentFailure as error:  # something may use it still: `close` tries again
            _logger.info("%s", error)
            self._names.add(name)

    async def _switch_to(self, client: SiteClient) -> None:
        """Save the state of the last environment, and restore that of this one."""
        last, self._current = self._current, None
        if last is not None and last.has_state:
            await last.stop_traffic()
            last.saved = await self._save(last.base)
        if client.has_state and not client.saved:
            raise EnvironmentFailure(
                "the site's state in this environment could not be saved when others had their turn: return by another route"
            )
        if client.has_state:
            await self._call("restore", self.site.restore, name=client.saved, base=self.site.base)
            self.drop(client.saved)
            client.saved = ""
        self._current = client

    async def _fork(self, client: SiteClient, name: str) -> None:
        base = await self._call("fork", self.site.fork, name=name, base=self.site.base)
        await self._end(client)
        client.base = base

    async def _end(self, client: SiteClient) -> None:
        base, client.base = client.base, self.site.base
        if self.forks and base != self.site.base:
            with suppress(EnvironmentFailure):
                await self._call("end", self.site.end, base=base)

    async def _save(self, base: str) -> str:
        name = f"exact_{self._prefix}_{next(self._numbers)}"
        await self._call("snapshot", self.site.snapshot, name=name, base=base)
        self._names.add(name)
        return name

    async def _call(self, role: str, hook: Hook | None, **values: str) -> str:
        return await hook.call(role, **values) if hook else ""

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
