"""Leases of sites that a reset changes for everybody: one process of this user on this machine has a site, and others wait.

The system releases a lease when its process ends, however it ends.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import IO, NamedTuple

import msgspec

from exact.environments.sites.site import Site, declared_outside
from exact.errors import EnvironmentFailure
from exact.machine import guard, try_lock
from exact.task import Task

LIMIT = 840.0
"""Seconds to wait for a lease: a benchmark kills an attempt that is silent for longer, and would name no site then."""
_AGAIN = 0.5
"""Seconds between two tries."""
_logger = logging.getLogger("exact.sites")


class _Held(NamedTuple):
    file: IO[bytes]
    attempts: int


_HELD: dict[Path, _Held] = {}
"""Leases of this process, whose attempts share a site as its environments do."""


_BEGUN = Counter[Path]()
"""Attempts of this process by the lease of their site."""


def reset_is_due(site: Site) -> bool:
    """Return whether the present attempt resets its site: the first one of this process does, and each `every`-th after it."""
    return max(1, _BEGUN[_path(site)]) % site.every == 1 % site.every


@asynccontextmanager
async def leased_site(task: Task, limit: float = LIMIT) -> AsyncIterator[None]:
    """Hold the lease of a task's site while the block runs; nothing if its site has no reset, or makes separate instances.

    `limit`: seconds to wait. Raises EnvironmentFailure if another process has the site for longer.
    """
    outside = declared_outside(task)
    if outside is None or outside.site is None or outside.site.fork is not None:
        yield
        return
    path = _path(outside.site)
    await _take(path, outside.site.base or task.id, limit)
    _BEGUN[path] += 1
    try:
        yield
    finally:
        file, attempts = _HELD.pop(path)
        if attempts > 1:
            _HELD[path] = _Held(file, attempts - 1)
        else:
            file.close()


async def _take(path: Path, name: str, limit: float) -> None:
    end, told = monotonic() + limit, False
    while path not in _HELD:
        file = path.open("a+b")
        if try_lock(file.fileno()):
            _HELD[path] = _Held(file, 0)
            path.with_suffix(".pid").write_text(str(os.getpid()))
            break
        file.close()
        owner = f"{name} is used by process {_owner(path)}, and a reset would change it for both"
        if monotonic() >= end:
            raise EnvironmentFailure(f"{owner}: {limit:g} s were waited: end that process, or wait for it and run `exact resume`")
        if not told:
            _logger.warning("%s: waiting for it, %g s at most", owner, limit)
            told = True
        await asyncio.sleep(_AGAIN)
    held = _HELD[path]
    _HELD[path] = held._replace(attempts=held.attempts + 1)


def _owner(path: Path) -> str:
    try:
        return path.with_suffix(".pid").read_text()[:20]
    except OSError:
        return "unknown"


def _path(site: Site) -> Path:
    """Return the file of a site's lease: sites of one address, or without one of one reset, have the same."""
    key = site.base.rstrip("/").lower().encode() or msgspec.json.encode(site.reset)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "exact" / "leases"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return guard(folder / hashlib.sha256(key).hexdigest()[:16])
