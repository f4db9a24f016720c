"""Steps in speculative environments: bring one to a node, act, and journal what came."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from exact.budget import Reservation
from exact.environments.restore import Arrival, Divergence, Slot, Waypoint
from exact.errors import ActionError, EnvironmentFailure
from exact.runs.attempt.context import Setting
from exact.runs.attempt.observations import seen_in, waypoints, wrote
from exact.runs.attempt.slots import Places
from exact.runs.journal import events as ev
from exact.runs.journal.state import State, beyond, written
from exact.search.base import Diverged, Failure, Selection, Stepped
from exact.search.tree import Node

DROPPED = Failure(kind="environment", reason="nobody waits for it any more")


class Walk:
    """Acts at nodes."""

    def __init__(self, setting: Setting, places: Places) -> None:
        self._setting, self._state, self._places = setting, setting.state, places
        self._lost: dict[int, int] = {}

    def lost(self, selection: Selection) -> int:
        """Steps that were taken for a selection in environments that broke, and are not journalled yet."""
        return self._lost.pop(selection.id, 0)

    async def step(self, selection: Selection, node: Node, held: Reservation) -> Stepped | Diverged | Failure:
        """What the selection's edge leads to. Raises EnvironmentFailure, BudgetExceeded."""
        assert selection.edge is not None
        way = (node.id, selection.edge)
        if way not in self._state.acted and (missed := await self._act(selection, node, held)):
            return missed
        acted = self._state.acted[way]
        if acted.refused:
            return Failure(kind="action", reason=acted.refused)
        return Stepped(
            fingerprint=acted.fingerprint,
            terminated=acted.terminated,
            blocked=any(effect.is_blocked for effect in acted.effects),
            observation=acted.observation,
            screenshot=acted.screenshot,
            beyond=beyond(node.beyond, acted.effects, acted.info),
        )

    async def _act(self, selection: Selection, node: Node, held: Reservation) -> Diverged | Failure | None:
        """Take the edge in an environment at the node. What stood in the way, or nothing."""
        assert selection.edge is not None
        path = waypoints(node)
        async with self.at(path, selection, node, held, more=1) as found:
            if not isinstance(found, Slot):
                return found
            await self._keep(found, node, selection.edge)
            began, seen = self._setting.journal.now, dict[str, Any]()
            action = node.edges[selection.edge].action
            try:
                transition = await found.act(action)
                seen = seen_in(transition, self._setting.blobs)
                seen["wrote"] = wrote(self._setting.blobs, node, selection.edge, transition.effects)
            except ActionError as error:
                seen = {"refused": str(error)}
            seconds = round(self._setting.journal.now - began, 6)
            found.take_step_count()
            self._setting.record(
                ev.Acted(node=node.id, edge=selection.edge, action=action.key, seconds=seconds, selection=selection.id, **seen)
            )
            held.count("transitions", 1)
            began = self._setting.journal.now
            if (snapshot := await found.snapshot_if_written()) is not None:
                self._setting.kept(snapshot, node, selection.edge, since=began)
        return None

    @asynccontextmanager
    async def at(
        self, path: Sequence[Waypoint], selection: Selection, node: Node, held: Reservation, *, more: int
    ) -> AsyncIterator[Slot | Diverged | Failure]:
        """An environment at the end of a path, which leads through `node`, with `more` steps held back; or why there is none."""
        if selection.id in self._state.diverged:
            yield self._state.diverged[selection.id]
            return
        isolated = (await self._setting.live.open()).capabilities.isolated
        if self._state.wrote and not isolated and not len(self._places.shelf):
            yield Failure(kind="drifted", reason="a committed action wrote outside, so replay does not lead here")
            return
        async with self._places.borrow(path) as place:
            if selection.id not in self._state.tree.open:
                yield DROPPED
                return
            try:
                held.add({"transitions": more})
                yield await self._arrived(place, path, selection, node, held, since=0 if isolated else self._since(path, node)) or place
            except EnvironmentFailure:
                self._lost[selection.id] = place.take_step_count()
                raise
            except asyncio.CancelledError:
                if steps := place.take_step_count():
                    self._setting.record(
                        ev.Failed(what="budget", node=node.id, reason="cut short", transitions=steps, selection=selection.id)
                    )
                raise

    async def _arrived(
        self, place: Slot, path: Sequence[Waypoint], selection: Selection, node: Node, held: Reservation, *, since: int
    ) -> Diverged | Failure | None:
        """Bring an environment to the end of a path; what stood in the way, or nothing. `since`: as in Place.arrive."""
        began, prepared = self._setting.journal.now, self._places.was_prepared(place, path)
        arrival = await place.arrive(path, reserve=lambda steps: held.add({"transitions": steps}), since=since)
        place.take_step_count()
        seconds = round(self._setting.journal.now - began, 6)
        met = await self._diverged(arrival.divergence, node) if arrival.divergence else None
        self._setting.record(
            arrived(
                arrival,
                node=node.id,
                selection=selection.id,
                seconds=seconds,
                diverged=met if isinstance(met, Diverged) else None,
                environments=self._places.open + 1,
                prepared=prepared and arrival.route == "reuse",
            )
        )
        held.count("transitions", arrival.transitions)
        return met or (Failure(kind="drifted", reason=arrival.reason) if arrival.match == "drifted" else None)

    def _since(self, path: Sequence[Waypoint], node: Node) -> int:
        """The last waypoint on a path whose step may have written outside: those of a search are not told apart."""
        if written(node.beyond) != written(self._state.tree.root.beyond):
            return len(path) - 1
        done = self._state.carried_out
        return max((index for index, step in enumerate(done, 1) if wrote_outside(step)), default=0)

    async def _keep(self, place: Slot, node: Node, edge: int) -> None:
        """Take a snapshot of a node before an action changes it, where that pays."""
        began = self._setting.journal.now
        if (snapshot := await place.snapshot_if_worth(returns(self._state, node, edge))) is not None:
            self._setting.kept(snapshot, node, since=began)

    async def _diverged(self, divergence: Divergence, node: Node) -> Diverged | Failure:
        """What an environment that went elsewhere means for the search: an outcome of an edge below the root, else that it did not
        arrive."""
        root, chain = self._state.tree.root, ancestry(node)
        if not root.depth < divergence.waypoint < len(chain):
            always = (await self._setting.live.open()).capabilities.deterministic
            reason = "the way here leads elsewhere, outside of what is searched"
            return Failure(kind="drifted" if always else "environment", reason=reason)
        child = chain[divergence.waypoint]
        assert child.parent is not None
        seen = seen_in(divergence.transition, self._setting.blobs)
        effects, info = seen.pop("effects"), seen.pop("info")
        stepped = Stepped(blocked=any(effect.is_blocked for effect in effects), beyond=beyond(child.parent.beyond, effects, info), **seen)
        return Diverged(node=child.parent.id, edge=child.via, stepped=stepped)


