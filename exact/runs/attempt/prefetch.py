"""Prefetching: while a model thinks, spare environments are brought to the states in which the search is likely to act next.

No environment is used that a worker needs. Where steps are capped or cannot be undone, only routes are taken that repeat none. A prepared
state is not a result: the search takes the same course with and without it.
"""

from __future__ import annotations

import asyncio

from exact.environments.restore import Waypoint
from exact.errors import EnvironmentFailure
from exact.runs.attempt.context import AttemptContext
from exact.runs.attempt.observations import waypoints
from exact.runs.attempt.slots import Slots
from exact.runs.journal import events as ev
from exact.search.tree import Node

FORECAST = 2
"""Number of forecast states beyond that of spare environments, since environments are at some of them already."""


class Prefetch:
    """Follows the search's forecast. An async context manager, which cancels what is in flight at its exit.

    The exit raises what broke meanwhile, other than an environment: a journal that cannot be written.
    """

    def __init__(self, attempt: AttemptContext, slots: Slots) -> None:
        self._attempt, self._state, self._slots = attempt, attempt.state, slots
        self._tasks = set[asyncio.Task[None]]()
        self._loop: asyncio.Task[None] | None = None
        self._broken: BaseException | None = None
        limits, search = attempt.config.limits, attempt.config.search
        capped = any(each.transitions is not None for each in (limits, search.limits, search.iteration))
        self._replays = not capped and attempt.live.isolated

    async def __aenter__(self) -> Prefetch:
        if self._slots.spares and self._state.algorithm.simulates:
            self._loop = asyncio.create_task(self._follow())
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
        tree = self._state.tree
        likely = self._state.algorithm.forecast(tree, FORECAST + self._slots.spares)
        acting = [tree.nodes[work.selection.node] for work in tree.open.values() if work.left[0] in ("step", "rollout")]
        judged = [work.target for work in tree.open.values() if work.target is not None]
        wanted = [waypoints(node) for node in (*acting, *likely, *judged)]
        for node in likely:
            if len(self._tasks) >= self._slots.spares:
                return
            if not node.leaf and self._slots.may_prepare(path := waypoints(node), since=self._since(path)):
                task = asyncio.create_task(self._prepare(node, wanted))
                self._tasks.add(task)
                task.add_done_callback(self._done)

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
            seconds = round(self._attempt.journal.now - began, 6)
            self._attempt.record(
                ev.Prepared(
                    node=node.id,
                    route=arrival.route,
                    match=arrival.match,
                    transitions=slot.take_step_count(),
                    reason=arrival.reason,
                    seconds=seconds,
                )
            )
            self._attempt.record_passed(arrival, node)
