"""Simulated steps: bring an environment of the search to a node, act in it, and journal what came."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from exact.budget import Reservation
from exact.environments.base import StateChanged, Transition
from exact.environments.restore.slot import Slot
from exact.environments.restore.waypoint import Arrival, Divergence, Waypoint
from exact.errors import ActionError, EnvironmentFailure
from exact.runs.attempt.attempt_context import AttemptContext
from exact.runs.attempt.live_snapshot import LiveSnapshots
from exact.runs.attempt.observations import ancestry, observed_fields, waypoints, wrote
from exact.runs.attempt.slots import Slots
from exact.runs.journal import events as ev
from exact.runs.journal.search_state import beyond
from exact.search.base import Diverged, Failure, Selection, Stepped
from exact.search.tree import Node, written

DROPPED = Failure(kind="environment", reason="the selection was closed before its step was taken")


class Simulator:
    """Acts at nodes of the tree, in environments lent from the slots."""

    def __init__(self, attempt: AttemptContext, slots: Slots, snapshots: LiveSnapshots) -> None:
        self._attempt, self._state, self._slots, self._snapshots = attempt, attempt.state, slots, snapshots
        self._broken: Counter[tuple[int, int | None]] = Counter()
        """Environments that broke, by the (node, edge) that they were to take."""
        self._lost: dict[int, int] = {}
        """Steps by selection that were taken in environments which then broke, and are not journalled yet."""

    def take_lost_steps(self, selection: Selection) -> int:
        """Return, once, how many steps a selection lost in environments that broke."""
        return self._lost.pop(selection.id, 0)

    async def step(self, selection: Selection, node: Node, reserved: Reservation) -> Stepped | Diverged | Failure:
        """Return what the selection's edge leads to, from the journal where it was taken before.

        Where no environment comes to the node, the action stays untried and its effect unknown; that says nothing against it. None is sent
        to a state that is lost: its further actions are closed, and only those of the root are judged untried. Raises EnvironmentFailure,
        BudgetExceeded.
        """
        assert selection.edge is not None
        known = self._state.search.taken
        if known(selection) is None and self._state.search.is_lost(node):
            if node is not self._state.search.tree.root:
                return Failure(kind="drifted", reason=f"state {node.id} cannot be had again")
            return Stepped(fingerprint="", unreached=True, beyond=node.beyond)
        if known(selection) is None and (obstacle := await self._try(selection, node, reserved)):
            drifted = isinstance(obstacle, Failure) and obstacle.kind == "drifted"
            return Stepped(fingerprint="", unreached=True, beyond=node.beyond) if drifted else obstacle
        acted = known(selection)
        assert acted is not None
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

    async def _try(self, selection: Selection, node: Node, reserved: Reservation) -> Diverged | Failure | None:
        """Take the edge and return what prevented it, or None. Raises EnvironmentFailure, BudgetExceeded.

        Where nothing is rolled back, there may be no other way to the node. So what breaks on it twice leaves the action untried, and so
        does a state that twice has changed by itself before the action.
        """
        try:
            return await self._act(selection, node, reserved)
        except (EnvironmentFailure, StateChanged) as error:
            self._broken[node.id, selection.edge] += 1
            first = self._broken[node.id, selection.edge] < 2
            if isinstance(error, EnvironmentFailure) and (first or self._attempt.live.isolated):
                raise
            if first:
                raise EnvironmentFailure(str(error)) from error
            lost, reason = self.take_lost_steps(selection), str(error)
            self._attempt.record(ev.Failed(what="environment", node=node.id, reason=reason, transitions=lost, selection=selection.id))
            return Failure(kind="drifted", reason=reason)

    async def _act(self, selection: Selection, node: Node, reserved: Reservation) -> Diverged | Failure | None:
        """Take the edge in an environment at the node and journal it. Return what prevented it, or None."""
        assert selection.edge is not None
        path, action, began = waypoints(node), node.edges[selection.edge].action, self._attempt.journal.now
        if (came := await self._slots.taken(path, action)) is not None:
            if selection.id not in self._state.search.tree.open:
                return DROPPED
            self._record(came, selection, node, began, ahead=True)
            return None
        async with self.at(path, selection, node, reserved, more=1) as slot:
            if not isinstance(slot, Slot):
                return slot
            await self._snapshot(slot, node, selection.edge)
            began = self._attempt.journal.now
            try:
                came = await slot.act(action)
            except StateChanged:
                raise
            except ActionError as error:
                came = error
            slot.take_step_count()
            self._record(came, selection, node, began)
            reserved.count("transitions", 1)
            began = self._attempt.journal.now
            if (snapshot := await slot.snapshot_if_written()) is not None:
                self._attempt.record_snapshot(snapshot, node, selection.edge, since=began)
        return None

    def _record(self, came: Transition | ActionError, selection: Selection, node: Node, began: float, *, ahead: bool = False) -> None:
        """Journal what came of a selection's step, which the search has waited for since `began`."""
        assert selection.edge is not None
        seen: dict[str, Any] = {"refused": str(came)} if isinstance(came, ActionError) else observed_fields(came, self._attempt.blobs)
        if not isinstance(came, ActionError):
            seen["wrote"] = wrote(self._attempt.blobs, node, selection.edge, came.effects)
        action, seconds = node.edges[selection.edge].action.key, round(self._attempt.journal.now - began, 6)
        self._attempt.record(
            ev.Acted(node=node.id, edge=selection.edge, action=action, seconds=seconds, selection=selection.id, ahead=ahead, **seen)
        )

    @asynccontextmanager
    async def at(
        self, path: Sequence[Waypoint], selection: Selection, node: Node, reserved: Reservation, *, more: int
    ) -> AsyncIterator[Slot | Diverged | Failure]:
        """Lend an environment at the end of a path through `node`, with `more` steps reserved; or yield why there is none."""
        if selection.id in self._state.search.diverged:
            yield self._state.search.diverged[selection.id]
            return
        since = 0 if self._attempt.live.isolated else self._last_write(path, node)
        if (since or self._state.live.kept) and not await self._leads_to(path, since):
            why = "a committed action wrote outside" if since else "the goal began where an earlier one had led"
            yield Failure(kind="drifted", reason=f"{why}, so replay does not lead here")
            return
        async with self._slots.borrow(path) as slot:
            if selection.id not in self._state.search.tree.open:
                yield DROPPED
                return
            try:
                reserved.add({"transitions": more})
                yield await self._bring(slot, path, selection, node, reserved, since=since) or slot
            except (EnvironmentFailure, StateChanged):
                self._lost[selection.id] = slot.take_step_count()
                raise
            except asyncio.CancelledError:
                if steps := slot.take_step_count():
                    self._attempt.record(
                        ev.Failed(what="budget", node=node.id, reason="cut short", transitions=steps, selection=selection.id)
                    )
                raise

    async def _leads_to(self, path: Sequence[Waypoint], since: int) -> bool:
        """Return whether a route leads to the end of a path, from a snapshot of the live environment where there is no other."""
        return self._slots.has_route(path, since=since) or (await self._snapshots.take() and self._slots.has_route(path, since=since))

    async def _bring(
        self, slot: Slot, path: Sequence[Waypoint], selection: Selection, node: Node, reserved: Reservation, *, since: int
    ) -> Diverged | Failure | None:
        """Bring an environment to the end of a path and journal the arrival. Return what prevented it, or None.

        `since`: as in Slot.arrive.
        """
        began, prepared = self._attempt.journal.now, self._slots.was_prepared(slot, path)
        arrival = await slot.arrive(path, reserve=lambda steps: reserved.add({"transitions": steps}), since=since)
        slot.take_step_count()
        seconds = round(self._attempt.journal.now - began, 6)
        met = await self._diverged(arrival.divergence, node) if arrival.divergence else None
        self._attempt.record(
            arrival_event(
                arrival,
                node=node.id,
                selection=selection.id,
                seconds=seconds,
                diverged=met if isinstance(met, Diverged) else None,
                environments=self._slots.open + 1,
                prepared=prepared and arrival.route == "reuse",
            )
        )
        self._attempt.record_passed(arrival, node)
        reserved.count("transitions", arrival.transitions)
        return met or (Failure(kind="drifted", reason=arrival.reason) if arrival.match == "drifted" else None)

    def _last_write(self, path: Sequence[Waypoint], node: Node) -> int:
        """Return the last waypoint on a path whose step may have written outside.

        Writes of the search are not told apart: one that a node has beyond the root may be anywhere on the path.
        """
        if written(node.beyond) != written(self._state.search.tree.root.beyond):
            return len(path) - 1
        steps = enumerate(self._state.live.carried_out, 1)
        return max((index for index, step in steps if any(effect.is_repeated for effect in step.effects)), default=0)

    async def _snapshot(self, slot: Slot, node: Node, edge: int) -> None:
        """Take a snapshot of a node before an action changes it, where that pays."""
        began = self._attempt.journal.now
        if (snapshot := await slot.snapshot_if_worth(self._state.search.expected_returns(node, edge))) is not None:
            self._attempt.record_snapshot(snapshot, node, since=began)

    async def _diverged(self, divergence: Divergence, node: Node) -> Diverged | Failure:
        """Return what a divergence on the way means for the search.

        Below the root it is another outcome of an edge; above it, a failure to arrive.
        """
        root, chain = self._state.search.tree.root, ancestry(node)
        if not root.depth < divergence.waypoint < len(chain):
            reason = "the path to this state diverged above the root of the search"
            return Failure(kind="environment" if self._state.search.tree.stochastic else "drifted", reason=reason)
        child = chain[divergence.waypoint]
        assert child.parent is not None
        seen = observed_fields(divergence.transition, self._attempt.blobs)
        effects, info = seen.pop("effects"), seen.pop("info")
        stepped = Stepped(blocked=any(effect.is_blocked for effect in effects), beyond=beyond(child.parent.beyond, effects, info), **seen)
        return Diverged(node=child.parent.id, edge=child.via, stepped=stepped)


def arrival_event(arrival: Arrival, *, diverged: Diverged | None = None, **more: Any) -> ev.Arrived:
    """Return the event of an arrival. `more`: the fields of the event that an Arrival does not have."""
    fields = msgspec.structs.asdict(arrival)
    del fields["divergence"], fields["snapshots"]
    return ev.Arrived(diverged=diverged, **fields, **more)


def wrote_outside(step: ev.Committed) -> bool:
    """Return True where a committed step changed something outside."""
    return any(effect.is_write for effect in step.effects)
