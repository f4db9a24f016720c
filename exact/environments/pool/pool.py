"""Environments that many trees share: leased in turn, kept warm, bounded, and let go after a number of uses.

```python
async with Pool(inner, PoolLimits(environments=4, spares=1)) as pool:
    one, other = pool.share("one"), pool.share("other")  # each is Environments, for one tree
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
    slot: asyncio.Future[PoolEntry | None]
    """An idle environment, or None: leave to open one."""


class Pool:
    """Environments around Environments. Trees take turns; within a tree, first come, first served."""

    def __init__(
        self,
        environments: EnvironmentFactory,
        limits: PoolLimits | None = None,
        *,
        gauge: Callable[[], ResourceUsage] = measure_usage,
        clock: Callable[[], float] = time.monotonic,
        pause: float = PAUSE,
    ) -> None:
        """`gauge`: what all environments use. `clock`: seconds. `pause`: seconds between two measurements."""
        self.environments, self.limits, self.counts = environments, limits or PoolLimits(), PoolCounts()
        self._room = Capacity(self.limits, gauge, clock, pause=pause)
        self._turns: OrderedDict[str, deque[_Waiter]] = OrderedDict()
        self._idle: list[PoolEntry] = []
        self._open = self._leased = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._draining = self._warming = False
        self._empty = asyncio.Event()
        self._empty.set()

    async def __aenter__(self) -> Self:
        self._warm()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.drain(wait=error is None)

    @property
    def open_environments(self) -> int:
        """Leased, idle, and on their way."""
        return self._open

    @property
    def waiting(self) -> int:
        """Who waits for a lease."""
        return sum(map(len, self._turns.values()))

    def share(self, tree: str) -> EnvironmentFactory:
        """The pool as one tree's environments. Trees that wait take turns. With branches where the inner environments have them."""
        return _ForkingShare(self, tree, self.environments) if isinstance(self.environments, ForkableFactory) else _Share(self, tree)

    def open(self, *, simulation: bool) -> AbstractAsyncContextManager[LeasedEnvironment]:
        """A lease for nobody in particular."""
        return self.lease("", simulation=simulation)

    @asynccontextmanager
    async def lease(self, tree: str, *, simulation: bool, snapshot: Snapshot | None = None) -> AsyncIterator[LeasedEnvironment]:
        """An environment, or a branch of a snapshot, for as long as the block runs. Waits for its turn. Raises EnvironmentFailure."""
        slot = await self._take(tree, simulation, snapshot)
        lease = LeasedEnvironment(slot, self._replace)
        try:
            yield lease
        finally:
            lease.end()
            await self._return(slot)

    async def drain(self, *, wait: bool = True) -> None:
        """Lease no more; who waits is told so. Returns when all environments are closed, or with wait=False when the idle ones are: those
        that are leased follow as they come back."""
        self._draining = True
        for waiters in self._turns.values():
            for waiter in waiters:
                if not waiter.slot.done():
                    waiter.slot.set_exception(EnvironmentFailure("the pool is closing: no environment is leased any more"))
        self._turns.clear()
        if self._timer is not None:
            self._timer.cancel()
        while self._idle or self._tasks:
            idle, self._idle = self._idle, []
            await asyncio.gather(*(self._close(slot) for slot in idle), *self._tasks)
        if wait:
            await self._empty.wait()

    # --- leases

    async def _take(self, tree: str, simulation: bool, snapshot: Snapshot | None) -> PoolEntry:
        if self._draining:
            raise EnvironmentFailure("the pool is closing: no environment is leased any more")
        waiter = _Waiter(simulation, snapshot is not None, asyncio.get_running_loop().create_future())
        self._turns.setdefault(tree, deque()).append(waiter)
        self._settle()
        try:
            slot = await waiter.slot
        except asyncio.CancelledError:
            self._give_up(tree, waiter)
            raise
        try:
            slot = slot or await self._make(simulation, snapshot)
        except BaseException:
            self._leave()
            raise
        slot.uses, slot.warm = slot.uses + 1, waiter.slot.result() is not None
        self._leased += 1
        self.counts.leases += 1
        self.counts.reused += slot.warm
        return slot

    def _give_up(self, tree: str, waiter: _Waiter) -> None:
        """A waiter was cancelled: what it was given in the same moment goes to the next one."""
        if waiter.slot.done() and not waiter.slot.cancelled() and waiter.slot.exception() is None:
            slot = waiter.slot.result()
            if slot is None:
                self._left()
            else:
                self._idle.append(slot)
        elif waiter in (waiters := self._turns.get(tree, deque())):
            waiters.remove(waiter)
            if not waiters:
                del self._turns[tree]
        self._settle()

    def _grant(self) -> None:
        """Serve who waits, tree by tree, as far as there is room."""
        while self._turns:
            tree, waiters = next(iter(self._turns.items()))
            if waiters[0].slot.done():  # cancelled, and not yet told
                self._next(tree, waiters)
                continue
            waiter = waiters[0]
            idle = next((slot for slot in self._idle if slot.simulation is waiter.simulation and not waiter.fork), None)
            if not self._rested():
                return
            if idle is not None:
                self._idle.remove(idle)
            elif self._has_room():
                self._enter()
            else:
                if self._idle:  # of another kind: it makes room
                    self._do(self._close(self._idle.pop(0)))
                return
            self._next(tree, waiters)
            waiter.slot.set_result(idle)

    def _next(self, tree: str, waiters: deque[_Waiter]) -> None:
        """The first of a tree is served: the tree goes to the end of the row."""
        waiters.popleft()
        del self._turns[tree]
        if waiters:
            self._turns[tree] = waiters

    async def _make(self, simulation: bool, snapshot: Snapshot | None) -> PoolEntry:
        stack = AsyncExitStack()
        if snapshot is None:
            opened: AbstractAsyncContextManager[Environment] = self.environments.open(simulation=simulation)
        else:
            assert isinstance(self.environments, ForkableFactory)
            opened = self.environments.fork(snapshot, simulation=simulation)
        slot = PoolEntry(stack, await stack.enter_async_context(opened), simulation, snapshot is not None)
        self.counts.opened += 1
        return slot

    async def _replace(self, slot: PoolEntry) -> None:
        """Another environment in a leased slot."""
        self.counts.broken += 1
        slot.broken = True
        stack, slot.stack = slot.stack, AsyncExitStack()
        await stack.aclose()
        made = await self._make(slot.simulation, None)
        slot.stack, slot.environment, slot.branch, slot.broken, slot.uses = made.stack, made.environment, False, False, 1

    async def _return(self, slot: PoolEntry) -> None:
        self._leased -= 1
        worn = slot.uses >= self.limits.uses
        if not (slot.broken or slot.branch or worn or self._draining):
            self._idle.append(slot)
            self._settle()
            return
        self.counts.broken += slot.broken
        self.counts.recycled += worn and not slot.broken
        await self._close(slot)

    async def _close(self, slot: PoolEntry) -> None:
        try:
            await slot.stack.aclose()
        finally:
            self._leave()

    def _enter(self) -> None:
        """One more environment is open, or about to be."""
        self._open += 1
        self._empty.clear()
        self.counts.most = max(self.counts.most, self._open)

    def _left(self) -> None:
        self._open -= 1
        if not self._open:
            self._empty.set()

    def _leave(self) -> None:
        self._left()
        self._settle()

    def _settle(self) -> None:
        """Something came free."""
        if not self._draining:
            self._grant()
            self._warm()

    # --- spares and room

    def _warm(self) -> None:
        """Open a spare where one is missing and nobody waits."""
        if not (self._draining or self._turns or self._warming) and len(self._idle) < self.limits.spares and self._has_room():
            self._enter()
            self._warming = True
            self._do(self._spare())

    async def _spare(self) -> None:
        try:
            self._idle.append(await self._make(True, None))
        except EnvironmentFailure:
            self._left()  # whoever needs an environment will be told why there is none
            self._grant()
            return
        except BaseException:
            self._left()
            raise
        finally:
            self._warming = False
        self._settle()

    def _do(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _has_room(self) -> bool:
        """Whether one more environment may be opened."""
        if self._open >= self.limits.environments:
            return False
        return self._room.fits(self._open) or self._look_again()

    def _rested(self) -> bool:
        """Whether the processors are free enough for one more lease."""
        return not self._leased or self._room.rested() or self._look_again()

    def _look_again(self) -> Literal[False]:
        """Too much is used: what is measured will tell when that is over."""
        now = asyncio.get_running_loop()
        if self._timer is None or self._timer.cancelled() or self._timer.when() <= now.time():
            self._timer = now.call_later(self._room.pause, self._settle)
        return False


class _Share:
    """The pool as one tree sees it."""

    def __init__(self, pool: Pool, tree: str) -> None:
        self._pool, self._tree = pool, tree

    def open(self, *, simulation: bool) -> AbstractAsyncContextManager[LeasedEnvironment]:
        return self._pool.lease(self._tree, simulation=simulation)


class _ForkingShare(_Share):
    def __init__(self, pool: Pool, tree: str, environments: ForkableFactory) -> None:
        super().__init__(pool, tree)
        self._environments = environments

    def fork(self, snapshot: Snapshot, *, simulation: bool) -> AbstractAsyncContextManager[LeasedEnvironment]:
        return self._pool.lease(self._tree, simulation=simulation, snapshot=snapshot)

    @property
    def bytes(self) -> int:
        """Of all images kept, those of other trees included; 0 where the environments do not tell."""
        return int(getattr(self._environments, "bytes", 0))

    def has(self, snapshot: Snapshot) -> bool:
        return self._environments.has(snapshot)

    def drop(self, snapshot: Snapshot) -> None:
        self._environments.drop(snapshot)
