"""Resets of a site to its data set: `require_reset` of task files, by the command or HTTP call that the site's owner names.

A process knows a site to be clean if it reset it and no process changed it since. A process that is about to change a site records it in
the user's cache, for other processes: lanes of a benchmark, or the one that resumes it. Processes on other machines do not see that.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import monotonic

from exact.benchmarks.webarena.variables import Addresses
from exact.environments.sites.site import Hook
from exact.errors import EnvironmentFailure, UsageError

LIMIT = 840.0
"""Seconds for all resets before an attempt: a benchmark kills an attempt that is silent for longer, and would name no site then."""


class Resets:
    """Reset hooks of a release's sites: `<SITE>_RESET` is an address, called with POST, or a command, run without a shell."""

    def __init__(self, addresses: Addresses, environ: Mapping[str, str]) -> None:
        self._addresses, self._environ = addresses, environ
        self._clean: dict[str, str] = {}
        """Last change recorded when this process reset a site, by site; see `_change`."""
        self._lock = asyncio.Lock()

    def hook(self, site: str, seconds: float = LIMIT) -> Hook | None:
        """Return the hook of a site; None if its owner names none. Raises UsageError."""
        variable = self.variable(site)
        said = self._environ.get(variable) or self._environ.get(f"{site.upper()}_RESET", "")
        if not said:
            return None
        if said.startswith(("http://", "https://")):
            return Hook(url=said, seconds=seconds)
        try:
            return Hook(command=tuple(shlex.split(said)), seconds=seconds)
        except ValueError as error:
            raise UsageError(f"{variable} cannot be read as a command: {error}") from error

    def variable(self, site: str) -> str:
        """Return the variable that names a site's hook."""
        return f"{self._addresses.variable(site)}_RESET"

    async def before(self, sites: Iterable[str], *, changes: bool) -> None:
        """Reset, before an attempt, those of its sites that it changes or that are not known to be clean. Raises EnvironmentFailure."""
        async with self._lock:
            end = monotonic() + LIMIT
            for site in sites:
                hook = self.hook(site, end - monotonic())
                if hook is None:
                    continue
                if changes:
                    self._change(site)
                last = self._last_change(site)
                if self._clean.get(site) != last:
                    await self._call(site, hook)
                    if not changes:
                        self._clean[site] = last

    async def _call(self, site: str, hook: Hook) -> None:
        try:
            if hook.seconds <= 0:
                raise EnvironmentFailure(f"the {LIMIT:g} s for the sites of a task are over")
            await hook.call("reset", base=self._addresses.of(site), name=site)
        except EnvironmentFailure as error:
            raise EnvironmentFailure(f"{site} was not reset: {error}: see {self.variable(site)}") from error

    def _change(self, site: str) -> None:
        """Record that a site is about to be changed, by a value that no process has seen before. Raises EnvironmentFailure."""
        path = self._note(site)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f".{path.name}.{os.getpid()}.part")
            part.write_text(secrets.token_hex(16), "utf-8")
            part.replace(path)
        except OSError as error:
            raise EnvironmentFailure(
                f"that {site} is changed cannot be noted in {path.parent}: {error.strerror}: name another folder in XDG_CACHE_HOME"
            ) from error

    def _last_change(self, site: str) -> str:
        """Return the last recorded change; empty if there is none."""
        try:
            return self._note(site).read_text("utf-8")
        except OSError:
            return ""

    def _note(self, site: str) -> Path:
        cache = Path(self._environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "exact" / "resets" / hashlib.blake2b(self._addresses.of(site).encode(), digest_size=8).hexdigest()
