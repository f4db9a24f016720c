"""Environments that many trees share: leased in turn, kept open between leases, bounded, and closed after a number of uses.

```python
async with Pool(inner, PoolLimits(environments=4, spares=1)) as pool:
    one, other = pool.share("one"), pool.share("other")  # each is the EnvironmentFactory of one tree
```
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

from exact.environments.base import Environment, EnvironmentFactory, ForkableFactory, Snapshot
from exact.environments.pool.capacity import PAUSE, Capacity, PoolCounts, PoolLimits, ResourceUsage, measure_usage
from exact.environments.pool.lease import LeasedEnvironment, PoolEntry
from exact.errors import EnvironmentFailure


@dataclass(eq=False)
class _Waiter:
    simulation: bool
    fork: bool
    granted: asyncio.Future[PoolEntry | None]
    """Result: an idle environment, or None for permission to open one."""


class Pool:
    """Pool of the environments of a factory. Trees take turns; within a tree, requests are served in order."""

    def __init__(
        self,
        environments: EnvironmentFactory,
        limits: PoolLimits | None = None,
        *,
        gauge: Callable[[], ResourceUsage] = measure_usage,
        clock: Callable[[], float] = time.monotonic,
        pause: float = PAUSE,
    ) -> None:
        """Create an empty pool.

        `gauge`: measures the resources of all environments. `clock`: returns seconds. `pause`: least seconds between two measurements.
        """
        self.environments, self.limits, self.counts = environments, limits or PoolLimits(), PoolCounts()
        self._capacity = Capacity(self.limits, gauge, clock, pause=pause)
        self._queues: OrderedDict[str, deque[_Waiter]] = OrderedDict()
        self._idle: list[PoolEntry] = []
        self._open = self._leased = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._draining = self._opening_spare = False
        self._empty = asyncio.Event()
        self._empty.set()

    async def __aenter__(self) -> Self:
        self._open_spare()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.drain(wait=error is None)

    @property
    def open_environments(self) -> int:
        """Number of environments that are leased, idle, or being opened."""
        return self._open

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a lease."""
        return sum(map(len, self._queues.values()))

    def share(self, tree: str) -> EnvironmentFactory:
        """Return the pool as the factory of one tree. It is forkable if the inner factory is. Waiting trees take turns."""
        return (
            _ForkableTreeFactory(self, tree, self.environments)
            if isinstance(self.environments, ForkableFactory)
            else _TreeFactory(self, tree)
        )

    def open(self, *, simulation: bool) -> AbstractAsyncContextManager[LeasedEnvironment]:
        """Lease an environment without naming a tree."""
        return self.lease("", simulation=simulation)

    @asynccontextmanager
    async def lease(self, tree: str, *, simulation: bool, snapshot: Snapshot | None = None) -> AsyncIterator[LeasedEnvironment]:
        """Lease an environment, or a fork of a snapshot, for the time of the block. Waits for its turn. Raises EnvironmentFailure."""
        entry = await self._acquire(tree, simulation, snapshot)
        lease = LeasedEnvironment(entry, self._replace)
        try:
            yield lease
        finally:
            lease.end()
            await self._return(entry)

    async def drain(self, *, wait: bool = True) -> None:
        """Stop leasing; waiting requests fail with EnvironmentFailure.

        Returns when all environments are closed; with wait=False when the idle ones are. Leased ones are then closed on return.
        """
        self._draining = True
        for waiters in self._queues.values():
            for waiter in waiters:
                if not waiter.granted.done():
                    waiter.granted.set_exception(EnvironmentFailure("the pool is closing: no environment is leased any more"))
        self._queues.clear()
        if self._timer is not None:
            self._timer.cancel()
        while self._idle or self._tasks:
            idle, self._idle = self._idle, []
            await asyncio.gather(*(self._close(entry) for entry in idle), *self._tasks)
        if wait:
            await self._empty.wait()

    # --- leases

    async def _acquire(self, tree: str, simulation: bool, snapshot: Snapshot | None) -> PoolEntry:
        if self._draining:
            raise EnvironmentFailure("the pool is closing: no environment is leased any more")
        waiter = _Waiter(simulation, snapshot is not None, asyncio.get_running_loop().create_future())
        self._queues.setdefault(tree, deque()).append(waiter)
        self._serve()
        try:
            entry = await waiter.granted
        except asyncio.CancelledError:
            self._withdraw(tree, waiter)
            raise
        try:
            entry = entry or await self._make(simulation, snapshot)
        except BaseException:
            self._release()
            raise
        entry.uses, entry.warm = entry.uses + 1, waiter.granted.result() is not None
        self._leased += 1
        self.counts.leases += 1
        self.counts.reused += entry.warm
        return entry

    def _withdraw(self, tree: str, waiter: _Waiter) -> None:
        """Remove a cancelled waiter. An environment granted to it at the same moment goes to the next one."""
        if waiter.granted.done() and not waiter.granted.cancelled() and waiter.granted.exception() is None:
            entry = waiter.granted.result()
            if entry is None:
                self._count_closed()
            else:
                self._idle.append(entry)
        elif waiter in (waiters := self._queues.get(tree, deque())):
            waiters.remove(waiter)
            if not waiters:
                del self._queues[tree]
        self._serve()

    def _grant(self) -> None:
        """Serve waiting requests, tree by tree, as far as capacity allows."""
        while self._queues:
            tree, waiters = next(iter(self._queues.items()))
            if waiters[0].granted.done():  # cancelled, but still in the queue
                self._rotate(tree, waiters)
                continue
            waiter = waiters[0]
            idle = next((entry for entry in self._idle if entry.simulation is waiter.simulation and not waiter.fork), None)
            if not self._has_cpu():
                return
            if idle is not None:
                self._idle.remove(idle)
            elif self._has_capacity():
                self._count_opened()
            else:
                if self._idle:  # of another kind: closing it frees capacity
                    self._in_background(self._close(self._idle.pop(0)))
                return
            self._rotate(tree, waiters)
            waiter.granted.set_result(idle)

    def _rotate(self, tree: str, waiters: deque[_Waiter]) -> None:
        """Remove the first request of a tree, and move the tree to the end of the queue."""
        waiters.popleft()
        del self._queues[tree]
        if waiters:
            self._queues[tree] = waiters

    async def _make(self, simulation: bool, snapshot: Snapshot | None) -> PoolEntry:
        stack = AsyncExitStack()
        if snapshot is None:
            opened: AbstractAsyncContextManager[Environment] = self.environments.open(simulation=simulation)
        else:
            assert isinstance(self.environments, ForkableFactory)
            opened = self.environments.fork(snapshot, simulation=simulation)
        entry = PoolEntry(stack, await stack.enter_async_context(opened), simulation, snapshot is not None)
        self.counts.opened += 1
        return entry

    async def _replace(self, entry: PoolEntry) -> None:
        """Replace the environment of a leased entry by a fresh one."""
        self.counts.broken += 1
        entry.broken = True
        stack, entry.stack = entry.stack, AsyncExitStack()
        await stack.aclose()
        made = await self._make(entry.simulation, None)
        entry.stack, entry.environment, entry.fork, entry.broken, entry.uses = made.stack, made.environment, False, False, 1

    async def _return(self, entry: PoolEntry) -> None:
        self._leased -= 1
        used_up = entry.uses >= self.limits.uses
        if not (entry.broken or entry.fork or used_up or self._draining):
            self._idle.append(entry)
            self._serve()
            return
        self.counts.broken += entry.broken
        self.counts.recycled += used_up and not entry.broken
        await self._close(entry)

    async def _close(self, entry: PoolEntry) -> None:
        try:
            await entry.stack.aclose()
        finally:
            self._release()

    def _count_opened(self) -> None:
        """Count an environment that is being opened."""
        self._open += 1
        self._empty.clear()
        self.counts.most = max(self.counts.most, self._open)

    def _count_closed(self) -> None:
        self._open -= 1
        if not self._open:
            self._empty.set()

    def _release(self) -> None:
        self._count_closed()
        self._serve()

    def _serve(self) -> None:
        """Serve waiting requests and open a spare after capacity was freed."""
        if not self._draining:
            self._grant()
            self._open_spare()

    # --- spares and capacity

    def _open_spare(self) -> None:
        """Open a spare environment if one is missing and no request waits."""
        if not (self._draining or self._queues or self._opening_spare) and len(self._idle) < self.limits.spares and self._has_capacity():
            self._count_opened()
            self._opening_spare = True
            self._in_background(self._add_spare())

    async def _add_spare(self) -> None:
        try:
            self._idle.append(await self._make(True, None))
        except EnvironmentFailure:
            self._count_closed()  # the next request reports the reason why none can be opened
            self._grant()
            return
        except BaseException:
            self._count_closed()
            raise
        finally:
            self._opening_spare = False
        self._serve()

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _has_capacity(self) -> bool:
        """Return whether one more environment may be opened."""
        if self._open >= self.limits.environments:
            return False
        return self._capacity.fits(self._open) or self._check_later()

    def _has_cpu(self) -> bool:
        """Return whether CPU usage admits one more lease."""
        return not self._leased or self._capacity.has_cpu() or self._check_later()

    def _check_later(self) -> Literal[False]:
        """Schedule another check after the next measurement, because too much is used now. Returns False."""
        now = asyncio.get_running_loop()
        if self._timer is None or self._timer.cancelled() or self._timer.when() <= now.time():
            self._timer = now.call_later(self._capacity.pause, self._serve)
        return False


class _TreeFactory:
    """Factory of one tree, which leases from the pool."""

    def __init__(self, pool: Pool, tree: str) -> None:
        self._pool, self._tree = pool, tree

    def open(self, *, simulation: bool) -> AbstractAsyncContextManager[LeasedEnvironment]:
        return self._pool.lease(self._tree, simulation=simulation)


class _ForkableTreeFactory(_TreeFactory):
    def __init__(self, pool: Pool, tree: str, environments: ForkableFactory) -> None:
        super().__init__(pool, tree)
        self._environments = environments

    def fork(self, snapshot: Snapshot, *, simulation: bool) -> AbstractAsyncContextManager[LeasedEnvironment]:
        return self._pool.lease(self._tree, simulation=simulation, snapshot=snapshot)

    @property
    def bytes(self) -> int:
        """Bytes of all snapshots, those of other trees included. 0 if the factory does not report them."""
        return int(getattr(self._environments, "bytes", 0))

    def has(self, snapshot: Snapshot) -> bool:
        return self._environments.has(snapshot)

    def drop(self, snapshot: Snapshot) -> None:
        self._environments.drop(snapshot)
