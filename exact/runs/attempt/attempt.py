"""One agent, one task, one journal: search, commit, search again, then be judged.

Every event goes through `record`: onto the disk, then into the state. A resumed attempt begins with the state its journal
folds to, and every part looks there first, so nothing journalled is done again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec

from exact.context import Evaluation
from exact.environments.base import Capabilities
from exact.errors import AnswerError, BudgetExceeded, InfrastructureError, ModelError
from exact.reflection.contrast import contrast
from exact.runs.attempt.commit import Commits
from exact.runs.attempt.context import Setting
from exact.runs.attempt.hindsight import SOLVED, records
from exact.runs.attempt.memory import attempt_id, shown, went_well
from exact.runs.attempt.prefetch import Prefetch
from exact.runs.attempt.search import STOPPED, Search
from exact.runs.attempt.slots import Places
from exact.runs.journal import events as ev
from exact.search.tree import Node
from exact.task import Outcome


@dataclass(kw_only=True)
class Attempt(Setting):
    """One agent's attempt at one task."""

    repeat_uncertain: bool = False
    """Whether a commit that a crash cut short is done again in an environment that cannot be rolled back."""
    _search: Search = field(init=False)
    _commits: Commits = field(init=False)

    async def run(self) -> None:
        """Go on from where the state stands to the end. Raises InfrastructureError, UncertainCommit."""
        try:
            if not self.state.ended:
                self.record(ev.Ended(reason=await self._act_until_over(), answer=self._answer()))
            await self._judge()
            if self.config.reflection.outcome == "evaluator":
                await self._score()
            await self._reflect()
            await self._report_use()
            await self._score()
            self._finish()
        finally:
            await self.live.close()

    async def _act_until_over(self) -> str:
        """Search and commit, in turn; why no further action will be committed."""
        environment = await self.live.open()
        size, spare, more = self._sizes(environment.capabilities)
        places = Places(self.environments, self.task, size, spare=spare, more=more, clock=lambda: self.journal.now)
        self._search = Search(self, places)
        self._commits = Commits(self, places, repeat_uncertain=self.repeat_uncertain)
        try:
            async with Prefetch(self, places):
                reason = await self._commit_until_over()
                await self._search.stop()
            return reason
        finally:
            await self._search.close()
            await places.close()

    def _sizes(self, capabilities: Capabilities) -> tuple[int, int, int]:
        """How many workers may act at once, environments to spare, and environments beyond that.

        One and none where what one does outside is seen by the others. None beyond where an environment may hold a log-in that another
        waits for.
        """
        alone = not capabilities.isolated and self.config.browser.speculation == "free"
        if alone or not capabilities.concurrent:
            return 1, 0, 0
        search = self.config.search
        spare = search.prefetch if capabilities.fidelity != "replay" else 0
        return search.workers, spare, search.standing if capabilities.isolated and capabilities.fidelity == "full" else 0

    async def _commit_until_over(self) -> str:
        while True:
            await self._search.going()
            if reason := self._over():
                return reason
            if self.state.decided is not None:
                await self._commits.check_uncertain()
            elif self.state.plan:
                self._commits.go_on()
            else:
                searched = await self._search.run()
                if self._nothing_to_go_by():
                    return searched
                if over := self._commits.decide(searched):
                    return over
            await self._commits.carry_out()

    def _nothing_to_go_by(self) -> bool:
        """Whether somebody stopped the search, and nothing was searched where the environment now stands."""
        return self.state.stopped and self.state.decided is None and not self.state.tree.root.visited

    def _over(self) -> str:
        """Why no further action will be committed; empty while one may."""
        if self.state.tree.root.terminated:
            return "the episode ended" if self._answer() is None else "the agent stopped"
        if self._nothing_to_go_by():
            return STOPPED
        try:
            self.state.budget.check("actions")
        except BudgetExceeded as exceeded:
            return str(exceeded)
        limit = self.config.limits.seconds
        if limit is not None and self.journal.now >= limit:
            return str(BudgetExceeded("task", "seconds", limit))
        return ""

    def _answer(self) -> str | None:
        """The text of the final `stop`, if one was committed."""
        root = self.state.tree.root
        if root.edge is None or not root.terminated or root.edge.action.name != "stop":
            return None
        return " ".join(map(str, root.edge.action.args))

    async def _judge(self) -> None:
        """The agent's own verdict on where it ended; one that never looks ahead has none of its own unless nothing else will judge.

        Raises ModelError where it cannot be had, and nothing else judges.
        """
        root = self.state.tree.root
        if self.state.judged or self.state.scored:
            return
        evaluation = found = root.evaluation
        learned = self.memory is not None and self.config.reflection.outcome == "judge" and self.config.reflection.confirm
        if found is None or learned:
            if found is None and not self.state.algorithm.simulates and await self._is_scored():
                return
            try:
                evaluation = await self._judgement(root, confirms=found is not None)
            except (BudgetExceeded, TimeoutError):
                pass
            except ModelError as error:
                self.record(ev.Failed(what="answer" if isinstance(error, AnswerError) else "model", node=root.id, reason=str(error)))
                if found is None and not await self._is_scored():
                    raise
        if evaluation is not None:
            self.record(ev.Judged(evaluation=evaluation, bought=evaluation is not found))

    async def _judgement(self, root: Node, *, confirms: bool) -> Evaluation:
        """One judgement of the end. Raises ModelError, BudgetExceeded, TimeoutError."""
        limit = self.config.limits.seconds
        async with asyncio.timeout(None if limit is None else max(0.0, limit - self.journal.now)):
            with self.state.budget.reserve({"evaluations": 1}):
                seen = await self.context(root, "value", draw=root.evaluations, confirms=confirms)
                return await self.agent.value.evaluate(seen)

    async def _is_scored(self) -> bool:
        """Whether the benchmark has a verdict of its own."""
        return (await self.live.open()).capabilities.evaluates

    async def _reflect(self) -> None:
        """Write lessons on what surprised most. A reflector or a memory that fails is on record, and no reason not to score."""
        settings, scored = self.config.reflection, self.state.scored
        if self.memory is None or self.agent.reflector is None or (scored and settings.outcome == "judge"):
            return
        outcome = scored.score.value if scored else self.state.judged.evaluation.value if self.state.judged else None
        looked_at = records(self.state, self.blobs, outcome, self.config.search.noise)
        believed = not scored and not settings.confirm  # nobody has looked at the end a second time
        found = contrast(
            looked_at, signals=settings.signals, threshold=settings.threshold, most=settings.most, add_q=settings.add_q,
            praise=believed or outcome is None or outcome >= SOLVED,
        )  # fmt: skip
        written = {(each.reflection.kind, each.reflection.node, each.reflection.action) for each in self.state.reflected}
        for kind, surprise in found:
            if (kind, surprise.node, surprise.step.action.key) in written:
                continue
            seen = self.seen(self.state.tree.nodes[surprise.node])
            try:
                reflection = await self.agent.reflector.reflect(seen, surprise, kind)
            except (ModelError, BudgetExceeded) as error:
                self.record(ev.Failed(what="reflection", node=surprise.node, reason=str(error)))
                continue
            reflection = msgspec.structs.replace(
                reflection, outcome=outcome, outcome_source="evaluator" if scored else "judge", signal=surprise.signal
            )
            try:
                await asyncio.to_thread(self.memory.add, reflection)
            except InfrastructureError as error:
                self.record(ev.Failed(what="reflection", node=surprise.node, reason=str(error)))
                continue
            self.record(ev.Reflected(reflection=reflection))

    async def _report_use(self) -> None:
        """Tell memory how the attempt ended that its reflections were shown in."""
        if self.memory is not None and (used := shown(self.state)):
            attempt = attempt_id(self.config.name, self.task, self.journal.path)
            try:
                await asyncio.to_thread(self.memory.used, attempt, used, went_well(self.config, self.state))
            except InfrastructureError as error:
                self.record(ev.Failed(what="reflection", node=self.state.tree.root.id, reason=str(error)))

    async def _score(self) -> None:
        """The benchmark's verdict, once, on the live environment. Raises EnvironmentFailure, ModelError of its judge."""
        assert self.state.ended is not None
        if self.state.scored is None:
            actions = tuple(step.action for step in self.state.carried_out)
            try:
                score = await self.live.evaluate(Outcome(actions=actions, answer=self.state.ended.answer))
            except ModelError as error:
                error.missing = "judge"
                raise
            if score is not None:
                self.record(ev.Scored(score=score))

    def _finish(self) -> None:
        assert self.state.ended is not None
        self.record(ev.Finished(status="scored" if self.state.scored else "judged", reason=self.state.ended.reason))
