"""The loop of one attempt: one agent, one task, one journal.

Search asks the algorithm for work, executes it and tells the results until the algorithm is done; then the best action is committed, and
the next search begins. At the end the attempt is scored. Every event is written to the journal before it changes the state, so a resumed
attempt begins with the state that its journal folds to, and nothing that is journalled is done again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from exact.errors import BudgetExceeded, ModelError
from exact.runs.attempt.agent_calls import Answered
from exact.runs.attempt.attempt_context import AttemptContext, deadline, is_past_deadline
from exact.runs.attempt.commit import Committer
from exact.runs.attempt.ending import NEEDS_USER, STOPPED, Ending, why_over
from exact.runs.attempt.executor import Executor
from exact.runs.attempt.live_snapshot import LiveSnapshots
from exact.runs.attempt.slots import Prefetch, open_slots
from exact.runs.attempt.workers import Workers
from exact.runs.journal import events as ev
from exact.runs.journal.commands import watched
from exact.runs.journal.spending import evaluations_in
from exact.runs.journal.state import final_answer
from exact.search.base import Done, Selection, Wait
from exact.search.rules.validate import validate
from exact.slowness import REST_CLOCK
from exact.task import Outcome


@dataclass(kw_only=True)
class Attempt(AttemptContext):
    """One agent's attempt at one task."""

    repeat_uncertain: bool = False
    """Whether to repeat a commit that a crash cut short in an environment that cannot be rolled back."""
    _workers: Workers = field(init=False)
    _executor: Executor = field(init=False)
    _committer: Committer = field(init=False)

    async def run(self) -> None:
        """Run from where the journal ends to the score. Raises InfrastructureError, PartError, UncertainCommit."""
        waited, counted = REST_CLOCK.waited, REST_CLOCK.counted
        try:
            finished = await self._run_to_score()
        finally:
            await self.live.close()
        self.record(msgspec.structs.replace(finished, stretched=round(REST_CLOCK.stretched(waited, counted), 1)))

    async def _run_to_score(self) -> ev.Finished:
        """Act, evaluate, reflect and score. Return how the attempt finished. What is journalled is not done again."""
        ending = Ending(self)
        if not self.state.live.ended:
            self.record(ev.Ended(reason=await self._act(), answer=final_answer(self.state)))
        assert self.state.live.ended is not None
        if self.state.live.ended.reason.startswith(NEEDS_USER):
            return ev.Finished(status="needs_user", reason=self.state.live.ended.reason)
        await ending.extract()
        await ending.evaluate()
        if self.config.reflection.outcome == "evaluator":
            await self._score()
        await ending.reflect()
        await ending.report_use()
        await self._score()
        return ev.Finished(status="scored" if self.state.live.scored else "judged", reason=self._why_ended())

    async def search(self) -> str:
        """Search once from the start of the task, and commit nothing. Return why the search ended. Raises InfrastructureError."""
        try:
            async with self._executing():
                return await self._search()
        finally:
            await self.live.close()

    def _why_ended(self) -> str:
        assert self.state.live.ended is not None
        return (
            f"{self.state.live.ended.reason}; a person took part, so it is not scored"
            if self.state.people.touched
            else self.state.live.ended.reason
        )

    async def _act(self) -> str:
        """Search and commit in turn. Return why no further action will be committed."""
        async with self._executing():
            return await self._search_and_commit()

    @asynccontextmanager
    async def _executing(self) -> AsyncIterator[None]:
        """Open what searches and commits need. Work that is under way at the end of the block is stopped."""
        slots = open_slots(self, (await self.live.open()).capabilities)
        if self.live.reset_seconds:
            slots.costs.add("reset", self.live.reset_seconds)
        self._workers = Workers(self)
        snapshots = LiveSnapshots(self, slots)
        self._executor = Executor(self, slots, self._workers, snapshots, tell=self._tell)
        self._committer = Committer(self, slots, snapshots, repeat_uncertain=self.repeat_uncertain)
        try:
            with watched(self.mailbox.path, self.changed.fire):
                async with Prefetch(self, slots):
                    yield
                    await self._workers.stop()
        finally:
            await self._workers.close()
            await snapshots.settle(cancel=True)
            await slots.close()

    async def _search_and_commit(self) -> str:
        while True:
            await self._workers.wait_while_paused()
            if reason := why_over(self):
                return reason
            if self.state.live.decided is not None:
                self._committer.check_uncertain()
            elif self.state.search.plan:
                self._committer.continue_plan()
            else:
                await self._committer.look()
                stopped = await self._search()
                if reason := self._committer.decide(stopped):
                    return reason
            await self._committer.commit()

    async def _search(self) -> str:
        """Run one search until the algorithm is done or a budget is used up. Return the reason."""
        self._workers.begin_search()
        self.take_commands()
        if self.state.people.stopped:
            return STOPPED
        if self.guide:
            self.guide.lead()
        if self.state.search.ordered is not None:
            return self.state.search.ordered_by
        limit = deadline(self)
        try:
            async with asyncio.timeout(None if limit is None else limit.remaining) as clock:
                return await self._ask_until_done()
        except TimeoutError:
            if limit is None or not clock.expired():
                raise
            await self._workers.stop()
            return str(BudgetExceeded(limit.scope, limit.kind, limit.limit))

    async def _ask_until_done(self) -> str:
        while True:
            since = self.changed.count
            self._workers.collect()
            await self._workers.take_commands()
            if self.state.people.stopped:
                await self._workers.stop()
                return STOPPED
            if self.guide:
                self.guide.notice()
            if self.state.search.ordered is not None and not self.state.people.paused:
                await self._workers.stop()
                return self.state.search.ordered_by
            if self._workers.exceeded is not None:
                return await self._workers.drain()
            match self._next():
                case Selection() as selection:
                    self._workers.start(selection.id, self._execute(selection))
                case Done(reason) if not (self._workers.in_rounds and self._workers.busy):
                    return reason
                case _:
                    await self._workers.wait(since)

    def _next(self) -> Selection | Wait | Done:
        """Return work for a free worker: what an interrupted run left open, then what the algorithm asks for."""
        if self._workers.full or self.state.people.paused:
            return Wait()
        if (left_open := self._workers.unassigned()) is not None:
            return left_open
        if self.state.search.done is not None:
            return Done(self.state.search.done)
        if self._workers.nothing_new:
            return Wait()
        if is_past_deadline(self):
            self._workers.exceeded = deadline(self)
            return Wait()
        return self._ask()

    def _ask(self) -> Selection | Wait | Done:
        """Ask the algorithm for work, unless a viewer requested some, and journal the answer."""
        answer = self.state.search.ask()
        self.state.apply(self.journal.write(ev.Asked(answer=answer)))
        self._workers.asked(answer)
        return answer

    async def _execute(self, selection: Selection) -> None:
        """Get what one selection needs and tell it. A budget that it would exceed ends the search."""
        is_iteration = not set(selection.needs) <= {"proposals", "sample"}
        try:
            with self.state.spending.search.reserve({"iterations": int(is_iteration)}):
                await self._executor.execute(selection)
        except BudgetExceeded as exceeded:
            self._workers.end_search(exceeded)
            if selection.id in self.state.search.tree.open:
                self.record(ev.Released(selection=selection.id))
        finally:
            self.changed.fire()

    def _tell(self, selection: Selection, answered: Answered) -> None:
        """Tell the algorithm a result by way of the journal; a result for a selection that is closed by now is journalled as late."""
        work, result = self.state.search.tree.open.get(selection.id), answered.result
        if work is not None:
            validate(selection, result, work.target.id if work.target is not None else None)
            self.record(ev.Told(selection=selection.id, result=result, key=answered.key, reused=answered.reused))
            if self.guide:
                self.guide.notice()  # before anything more is asked of a model
        elif evaluations_in(result) or answered.key:
            self.record(ev.Late(selection=selection.id, result=result, key=answered.key))

    async def _score(self) -> None:
        """Take the benchmark's score, once, in the live environment. Raises EnvironmentFailure, ModelError of its judge."""
        assert self.state.live.ended is not None
        if self.state.live.scored is not None or self.state.people.touched:
            return  # what a person took part in is no result of the agent
        try:
            score = await self.live.evaluate(Outcome(actions=self.state.live.actions, answer=self.state.live.ended.answer))
        except ModelError as error:
            error.missing = "judge"
            raise
        if score is not None:
            self.record(ev.Scored(score=score))
