"""The simulated environments of an attempt: one for each worker, some to prepare states in, and some that stay where they were left.

They are opened when they are first needed. A state is prepared in a spare slot while a model thinks. A worker never waits
for a spare slot.

Prefetching: while a model thinks, spare environments are brought to the states in which the search is likely to act next.

No environment is used that a worker needs. Where steps are capped or cannot be undone, only routes are taken that repeat none. A prepared
state is not a result: the search takes the same course with and without it.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from exact.action import Action
from exact.environments.base import Capabilities, EnvironmentFactory, StateChanged, Transition
from exact.environments.restore.costs import Costs
from exact.environments.restore.slot import Slot
from exact.environments.restore.snapshots import SnapshotStore
from exact.environments.restore.waypoint import Arrival, Waypoint
from exact.errors import ActionError, EnvironmentFailure
from exact.runs.attempt.attempt_context import AttemptContext
from exact.runs.attempt.observations import waypoints
from exact.runs.journal import events as ev
from exact.search.tree import Node
from exact.task import Task

WORTHWHILE = 0.05
"""Least expected seconds of a route that is worth preparing in a spare environment."""


class Slots:
    """Lends slots, each to one piece of work at a time."""

    def __init__(
        self, environments: EnvironmentFactory, task: Task, size: int, *, spare: int = 0, more: int = 0, clock: Callable[[], float],
        resets: bool = True,
    ) -> None:  # fmt: skip
        """Make slots without opening an environment.

        size: workers that use them. spare: slots to prepare states in. more: slots that may stay where they were left. clock: seconds, to
        measure routes by. resets: whether a reset leads to the start.
        """
        self.snapshots = SnapshotStore(environments)
        self._spare, more = (spare, more) if self.snapshots.forks is not None else (0, 0)
        self._cores = os.cpu_count() or 1
        self.costs = Costs(workers=size)
        self._all = [
            Slot(environments, task, store=self.snapshots, costs=self.costs, clock=clock, resets=resets)
            for _ in range(size + self._spare + more)
        ]
        self._free = list(self._all)
        """Slots that are not lent, the longest unused first."""
        self._workers = asyncio.Semaphore(size)
        self._coming: dict[tuple[Waypoint, ...], asyncio.Event] = {}
        """States that are being prepared, with what is set when they are."""
        self._awaited = set[tuple[Waypoint, ...]]()
        """States that a worker waits for."""
        self._ahead: dict[tuple[tuple[Waypoint, ...], str], tuple[Slot, asyncio.Future[Transition | ActionError | None]]] = {}
        """Steps that spare environments took, or take, before the search asked for them, by state and action."""
        self._prepared: dict[Slot, tuple[Waypoint, ...]] = {}

    @asynccontextmanager
    async def borrow(self, path: Sequence[Waypoint]) -> AsyncIterator[Slot]:
        """Lend the free slot that reaches the path's end at the least cost; wait for one where none is free.

        Of equally cheap ones an unopened one is taken, since the search may come back to the states where the others are.
        """
        async with self._workers:
            if (coming := self._coming.get(tuple(path))) is not None:
                self._awaited.add(tuple(path))
                await coming.wait()
            slot = min(self._free, key=lambda each: (_seconds_to(each, path), each.opened))
            self._free.remove(slot)
            try:
                yield slot
            finally:
                self._free.append(slot)

    @asynccontextmanager
    async def spare(self, path: Sequence[Waypoint], wanted: Sequence[Sequence[Waypoint]]) -> AsyncIterator[Slot | None]:
        """Lend a free slot to prepare a state in; yield None where there is none to spare.

        wanted: states that are likely needed, this one among them, the likeliest first. A slot that is at a likelier state stays there. Of
        equally near ones an unopened one is taken, as in `borrow`.
        """
        end, order = tuple(path), {tuple(each): rank for rank, each in reversed(list(enumerate(wanted)))}
        ahead = {slot: order.get(state, math.inf) for (state, _), (slot, _) in self._ahead.items()}
        ranks = {slot: min(slot.rank(order), ahead.get(slot, math.inf)) for slot in self._free}
        free = [slot for slot in self._free if ranks[slot] > order[end]]
        if len(self._coming) >= self._spare or end in self._coming or self.has_free_at(path) or not free:
            yield None
            return
        slot = min(free, key=lambda each: (-ranks[each], _seconds_to(each, path), each.opened))
        with self.lent(slot, end):
            yield slot

    def worth_snapshot(self, path: Sequence[Waypoint], returns: float) -> Slot | None:
        """Return the free slot at the path's end of which a snapshot saves time; None without one."""
        return next((slot for slot in self._free if slot.is_at(path) and slot.is_worth_snapshot(returns)), None)

    @contextmanager
    def lent(self, slot: Slot, path: tuple[Waypoint, ...]) -> Iterator[None]:
        """Lend a free slot to prepare a state, which workers wait for. Others that are unused for longer come after it."""
        self._free.remove(slot)
        try:
            with self.coming(path):
                yield
        finally:
            self._free.insert(0, slot)

    @contextmanager
    def coming(self, path: tuple[Waypoint, ...]) -> Iterator[None]:
        """Let workers that need a state wait for the end of the block, or for `arrived`."""
        here = self._coming[path] = asyncio.Event()
        try:
            yield
        finally:
            self._awaited.discard(path)
            if self._coming.get(path) is here:
                del self._coming[path]
            here.set()

    def arrived(self, path: tuple[Waypoint, ...]) -> bool:
        """Return False if a worker waits for a state that is coming. Else let none wait from now on."""
        return path not in self._awaited and self._coming.pop(path, None) is not None

    @contextmanager
    def taking(self, slot: Slot, path: tuple[Waypoint, ...], action: Action) -> Iterator[asyncio.Future[Transition | ActionError | None]]:
        """Let a slot take a step in the block before the search asks for it. The future gets what came of it; None without that."""
        came: asyncio.Future[Transition | ActionError | None] = asyncio.get_running_loop().create_future()
        self._ahead[path, action.key] = slot, came
        try:
            yield came
        finally:
            if not came.done():
                self._ahead.pop((path, action.key), None)
                came.set_result(None)

    async def taken(self, path: Sequence[Waypoint], action: Action) -> Transition | ActionError | None:
        """Return, once, what came of a step that was taken before the search asked for it. None without that."""
        _, came = self._ahead.pop((tuple(path), action.key), (None, None))
        if came is None:
            return None
        await asyncio.wait([came])
        return came.result()

    def is_ahead(self, path: Sequence[Waypoint]) -> bool:
        """Return whether a step from a state was taken, or is being taken, before the search asked for it."""
        end = tuple(path)
        return any(state == end for state, _ in self._ahead)

    @property
    def spares(self) -> int:
        """Number of states that may be prepared at the same time."""
        return self._spare

    def may_prepare(self, path: Sequence[Waypoint], *, since: int) -> bool:
        """Return True where a slot can be brought to the path's end, and none is there or on its way. `since`: as in Slot.arrive.

        False while as many environments move as there are cores: a worker that needs one now would wait longer.
        """
        if tuple(path) in self._coming or not self._free or len(self._all) - len(self._free) >= self._cores:
            return False
        near = [_seconds_to(each, path) for each in self._free if each.opened]  # what opening takes is known after the first alone
        return min(near, default=WORTHWHILE) >= WORTHWHILE and bool(self._free[0].routes(path, since=since))

    def has_route(self, path: Sequence[Waypoint], *, since: int) -> bool:
        """Return True where any slot can be brought to the path's end. `since`: as in Slot.arrive."""
        return any(each.routes(path, since=since) for each in self._all)

    def pays(self, path: Sequence[Waypoint], returns: float) -> bool:
        """Return True where a snapshot of the path's end, of an environment there that is not lent, saves more than it costs.

        `returns`: how many times an environment is expected to be sent there.
        """
        if self.snapshots.has(tuple(path)) or not self._free or self.has_free_at(path):
            return False
        return self.costs.pays(returns, min(_seconds_to(each, path) for each in self._free))

    def note_prepared(self, slot: Slot, arrival: Arrival, path: Sequence[Waypoint]) -> None:
        """Note that a slot was brought to a state before a worker needed it."""
        if arrival.arrived:
            self._prepared[slot] = tuple(path)

    def was_prepared(self, slot: Slot, path: Sequence[Waypoint]) -> bool:
        """Return True, once, where a slot was brought to a state before a worker needed it."""
        return self._prepared.pop(slot, None) == tuple(path)

    @property
    def open(self) -> int:
        """Number of environments that are open now."""
        return sum(slot.opened for slot in self._all)

    @property
    def busy(self) -> bool:
        """All slots for workers are lent."""
        return self._workers.locked()

    def has_free_at(self, path: Sequence[Waypoint]) -> bool:
        """Return True where a free slot is at the path's end."""
        return any(each.is_at(path) for each in self._free)

    def advance(self, root: Sequence[Waypoint], *, wrote: bool) -> None:
        """Drop the snapshots that do not lead to a state below the new root.

        `wrote`: the step to the root wrote, so that snapshots of less than a whole environment hold an older outside.
        """
        self.snapshots.retain_below(root)
        self._ahead = {key: came for key, came in self._ahead.items() if key[0][: len(root)] == tuple(root)}
        if wrote:
            self.snapshots.written.add(tuple(root))
            self.snapshots.drop_outdated()

    async def close(self) -> None:
        """Close all environments and drop their snapshots."""
        for slot in self._all:
            await slot.close()
        self.snapshots.clear()


