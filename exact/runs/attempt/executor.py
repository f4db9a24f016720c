"""From what a selection needs to results: steps of environments, evaluations, proposals, rollouts.

Each part looks at the journal first: what is journalled is not done again. Each result is journalled before the algorithm is told it. A
failure of the infrastructure becomes a Failure, never a value. A state whose evaluation cannot be read counts as unjudged.

States whose evaluation cannot be read: they count as unjudged, so that the search goes on.

The order in which results are told: as they come, or in rounds, in the order in which they were asked for.

In a round the search is asked for as many pieces of work as there are workers. All steps are taken, then told in order; then all
evaluations and proposals are made, then told in order. Only then is it asked again. The outcome of a round depends on the results alone
and not on which came first, so two runs agree, and a resumed run agrees with one that was not interrupted. The price is a wait for the
slowest piece of a round. The phase is read from the search tree, so an interrupted round resumes where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import Literal

from exact.budget import Reservation
from exact.context import Evaluation
from exact.errors import AnswerError, BudgetExceeded, EnvironmentFailure, ModelError, PromptRefused
from exact.runs.attempt.agent_calls import AgentCalls, Answered
from exact.runs.attempt.attempt_context import AttemptContext
from exact.runs.attempt.live_snapshot import LiveSnapshots
from exact.runs.attempt.person import Signal
from exact.runs.attempt.rollout import Rollouts
from exact.runs.attempt.simulate import Simulator
from exact.runs.attempt.slots import Slots
from exact.runs.attempt.workers import Workers
from exact.runs.journal import events as ev
from exact.runs.journal.state import AttemptState
from exact.search.base import Batched, Compared, Failure, Need, Result, Selection, Valued
from exact.search.tree import Node, Open


class Executor:
    """Gets what selections need, and tells it."""

    def __init__(
        self,
        attempt: AttemptContext,
        slots: Slots,
        workers: Workers,
        snapshots: LiveSnapshots,
        *,
        tell: Callable[[Selection, Answered], None],
    ) -> None:
        self._attempt, self._state, self._workers, self._tell = attempt, attempt.state, workers, tell
        self._agent = AgentCalls(attempt)
        self._simulator = Simulator(attempt, slots, snapshots)
        self._rollouts = Rollouts(attempt, self._simulator, self._agent)
        self._order = TellOrder(attempt.state, attempt.changed, in_rounds=workers.in_rounds)
        self._executing = self._waiting = 0
        """Numbers of needs being met, and of those among them that wait for a reserved budget."""

    async def execute(self, selection: Selection) -> None:
        """Get all that a selection needs and tell it. Raises BudgetExceeded of the search or the task."""
        limit = self._attempt.config.search.iteration.seconds
        try:
            try:
                async with asyncio.timeout(limit) as clock:
                    await self._meet_needs(selection)
            except TimeoutError:
                if limit is None or not clock.expired():
                    raise
                raise BudgetExceeded("iteration", "seconds", limit) from None
        except BudgetExceeded as exceeded:
            if exceeded.scope != "iteration":
                raise
            if self._work(selection) is not None:
                reason = str(exceeded)
                self._attempt.record(ev.Failed(what="budget", node=selection.node, reason=reason, selection=selection.id))
                self._tell(selection, Answered(Failure(kind="budget", reason=reason)))

    async def _meet_needs(self, selection: Selection) -> None:
        """Meet the needs of a selection one by one, a step first; what may be asked for at the same time, at the same time."""
        while (work := self._work(selection)) is not None:
            await self._order.begin(selection.id)
            if work.left[0] != "step" and selection.together and len(work.left) > 1:
                return await self._meet_together(selection, work)
            with self._state.spending.scope(selection.id).reserve({}) as reserved:
                answered = await self._meet(work.left[0], selection, work, reserved)
                await self._order.tell(selection.id)
                self._tell(selection, answered)

    async def _meet_together(self, selection: Selection, work: Open) -> None:
        """Meet all needs of a selection at the same time, and tell their results in the order of the needs."""
        needs = tuple(work.left)
        with ExitStack() as stack:
            reserved = [stack.enter_context(self._state.spending.scope(selection.id).reserve({})) for _ in needs]
            coming = [self._meet(need, selection, work, reserved[i]) for i, need in enumerate(needs)]
            came = await asyncio.gather(*coming, return_exceptions=True)
            await self._order.tell(selection.id)
            for answered, reservation in zip(came, reserved, strict=True):
                if not isinstance(answered, BaseException):
                    reservation.release()
                    self._tell(selection, answered)
        for answered in came:
            if isinstance(answered, BaseException):
                raise answered

    def _work(self, selection: Selection) -> Open | None:
        """Return the open work of a selection; None where it is closed, or nothing more is needed since an action is ordered."""
        return self._state.search.tree.open.get(selection.id) if self._state.search.ordered is None else None

    async def _meet(self, need: Need, selection: Selection, work: Open, reserved: Reservation) -> Answered:
        """Meet one need. Waits where other work has only reserved the budget that it takes."""
        self._executing += 1
        try:
            while True:
                try:
                    return await self._result(need, selection, work, reserved)
                except BudgetExceeded as exceeded:
                    if exceeded.scope == "iteration" or not exceeded.reserved or not await self._wait_for_budget(reserved):
                        raise
        finally:
            self._executing -= 1

    async def _wait_for_budget(self, reserved: Reservation) -> bool:
        """Wait until a reservation of others may have ended. Return False where no other work is left that could end one."""
        reserved.release()
        if self._workers.stopping or self._waiting + 1 >= self._executing:
            return False
        self._waiting += 1
        try:
            await self._attempt.changed.wait()
        finally:
            self._waiting -= 1
        return not self._workers.stopping

    async def _result(self, need: Need, selection: Selection, work: Open, reserved: Reservation) -> Answered:
        """Get the result of one need; a Failure where the infrastructure failed."""
        node = work.target if work.target is not None else self._state.search.tree.nodes[selection.node]
        what: Literal["environment", "answer", "model"]
        stand_in: Result | None = None
        try:
            return await self._dispatch(need, selection, node, reserved)
        except EnvironmentFailure as error:
            what, reason, resumable = "environment", str(error), error.resumable
        except AnswerError as error:
            what, reason, resumable = "answer", str(error), error.resumable
            stand_in = unjudged(need, selection, self._state.search.tree.nodes[selection.node], node, error)
        except ModelError as error:
            what, reason, resumable = "model", str(error), error.resumable
        lost = self._simulator.take_lost_steps(selection)
        self._attempt.record(
            ev.Failed(what=what, node=node.id, reason=reason, transitions=lost, resumable=resumable, selection=selection.id)
        )
        return Answered(stand_in or Failure(kind=what, reason=reason))

    async def _dispatch(self, need: Need, selection: Selection, node: Node, reserved: Reservation) -> Answered:
        match need:
            case "step":
                return Answered(await self._simulator.step(selection, node, reserved))
            case "rollout":
                return await self._rollouts.roll(selection, node, reserved)
            case "value":
                return await self._agent.value(selection, node, reserved)
            case "batch":
                return await self._agent.batch(selection, node, reserved)
            case "comparison":
                return await self._agent.comparison(selection, node, reserved)
            case "proposals":
                return await self._agent.proposals(selection, node)
            case "sample":
                return await self._agent.sample(selection, node)


NEUTRAL = 0.5
"""Value of an unjudged state before which no state was evaluated."""


def unjudged(need: Need, selection: Selection, parent: Node, node: Node, error: AnswerError) -> Result | None:
    """Return what counts as the result of a need for evaluations that cannot be read; None for another need.

    An unjudged state has the value of the state before it, so that it neither gains nor loses by the judge's failure. A state whose prompt
    a content filter refuses has the value 0: the policy could not go on from it either.

    Args:
        need: What was asked for.
        selection: The work that asked.
        parent: The node of the selection, whose children are the rivals.
        node: The node that the need is about.
        error: Why no answer can be read.
    """
    match need:
        case "value":
            return Valued(evaluation=_stand_in(node.parent, error))
        case "batch":
            return Batched(evaluations=tuple(_stand_in(parent, error) for _ in selection.rivals))
        case "comparison":
            return Compared(scores=tuple(1 / len(selection.rivals) for _ in selection.rivals), rationale=f"not judged: {error}")
        case _:
            return None


def _stand_in(before: Node | None, error: AnswerError) -> Evaluation:
    known = before.value if before is not None else None
    value = 0.0 if isinstance(error, PromptRefused) else NEUTRAL if known is None else known
    return Evaluation(value=value, rationale=f"not judged: {error}", unjudged=True)


class TellOrder:
    """Lets pieces of work begin and tell in turn. Outside of rounds, none waits."""

    def __init__(self, state: AttemptState, changed: Signal, *, in_rounds: bool) -> None:
        self._state, self._changed, self._in_rounds = state, changed, in_rounds
        self._ready = set[int]()
        """Selections that have their results."""

    async def begin(self, selection: int) -> None:
        """Wait until all work of earlier phases is told."""
        while self._in_rounds and selection in self._state.search.tree.open and self._is_ahead(selection):
            await self._changed.wait()

    async def tell(self, selection: int) -> None:
        """Wait until all work of this phase has its results, and the selections asked for before this one are told."""
        if not self._in_rounds:
            return
        self._ready.add(selection)
        self._changed.fire()
        try:
            while selection in self._state.search.tree.open and not self._is_next(selection):
                await self._changed.wait()
        finally:
            self._ready.discard(selection)

    def _is_ahead(self, selection: int) -> bool:
        """Return True where other work is in an earlier phase."""
        mine = phase(self._state.search.tree.open[selection])
        return any(phase(work) < mine for work in self._state.search.tree.open.values())

    def _is_next(self, selection: int) -> bool:
        turns = {id: (phase(work), id) for id, work in self._state.search.tree.open.items()}
        mine = turns[selection]
        return all(turn >= mine and (turn[0] > mine[0] or id in self._ready) for id, turn in turns.items())


def phase(work: Open) -> int:
    """Return the phase of a piece of work in its round.

    0: its step is still to be taken. Else 1, and one more for each result that has come, where they are asked for one by one.
    """
    if work.left[0] == "step":
        return 0
    selection = work.selection
    told = len(selection.needs) - len(work.left) - (selection.needs[0] == "step")
    return 1 if selection.together else 1 + told
