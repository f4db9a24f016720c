"""The engine of a benchmark, and the limits on the resources of its attempts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from exact.cli.terminal import echo
from exact.errors import UsageError
from exact.text import counted

if TYPE_CHECKING:
    from exact.evaluation.engine import Engine
    from exact.evaluation.folder import BenchFolder
    from exact.evaluation.local import LocalEngine


class ResourceLimits(NamedTuple):
    """Limits on the resources of all attempts together; None for no limit."""

    memory: float | None = None
    """GiB."""
    cores: float | None = None
    """Busy processors above which no further environment is used."""
    environments: int | None = None
    """Open environments of each kind."""
    hang: float | None = None
    """Seconds of silence after which an attempt is killed."""
    pause: float = 0.0
    """Seconds before an attempt is rerun whose model did not answer."""


@contextlib.asynccontextmanager
async def open_engine(
    folder: BenchFolder, engine: str, parallel: int | None, bounds: ResourceLimits, *, address: str | None, needs: Mapping[str, float]
) -> AsyncIterator[tuple[Engine, int]]:
    """Yield the engine, and how many attempts run at once: `parallel`, or as many as this machine or the cluster has room for.

    `needs`: resources that each attempt takes of a node of Ray beside a browser or a desktop.
    """
    if engine == "local":
        parallel = fitting(folder, parallel or os.cpu_count() or 1, bounds.environments)
        async with local_engine(folder, parallel, bounds) as local:
            yield local, parallel
        return
    from functools import partial

    from exact.benchmarks.open import environment_kind, resource_of
    from exact.evaluation.remote.cluster import KINDS, connected, room
    from exact.evaluation.remote.engine import RayEngine

    benchmark, here = not folder.plan.own, float(parallel or os.cpu_count() or 1)
    with connected(address, dict.fromkeys(KINDS, here)) as ray:
        wanted = {task.id: {resource_of(task, benchmark=benchmark): 1.0, **needs} for task in folder.plan.tasks}
        parallel = fitting(folder, parallel or max(1, min(room(ray, each) for each in wanted.values())), bounds.environments)
        async with RayEngine(
            folder.path,
            hang=bounds.hang,
            make=f"{__name__}:worker_engine",
            arguments=(parallel, bounds.cores, bounds.environments),
            key=partial(environment_kind, benchmark=benchmark),
            needs=lambda task: wanted[task.id],
        ) as remote:
            if faults := await remote.faults([dict(each) for each in {tuple(needs.items()) for needs in wanted.values()}]):
                for fault in faults:
                    echo(f"exact: {fault}", err=True)
                raise UsageError(f"{counted(len(faults), 'fault')} of the cluster, and no attempt was started: remove them, then --resume")
            yield remote, parallel


def worker_engine(folder: BenchFolder, processes: int, cores: float | None, environments: int | None) -> LocalEngine:
    """Return the engine of one of several processes on Ray, with its part of the limits. The process that started them detects hangs."""
    part = ResourceLimits(cores=cores and cores / processes, environments=environments and max(1, environments // processes))
    return local_engine(folder, 1, part, share=1 / processes)


def local_engine(folder: BenchFolder, parallel: int, bounds: ResourceLimits, *, share: float = 1.0) -> LocalEngine:
    """Return an engine that runs attempts in this process. `share`, in (0, 1]: its part of the providers' rate limits."""
    from functools import partial

    from exact.benchmarks.open import environment_kind, open_environments
    from exact.environments.pool.capacity import PoolLimits
    from exact.evaluation.local import LocalEngine

    notified, benchmark = set[str](), not folder.plan.own

    def notify(text: str) -> None:
        if text not in notified:
            notified.add(text)
            echo(f"exact: {text}", err=True)

    return LocalEngine(
        folder,
        open_environments=lambda task, config: open_environments(task, config, benchmark=benchmark, notify=notify),
        key=partial(environment_kind, benchmark=benchmark),
        limits=PoolLimits(environments=bounds.environments or _wanted(folder) * parallel, processors=bounds.cores),
        hang=bounds.hang,
        share=share,
    )


def _wanted(folder: BenchFolder) -> int:
    """Return how many environments one attempt may hold at once."""
    from exact.evaluation.local import environments_wanted

    return max(environments_wanted(folder.agent(agent)[1]) for agent in folder.plan.agents)


def fitting(folder: BenchFolder, parallel: int, environments: int | None) -> int:
    """Return how many attempts can run at once and have all their environments.

    An attempt that waits for an environment while it holds another could wait for ever. Raises UsageError if none fits.
    """
    if environments is not None and environments < _wanted(folder):
        raise UsageError(
            f"--environments {environments} is too few: one attempt may need {_wanted(folder)}; give more, or search.workers=1"
        )
    return parallel if environments is None else min(parallel, environments // _wanted(folder))


def memory_limit(gib: float | None) -> int | None:
    """Return the limit in bytes; by default 0.8 of the free memory, None if the system does not report it."""
    if gib is not None:
        return int(gib * 2**30)
    with contextlib.suppress(OSError, ValueError, IndexError):
        line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
        return int(int(line.split()[1]) * 1024 * 0.8)
    return None


def needs_of(words: Iterable[str]) -> dict[str, float]:
    """Parse resources of a node such as `gpu=0.25`. Raises UsageError."""
    found = {}
    for word in words:
        name, _, amount = word.partition("=")
        try:
            found[name] = float(amount)
        except ValueError:
            found[name] = -1.0
        if not name or not 0 < found[name] < float("inf"):
            raise UsageError(f"--needs {word}: write a resource that nodes declare and an amount, such as gpu=0.25")
    return found
