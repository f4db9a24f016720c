"""From what a selection needs to results: steps of environments, judgements, proposals. What broke becomes a Failure, never a value.

Each look at the journal comes first: what stands there is not done again. Each result is journalled before the search hears of it.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Literal, NamedTuple

from exact.budget import Reservation
from exact.errors import AnswerError, BudgetExceeded, EnvironmentFailure, ModelError
from exact.runs.attempt.agent_calls import Asking
from exact.runs.attempt.context import Setting
from exact.runs.attempt.order import Turns
from exact.runs.attempt.rollout import Rollout
from exact.runs.attempt.simulate import Walk
from exact.runs.attempt.slots import Places
from exact.runs.journal import events as ev
from exact.runs.journal.state import judgements_in
from exact.search.base import Failure, Need, Result, Selection
from exact.search.rules.validate import validate
from exact.search.tree import Node, Open


class Answer(NamedTuple):
    """A need's result."""

    result: Result
    key: str = ""
    """What it may be found by for an equal question."""
    reused: bool = False


class Fulfil:
    """Gets what selections need."""

    def __init__(self, setting: Setting, places: Places) -> None:
        self._setting, self._state = setting, setting.state
        self._asking = Asking(setting)
        self._walk = Walk(setting, places)
        self._rollout = Rollout(setting, self._walk, self._asking)
        self._turns = Turns(setting.state, setting.stirred, rounds=setting.config.search.order == "selection")
        self._at_work = self._blocked = 0
        self.stopping = False
        """Whether nothing is waited for any more that other work holds back."""

    async def __call__(self, selection: Selection) -> None:
        """Get all that a selection needs and tell it. Raises BudgetExceeded of the search or the task."""
        limit = self._setting.config.search.iteration.seconds
        try:
            try:
                async with asyncio.timeout(limit) as clock:
                    await self._needs(selection)
            except TimeoutError:
                if limit is None or not clock.expired():
                    raise
                raise BudgetExceeded("iteration", "seconds", limit) from None
        except BudgetExceeded as exceeded:
            if exceeded.scope != "iteration":
                raise
            self._used_up(selection, str(exceeded))

    def _used_up(self, selection: Selection, reason: str) -> None:
        """One piece of work took all that it may: it has failed, and may be gone on with in another one."""
        if self._open(selection) is not None:
            self._setting.record(ev.Failed(what="budget", node=selection.node, reason=reason, selection=selection.id))
            self._tell(selection, Answer(Failure(kind="budget", reason=reason)))

    async def _needs(self, selection: Selection) -> None:
        """Need by need, a step first; what may be asked for at once, at once."""
        while (work := self._open(selection)) is not None:
            await self._turns.begin(selection.id)
            if work.left[0] != "step" and selection.together and len(work.left) > 1:
                return await self._together(selection, work)
            with self._state.scope(selection.id).reserve({}) as held:
                answer = await self._answer(work.left[0], selection, work, held)
                await self._turns.tell(selection.id)
                self._tell(selection, answer)

    async def _together(self, selection: Selection, work: Open) -> None:
        """All needs at the same time; told in their order, whichever came first."""
        needs = tuple(work.left)
        with ExitStack() as stack:
            held = [stack.enter_context(self._state.scope(selection.id).reserve({})) for _ in needs]
            coming = [self._answer(need, selection, work, held[i]) for i, need in enumerate(needs)]
            came = await asyncio.gather(*coming, return_exceptions=True)
            await self._turns.tell(selection.id)
            for answer, reservation in zip(came, held, strict=True):
                if not isinstance(answer, BaseException):
                    reservation.release()
                    self._tell(selection, answer)
        for answer in came:
            if isinstance(answer, BaseException):
                raise answer

    def _tell(self, selection: Selection, answer: Answer) -> None:
        """Journal a result and hand it in; late, where the selection is not open any more."""
        work = self._open(selection)
        if work is not None:
            validate(selection, answer.result, work.target.id if work.target is not None else None)
            self._setting.record(ev.Told(selection=selection.id, result=answer.result, key=answer.key, reused=answer.reused))
        elif judgements_in(answer.result) or answer.key:
            self._setting.record(ev.Late(selection=selection.id, result=answer.result, key=answer.key))

    def _open(self, selection: Selection) -> Open | None:
        return self._state.tree.open.get(selection.id)

    async def _answer(self, need: Need, selection: Selection, work: Open, held: Reservation) -> Answer:
        """One need's result; waits where other work only holds back what it takes."""
        self._at_work += 1
        try:
            while True:
                try:
                    return await self._result(need, selection, work, held)
                except BudgetExceeded as exceeded:
                    if exceeded.scope == "iteration" or not exceeded.reserved or not await self._room(held):
                        raise
        finally:
            self._at_work -= 1

    async def _room(self, held: Reservation) -> bool:
        """Wait until something may have come free; False where nobody is at work who could free it."""
        held.release()
        if self.stopping or self._blocked + 1 >= self._at_work:
            return False
        self._blocked += 1
        try:
            await self._setting.stirred.wait()
        finally:
            self._blocked -= 1
        return not self.stopping

    async def _result(self, need: Need, selection: Selection, work: Open, held: Reservation) -> Answer:
        node = work.target if work.target is not None else self._state.tree.nodes[selection.node]
        what: Literal["environment", "answer", "model"]
        try:
            return await self._met(need, selection, node, held)
        except EnvironmentFailure as error:
            what, reason = "environment", str(error)
        except AnswerError as error:
            what, reason = "answer", str(error)
        except ModelError as error:
            what, reason = "model", str(error)
        lost = self._walk.lost(selection)
        self._setting.record(ev.Failed(what=what, node=node.id, reason=reason, transitions=lost, selection=selection.id))
        return Answer(Failure(kind=what, reason=reason))

    async def _met(self, need: Need, selection: Selection, node: Node, held: Reservation) -> Answer:
        match need:
            case "step":
                return Answer(await self._walk.step(selection, node, held))
            case "rollout":
                rolled, reused = await self._rollout(selection, node, held)
                return Answer(rolled, reused=reused)
            case "value":
                return Answer(*await self._asking.value(selection, node, held))
            case "comparison":
                return Answer(await self._asking.comparison(selection, node, held))
            case "batch":
                return Answer(*await self._asking.batch(selection, node, held))
            case "proposals":
                return Answer(*await self._asking.proposals(selection, node, selection.k))
            case "sample":
                return Answer(*await self._asking.sample(selection, node))
