"""Commits: from a decision to a real step, in two phases. The intent is journalled first, then what came."""

from __future__ import annotations

from exact.environments.restore import Slot
from exact.errors import BudgetExceeded, EnvironmentFailure, ModelError, UncertainCommit
from exact.runs.attempt.context import Setting
from exact.runs.attempt.live import UNCERTAIN
from exact.runs.attempt.observations import waypoints
from exact.runs.attempt.simulate import arrived, returned, wrote_outside
from exact.runs.attempt.slots import Places
from exact.runs.journal import events as ev
from exact.search.base import Decision
from exact.search.rules.outage import outage, unreadable
from exact.search.tree import Node, SearchError

PLANNED = "the plan goes on"


class Commits:
    """Decides and carries out."""

    def __init__(self, setting: Setting, places: Places, *, repeat_uncertain: bool = False) -> None:
        self._setting, self._state, self._places = setting, setting.state, places
        self._repeat_uncertain = repeat_uncertain

    def decide(self, stopped: str) -> str:
        """Journal the intent. Why nothing can be committed; empty if something is. Raises InfrastructureError if nothing was found out
        for want of it."""
        if broken := outage(self._state.tree.root):
            kind, _, reason = broken.partition(": ")
            raise (ModelError if kind == "model" else EnvironmentFailure)(reason)
        if said := unreadable(self._state.tree.root):
            return f"what the agent says cannot be read: {said}"
        try:
            decision = self._state.algorithm.decide(self._state.tree)
        except SearchError:
            return f"no action is left: {stopped}"
        self._intend(decision, stopped)
        return ""

    def go_on(self) -> None:
        """Journal the intent to take the next step of a plan."""
        root, edges = self._state.tree.root, self._state.plan
        reason = self._state.decisions[-1].decision.reason
        self._intend(Decision(edges=edges, reason=reason, value=root.edges[edges[0]].value), PLANNED)

    def _intend(self, decision: Decision, stopped: str) -> None:
        action = self._state.tree.root.edges[decision.edges[0]].action.key
        self._setting.record(ev.Decided(step=len(self._state.committed), action=action, decision=decision, stopped=stopped))

    async def check_uncertain(self) -> None:
        """Raise UncertainCommit where the intent on record may have been carried out before a crash, and stays."""
        assert self._state.decided is not None
        if not (self._repeat_uncertain or (await self._setting.live.open()).capabilities.isolated):
            raise UncertainCommit(f"{self._state.decided.action} may have been carried out before the crash: {UNCERTAIN}")

    async def carry_out(self) -> None:
        """Take the decided action. Raises EnvironmentFailure, UncertainCommit."""
        assert self._state.decided is not None
        if self._setting.config.search.commit_by == "replay" or not await self._promote(self._state.decided):
            await self._setting.live.commit(self._state.decided)
        await self._go_on()

    async def _go_on(self) -> None:
        """Drop snapshots that lead nowhere any more, and keep the live environment as it is where the search goes on from there."""
        root, wrote = self._state.tree.root, wrote_outside(self._state.committed[-1])
        self._places.go_on(waypoints(root), wrote=wrote)
        if self._places.shelf.forks is None or not self._leads_on(root, wrote=wrote):
            return
        began = self._setting.journal.now
        if (kept := await self._setting.live.keep()) is not None:
            self._places.shelf.add(kept)
            self._setting.kept(kept.snapshot, root, since=began)

    def _leads_on(self, root: Node, *, wrote: bool) -> bool:
        """Whether the way on is a snapshot of the live environment.

        After a write that no reset undoes there is no other. Nor may there be in a state that the search has not seen: what is written,
        or shown, again may come out differently. Elsewhere it is one where that is quicker than to send another environment there.
        """
        if not self._setting.live.isolated:
            return wrote
        if not self._state.algorithm.simulates or self._state.plan:
            return False  # nothing is searched from there
        done = self._state.committed[-1]
        unseen = done.agrees is False or (wrote and done.agrees is None)
        return unseen or self._places.pays(waypoints(root), returned(self._state))

    async def _promote(self, decided: ev.Decided) -> bool:
        """Make a searched environment the live one, if there is one, or one can be brought to the state; whether it was done."""
        edge = self._state.tree.root.edges[decided.decision.edges[0]]
        if edge.child is None or self._places.busy or not await self._interchangeable():
            return False
        child = next((node for node in edge.outcomes if self._places.standing(waypoints(node))), edge.child)
        path = waypoints(child)
        async with self._places.borrow(path) as place:
            if not place.is_at(path) and not await self._bring(place, child):
                return False
            self._setting.live.promote(place, decided, child)
        return True

    async def _interchangeable(self) -> bool:
        """Whether a searched environment may take the live one's place: it rolls back, and is allowed all that the live one is."""
        capabilities = (await self._setting.live.open()).capabilities
        return capabilities.isolated and self._setting.config.browser.speculation != "observe"

    async def _bring(self, place: Slot, child: Node) -> bool:
        """Walk a place to the committed child; whether it stands there, and may be believed to."""
        began, path = self._setting.journal.now, waypoints(child)
        try:
            with self._state.budget.reserve({}) as held:
                arrival = await place.arrive(path, reserve=lambda steps: held.add({"transitions": steps}))
        except BudgetExceeded:
            return False
        except EnvironmentFailure as error:
            self._setting.record(ev.Failed(what="environment", node=child.id, reason=str(error), transitions=place.take_step_count()))
            return False
        place.take_step_count()
        self._setting.record(arrived(arrival, node=child.id, seconds=round(self._setting.journal.now - began, 6)))
        return arrival.arrived