def arrived(arrival: Arrival, *, diverged: Diverged | None = None, **more: Any) -> ev.Arrived:
    """The event of an arrival; `more`: its fields that the environment does not know."""
    fields = msgspec.structs.asdict(arrival)
    fields["verdict"] = fields.pop("match")
    del fields["divergence"]
    return ev.Arrived(diverged=diverged, **fields, **more)


def wrote_outside(step: ev.Committed) -> bool:
    """Whether a committed step changed the outside."""
    return any(effect.is_write for effect in step.effects)


def returns(state: State, node: Node, edge: int) -> float:
    """How often the search is expected to come back to a node once it has acted there by an edge.

    As often as it has come back to the nodes it acted in so far, once to begin with; but not oftener than there are other actions left.
    """
    left = sum(not (each.closed or index == edge or (node.id, index) in state.acted) for index, each in enumerate(node.edges))
    return min(left, returned(state) - 1)


def returned(state: State) -> float:
    """How often the search acted in a node, on average over those it acted in so far; twice to begin with."""
    return (len(state.acted) + 2) / (len(state.acted_at) + 1)


def ancestry(node: Node) -> list[Node]:
    """The states from the task's start to a node, the node included."""
    found, here = list[Node](), node
    while True:
        found.append(here)
        if here.parent is None:
            return found[::-1]
        here = here.parent
