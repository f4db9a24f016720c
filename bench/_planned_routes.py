"""The route that a slot takes back to a state, and the seconds of both routes."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from _environments import Site
from _route_times import fork_seconds, timed

from exact.environments.browser.fork.factory import ForkingFactory
from exact.environments.restore.costs import Costs
from exact.environments.restore.slot import Slot
from exact.environments.restore.snapshots import SnapshotStore, StoredSnapshot
from exact.environments.restore.waypoint import Waypoint


async def scouted(site: Site, environments: ForkingFactory, depths: tuple[int, ...]) -> tuple[list[Waypoint], dict[int, StoredSnapshot]]:
    """Return the path to the deepest depth, and a snapshot of each depth on it."""
    async with environments.open(simulation=True) as scout:
        seen = await scout.reset(site.task)
        path, kept = [Waypoint(None, seen.fingerprint)], dict[int, StoredSnapshot]()
        for step in range(max(depths)):
            action = site.action(scout, seen, step)
            transition = await scout.step(action)
            assert transition.observation is not None
            seen = transition.observation
            path.append(Waypoint(action, seen.fingerprint))
            if step + 1 in depths:
                kept[step + 1] = StoredSnapshot(tuple(path), await scout.snapshot(), scout, 0)
        return path, kept


async def planner(site: Site, environments: ForkingFactory, depths: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return the route of a slot with measured costs and a snapshot of every depth, and the times of both routes at that depth."""
    async with AsyncExitStack() as stack:
        path, kept = await scouted(site, environments, depths)
        costs, bare, shelf = Costs(), SnapshotStore(environments), SnapshotStore(environments)
        replaying = Slot(environments, site.task, store=bare, costs=costs)
        choosing = Slot(environments, site.task, store=shelf, costs=costs)
        for place in (replaying, choosing):
            stack.push_async_callback(place.close)
            await place.arrive(path[:1])
        replayed, forked = {}, {}
        for depth in depths:
            await _away(replaying, path)  # else the reset would not be in it
            replayed[depth] = (await timed(replaying.arrive(path[: depth + 1])))[0]
            forked[depth] = await fork_seconds(environments, kept[depth].snapshot)
            costs.add("fork", forked[depth])
        for each in kept.values():
            shelf.add(each)
        rows = []
        for depth in depths:
            await _away(choosing, path)
            arrival = await choosing.arrive(path[: depth + 1])
            rows.append({"depth": depth, "chosen": arrival.route, "replay_s": replayed[depth], "fork_s": forked[depth]})
        return rows


async def _away(place: Slot, path: list[Waypoint]) -> None:
    """Go to a state that is on the way to none of the others."""
    await place.arrive(path[:1])
    for waypoint in (path[2], path[1], path[2]):
        assert waypoint.action is not None
        await place.act(waypoint.action)