def open_slots(attempt: AttemptContext, capabilities: Capabilities) -> Slots:
    """Return the slots of an attempt, as many as its configuration and its environments allow."""
    size, spare, more = _sizes(attempt, capabilities)
    return Slots(
        attempt.environments, attempt.task, size, spare=spare, more=more, clock=lambda: attempt.journal.now,
        resets=not attempt.state.live.kept,
    )  # fmt: skip


def _sizes(attempt: AttemptContext, capabilities: Capabilities) -> tuple[int, int, int]:
    """Return the numbers of slots for workers, to spare, and beyond those.

    One and none where the side effects of one environment show in the others. None beyond where an environment may hold a login that
    another one waits for.
    """
    search = attempt.config.search
    shared = not capabilities.isolated and attempt.config.browser.speculation == "free"
    if shared or not capabilities.concurrent:
        return 1, 0, 0
    spare = search.prefetch if capabilities.fidelity != "replay" else 0
    return search.workers, spare, search.standing if capabilities.isolated and capabilities.fidelity == "full" else 0


def _seconds_to(slot: Slot, path: Sequence[Waypoint]) -> float:
    """Return the expected seconds to a state, rounded to hundredths: less is noise. Infinite if no route leads there."""
    routes = slot.routes(path)
    return round(routes[0].seconds, 2) if routes else math.inf


