"""Bringing a site back to its data set: `require_reset` of task files, by the command or HTTP call that the site's owner names."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterable, Mapping

from exact.benchmarks.webarena.variables import Addresses
from exact.environments.sites import Hook
from exact.errors import EnvironmentError_, UsageError

_SECONDS = 1800.0


class Resets:
    """The hooks of a release's sites: `<SITE>_RESET` is an address, called with POST, or a command, run without a shell."""

    def __init__(self, addresses: Addresses, environ: Mapping[str, str]) -> None:
        self._addresses, self._environ = addresses, environ
        self._dirty: set[str] = set()
        self._lock = asyncio.Lock()

    def hook(self, site: str) -> Hook | None:
        """The hook of a site; None where its owner names none. Raises UsageError."""
        variable = f"{self._addresses.variable(site)}_RESET"
        said = self._environ.get(variable) or self._environ.get(f"{site.upper()}_RESET", "")
        if not said:
            return None
        if said.startswith(("http://", "https://")):
            return Hook(url=said, seconds=_SECONDS)
        try:
            return Hook(command=tuple(shlex.split(said)), seconds=_SECONDS)
        except ValueError as error:
            raise UsageError(f"{variable} cannot be read as a command: {error}") from error

    async def before(self, sites: Iterable[str], *, changes: bool) -> None:
        """Before an attempt at some sites: those that it changes, or that one before it changed, are reset. Raises EnvironmentError_."""
        async with self._lock:
            for site in sites:
                hook = self.hook(site)
                if hook and (changes or site in self._dirty):
                    await self._call(site, hook)
                    self._dirty.discard(site)
                if changes:
                    self._dirty.add(site)

    async def _call(self, site: str, hook: Hook) -> None:
        try:
            await hook.call("reset", base=self._addresses.of(site), name=site)
        except EnvironmentError_ as error:
            raise EnvironmentError_(f"{site} was not reset: {error}: see {self._addresses.variable(site)}_RESET") from error
