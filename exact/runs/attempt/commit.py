"""Commits: from a decision to a committed action, in two phases. The intent is journalled first, then the outcome."""

from __future__ import annotations

from exact.environments.restore.slot import Slot
from exact.errors import BudgetExceeded, EnvironmentFailure, ModelError, UncertainCommit
from exact.reflection.record import marks
from exact.runs.attempt.attempt_context import AttemptContext
from exact.runs.attempt.ending import is_stopped_unsearched
from exact.runs.attempt.live import UNCERTAIN
from exact.runs.attempt.live_snapshot import LiveSnapshots
from exact.runs.attempt.observations import waypoints
from exact.runs.attempt.simulate import arrival_event, wrote_outside
from exact.runs.attempt.slots import Slots
from exact.runs.journal import events as ev
from exact.search.base import Decision
from exact.search.rules.outage import outage, unreadable
from exact.search.tree import Node, SearchError

PLANNED = "the plan goes on"


class Committer:
    """Decides on actions and commits them."""

    def __init__(self, attempt: AttemptContext, slots: Slots, snapshots: LiveSnapshots, *, repeat_uncertain: bool = False) -> None:
        self._attempt, self._state, self._slots, self._snapshots = attempt, attempt.state, slots, snapshots
        self._repeat_uncertain = repeat_uncertain

    def decide(self, stopped: str) -> str:
        """Decide what to commit and journal the intent. Return why nothing can be committed; empty where something is.

        `stopped`: why the search ended. Raises ModelError or EnvironmentFailure where an outage left nothing to decide by.
        """
        if (ordered := self._state.search.ordered) is not None:
            edge = self._state.search.tree.root.edges[ordered]
            self._intend(Decision(edges=(ordered,), reason=self._state.search.ordered_by, value=edge.value), stopped)
            return ""
        if is_stopped_unsearched(self._state):
            return stopped
        if broken := outage(self._state.search.tree):
            kind, _, reason = broken.partition(": ")
            error = (ModelError if kind == "model" else EnvironmentFailure)(reason)
            raise error.final() if reason in self._state.spending.lasting_failures else error
        if said := unreadable(self._state.search.tree):
            return f"the agent's answers cannot be parsed: {said}"
        try:
            decision = self._state.search.decide()
        except SearchError:
            return f"no action is left: {stopped}"
        self._intend(decision, stopped)
        return ""

    def continue_plan(self) -> None:
        """Journal the intent to take the next step of a plan."""
        root, edges = self._state.search.tree.root, self._state.search.plan
        reason = self._state.live.decisions[-1].decision.reason
        self._intend(Decision(edges=edges, reason=reason, value=root.edges[edges[0]].value), PLANNED)

    def _intend(self, decision: Decision, stopped: str) -> None:
        root = self._state.search.tree.root
        found = marks(self._attempt.blobs.get_observation(root.observation)) if root.observation else ()
        action = root.edges[decision.edges[0]].action.key
        self._attempt.record(
            ev.Decided(step=len(self._state.live.committed), action=action, decision=decision, stopped=stopped, marks=found)
        )

    def check_uncertain(self) -> None:
        """Check an intent that a crash left open.

        Raises UncertainCommit where its action may have been carried out, and cannot be undone by a reset.
        """
        assert self._state.live.decided is not None
        verb = self._state.live.decided.action.partition(" ")[0]
        if not (self._repeat_uncertain or self._attempt.live.repeatable.get(verb, self._attempt.live.isolated)):
            raise UncertainCommit(f"{self._state.live.decided.action} may have been carried out before the crash: {UNCERTAIN}")

    async def look(self) -> None:
        """Go on from the live state as it is now, if it has changed by itself since it was observed. Raises EnvironmentFailure.

        If it is cheaper than to send another environment there, a snapshot of the live one is begun for the search that follows.
        """
        await self._snapshots.settle()
        if await self._attempt.live.look():
            await self._advance()
        root, isolated = self._state.search.tree.root, self._attempt.live.isolated
        if isolated and self._may_begin_at_snapshot() and self._slots.pays(waypoints(root), self._state.search.mean_actions):
            self._snapshots.begin()

    async def commit(self) -> None:
        """Commit the decided action: promote a fork that has taken it, or replay it on live. Raises EnvironmentFailure, UncertainCommit.

        If the live state has changed by itself meanwhile, nothing is committed, and the search begins again there.
        """
        assert self._state.live.decided is not None
        await self._snapshots.settle()
        if await self._attempt.live.look():
            pass
        elif self._attempt.config.search.commit_by == "replay" or not await self._promote(self._state.live.decided):
            await self._attempt.live.commit(self._state.live.decided)
        await self._advance()

    async def _advance(self) -> None:
        """Drop snapshots that the search cannot use any more, and take one of the live environment where the search needs it."""
        root, wrote = self._state.search.tree.root, wrote_outside(self._state.live.committed[-1])
        self._slots.advance(waypoints(root), wrote=wrote)
        if self._may_begin_at_snapshot() and self._needs_snapshot(wrote=wrote):
            await self._snapshots.take()

    def _may_begin_at_snapshot(self) -> bool:
        """Return whether environments fork, and something is searched from the root."""
        forks, search = self._slots.snapshots.forks is not None, self._state.search
        return forks and search.algorithm.simulates and not search.plan

    def _needs_snapshot(self, *, wrote: bool) -> bool:
        """Return whether the search has to begin at a snapshot of the live environment.

        After a write that no reset undoes, nothing else leads to the root, nor to later ones that the search has not seen. In a state that
        the search has not seen there may be nothing else either: what is written, or shown, again may come out differently.
        """
        done = self._state.live.committed[-1]
        if not self._attempt.live.isolated:
            return wrote or done.changed or (self._state.live.wrote and done.agrees is not True)
        return done.agrees is False or (wrote and done.agrees is None)

    async def _promote(self, decided: ev.Decided) -> bool:
        """Make a fork of the search the live environment. Return False where none is at the committed state or can be brought there."""
        edge = self._state.search.tree.root.edges[decided.decision.edges[0]]
        if edge.child is None or self._slots.busy or not self._interchangeable():
            return False
        child = next((node for node in edge.outcomes if self._slots.has_free_at(waypoints(node))), edge.child)
        path = waypoints(child)
        async with self._slots.borrow(path) as slot:
            if not slot.is_at(path) and not await self._bring(slot, child):
                return False
            self._attempt.live.promote(slot, decided, child)
        return True

    def _interchangeable(self) -> bool:
        """Return True where a fork may become the live environment: it rolls back, and may send and call all that the live one may."""
        browser, live = self._attempt.config.browser, self._attempt.live
        may_send = live.isolated and all(live.repeatable.values())
        return may_send and not browser.never_writes and browser.confirm == "never" and not browser.confirm_marked

    async def _bring(self, slot: Slot, child: Node) -> bool:
        """Bring a slot to the committed child. Return True where it arrived and the arrival is verified."""
        began, path = self._attempt.journal.now, waypoints(child)
        try:
            with self._state.spending.task.reserve({}) as reserved:
                arrival = await slot.arrive(path, reserve=lambda steps: reserved.add({"transitions": steps}))
        except BudgetExceeded:
            return False
        except EnvironmentFailure as error:
            self._attempt.record(ev.Failed(what="environment", node=child.id, reason=str(error), transitions=slot.take_step_count()))
            return False
        slot.take_step_count()
        self._attempt.record(arrival_event(arrival, node=child.id, seconds=round(self._attempt.journal.now - began, 6)))
        self._attempt.record_passed(arrival, child)
        return arrival.arrived