FORECAST = 2
"""Number of forecast states beyond that of spare environments, since environments are at some of them already."""


class Prefetch:
    """Follows the search's forecast. An async context manager, which cancels what is in flight at its exit.

    The exit raises what broke meanwhile, other than an environment: a journal that cannot be written, or the forecast.
    """

    def __init__(self, attempt: AttemptContext, slots: Slots) -> None:
        self._attempt, self._state, self._slots = attempt, attempt.state, slots
        self._tasks = set[asyncio.Task[None]]()
        self._loop: asyncio.Task[None] | None = None
        self._broken: BaseException | None = None
        limits, search = attempt.config.limits, attempt.config.search
        capped = any(each.transitions is not None for each in (limits, search.limits, search.iteration))
        self._replays = not capped and attempt.live.isolated
        """Whether steps may be taken that the search has not asked for."""

    async def __aenter__(self) -> Prefetch:
        if self._slots.spares and self._state.search.algorithm.simulates:
            self._loop = asyncio.create_task(self._follow())
            self._loop.add_done_callback(self._done)
        return self

    async def __aexit__(self, *exc: object) -> None:
        tasks = [*self._tasks, *([self._loop] if self._loop else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._broken is not None and exc[0] is None:
            raise self._broken

    async def _follow(self) -> None:
        """Look at the forecast after every change."""
        while True:
            self._look()
            await self._attempt.changed.wait()

    def _look(self) -> None:
        tree = self._state.search.tree
        likely = self._state.search.forecast(FORECAST + self._slots.spares)
        acting = [tree.nodes[work.selection.node] for work in tree.open.values() if work.left[0] in ("step", "rollout")]
        judged = [work.target for work in tree.open.values() if work.target is not None]
        wanted = [waypoints(node) for node in (*acting, *likely, *judged)]
        for node in likely:
            if len(self._tasks) >= self._slots.spares:
                return
            path = waypoints(node)
            if not node.edges and self._slots.worth_snapshot(path, self._state.search.mean_actions - 1) is not None:
                self._start(self._snapshot(node, self._state.search.mean_actions - 1))
                continue
            if node.leaf or self._state.search.is_lost(node) or self._slots.is_ahead(path):
                continue
            if self._slots.may_prepare(path, since=self._since(path)):
                self._start(self._prepare(node, wanted))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def _snapshot(self, node: Node, returns: float) -> None:
        """Take a snapshot of a state whose actions are being proposed, as the search would do once it has them."""
        path, began = tuple(waypoints(node)), self._attempt.journal.now
        if (slot := self._slots.worth_snapshot(path, returns)) is not None:
            with self._slots.lent(slot, path):
                if (snapshot := await slot.snapshot_if_worth(returns)) is not None:
                    self._attempt.record_snapshot(snapshot, node, since=began)

    def _since(self, path: list[Waypoint]) -> int:
        """Return the waypoint up to which no step may be repeated: the last or none."""
        return 0 if self._replays else len(path) - 1

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            self._broken = self._broken or task.exception()

    async def _prepare(self, node: Node, wanted: list[list[Waypoint]]) -> None:
        """Bring a spare environment to a node."""
        path, began = waypoints(node), self._attempt.journal.now
        async with self._slots.spare(path, wanted) as slot:
            if slot is None:
                return
            try:
                arrival = await slot.arrive(path, since=self._since(path))
            except EnvironmentFailure:
                return  # the worker that needs the state reports what is wrong
            self._slots.note_prepared(slot, arrival, path)
            self._record(arrival, node, slot, began)
            self._attempt.record_passed(arrival, node)
            if arrival.arrived and self._replays and (index := self._next_edge(node)) is not None and self._slots.arrived(tuple(path)):
                await self._step_ahead(slot, arrival, node, index)

    def _record(self, arrival: Arrival, node: Node, slot: Slot, began: float, *, ahead: int = -1) -> None:
        self._attempt.record(
            ev.Prepared(
                node=node.id, route=arrival.route, match=arrival.match, transitions=slot.take_step_count(), reason=arrival.reason,
                seconds=round(self._attempt.journal.now - began, 6), ahead=ahead,
            )
        )  # fmt: skip

    def _next_edge(self, node: Node) -> int | None:
        """Return the untried action that the search takes first in a state, if it may be taken unasked: a tool's may not."""
        search, tools = self._state.search, self._attempt.live.repeatable
        untried = [
            index
            for index, edge in enumerate(node.edges)
            if not (edge.closed or edge.child or edge.in_flight or (node.id, index) in search.acted or edge.action.name in tools)
        ]
        return max(untried, key=lambda index: node.edges[index].prior, default=None)

    async def _step_ahead(self, slot: Slot, arrival: Arrival, node: Node, index: int) -> None:
        """Take the search's likely next step in a state where a spare environment is, behind the model calls in flight.

        A snapshot of the state comes before the step if it saves time, and one of what was written after it, as when a worker acts.
        """
        action, path = node.edges[index].action, tuple(waypoints(node))
        with self._slots.taking(slot, path, action) as came:
            began = self._attempt.journal.now
            try:
                if (snapshot := await slot.snapshot_if_worth(self._state.search.expected_returns(node, index))) is not None:
                    self._attempt.record_snapshot(snapshot, node, since=began)
                began = self._attempt.journal.now
                try:
                    found: Transition | ActionError = await slot.act(action)
                except ActionError as error:
                    found = error
            except (EnvironmentFailure, StateChanged):
                return  # the worker that takes the step reports what is wrong
            self._record(arrival, node, slot, began, ahead=index)
            came.set_result(found)
        began = self._attempt.journal.now
        if (snapshot := await slot.snapshot_if_written()) is not None:
            self._attempt.record_snapshot(snapshot, node, index, since=began)
