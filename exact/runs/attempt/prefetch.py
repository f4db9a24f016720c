"""While a model thinks, spare environments are brought to the states in which the search is likely to act next.

Never with an environment that a worker needs; and where steps are capped or cannot be undone, only by routes that repeat none. What is
prepared is not a result: the search goes the same way with it and without it.
"""

from __future__ import annotations

import asyncio

from exact.environments.restore import Waypoint
from exact.errors import EnvironmentFailure
from exact.runs.attempt.context import Setting
from exact.runs.attempt.observations import waypoints
from exact.runs.attempt.slots import Places
from exact.runs.journal import events as ev
from exact.search.tree import Node

FORECAST = 2
"""How many more states are looked at than there are spare environments: some are stood at already."""


class Prefetch:
    """Follows the search's forecast. An async context manager: what is under way when it is left is cancelled.

    Leaving raises what broke in it beyond an environment: a journal that cannot be written.
    """

    def __init__(self, setting: Setting, places: Places) -> None:
        self._setting, self._state, self._places = setting, setting.state, places
        self._tasks = set[asyncio.Task[None]]()
        self._loop: asyncio.Task[None] | None = None
        self._broken: BaseException | None = None
        limits, search = setting.config.limits, setting.config.search
        capped = any(each.transitions is not None for each in (limits, search.limits, search.iteration))
        self._replays = not capped and setting.live.isolated

    async def __aenter__(self) -> Prefetch:
        if self._places.spares:
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
        """With everything that happens, look again at what is likely next."""
        while True:
            self._look()
            await self._setting.stirred.wait()

    def _look(self) -> None:
        tree = self._state.tree
        likely = self._state.algorithm.forecast(tree, FORECAST + self._places.spares)
        acting = [tree.nodes[work.selection.node] for work in tree.open.values() if work.left[0] in ("step", "rollout")]
        judged = [work.target for work in tree.open.values() if work.target is not None]
        wanted = [waypoints(node) for node in (*acting, *likely, *judged)]
        for node in likely:
            if len(self._tasks) >= self._places.spares:
                return
            if not node.leaf and self._places.may_prepare(path := waypoints(node), since=self._since(path)):
                task = asyncio.create_task(self._prepare(node, wanted))
                self._tasks.add(task)
                task.add_done_callback(self._done)

    def _since(self, path: list[Waypoint]) -> int:
        """Steps up to this waypoint are not repeated here: all, or none."""
        return 0 if self._replays else len(path) - 1

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            self._broken = self._broken or task.exception()

    async def _prepare(self, node: Node, wanted: list[list[Waypoint]]) -> None:
        """Bring a spare environment to a node."""
        path, began = waypoints(node), self._setting.journal.now
        async with self._places.spare(path, wanted) as place:
            if place is None:
                return
            try:
                arrival = await place.arrive(path, since=self._since(path))
            except EnvironmentFailure:
                return  # whoever needs the state next will say what is wrong
            self._places.prepared(place, arrival, path)
            seconds = round(self._setting.journal.now - began, 6)
            self._setting.record(
                ev.Prepared(
                    node=node.id,
                    route=arrival.route,
                    verdict=arrival.match,
                    transitions=place.take_step_count(),
                    reason=arrival.reason,
                    seconds=seconds,
                )
            )
