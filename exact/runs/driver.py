"""One agent, one task, one journal: search, commit, search again, then be judged.

Every event goes through `record`: onto the disk, then into the state. A resumed attempt begins with the state its journal
folds to, and every part looks there first, so nothing journalled is done again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from exact.errors import BudgetExceeded, ModelError
from exact.reflection.contrast import contrast
from exact.runs import events as ev
from exact.runs.commit import Commits
from exact.runs.places import Places
from exact.runs.search import Search
from exact.runs.setting import Setting
from exact.runs.story import surprises
from exact.task import Outcome


@dataclass(kw_only=True)
class Attempt(Setting):
    """One agent's attempt at one task."""

    repeat_uncertain: bool = False
    """Whether a commit that a crash cut short is done again in a world that cannot be rolled back."""
    _search: Search = field(init=False)
    _commits: Commits = field(init=False)

    async def run(self) -> None:
        """Go on from where the state stands to the end. Raises InfrastructureError, UncertainCommit."""
        try:
            if not self.state.ended:
                self.record(ev.Ended(reason=await self._act_until_over(), answer=self._answer()))
            await self._judge()
            await self._reflect()
            await self._score()
        finally:
            await self.live.close()

    async def _act_until_over(self) -> str:
        """Search and commit, in turn; why no further action will be committed."""
        world = await self.live.open()
        size = self.config.search.workers if world.capabilities.concurrent else 1
        places = Places(self.worlds, self.task, size, clock=lambda: self.journal.now)
        self._search = Search(self, places)
        self._commits = Commits(self, places, repeat_uncertain=self.repeat_uncertain)
        try:
            reason = await self._commit_until_over()
            await self._search.stop()
            return reason
        finally:
            await self._search.close()
            await places.close()

    async def _commit_until_over(self) -> str:
        while not (reason := self._over()):
            if self.state.decided is not None:
                await self._commits.check_uncertain()
            elif self.state.plan:
                self._commits.go_on()
            elif not self._commits.decide(stopped := await self._search.run()):
                return f"no action is left: {stopped}"
            await self._commits.carry_out()
        return reason

    def _over(self) -> str:
        """Why no further action will be committed; empty while one may."""
        if self.state.tree.root.terminated:
            return "the episode ended" if self._answer() is None else "the agent stopped"
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
        """The agent's own verdict on where it ended; a ReAct agent has none of its own unless nothing else will judge."""
        root = self.state.tree.root
        if self.state.judged or self.state.scored:
            return
        evaluation = root.evaluation
        if evaluation is None:
            if self.config.search.algorithm == "react" and (await self.live.open()).capabilities.evaluates:
                return
            limit = self.config.limits.seconds
            try:
                async with asyncio.timeout(None if limit is None else max(0.0, limit - self.journal.now)):
                    with self.state.budget.reserve({"evaluations": 1}):
                        evaluation = await self.agent.value.evaluate(await self.context(root, "value"))
            except (BudgetExceeded, TimeoutError):
                return
        self.record(ev.Judged(evaluation=evaluation, bought=root.evaluation is None))

    async def _reflect(self) -> None:
        """Write one lesson, on the most surprising committed step."""
        if self.memory is None or self.agent.reflector is None or self.state.reflected or self.state.scored:
            return
        found = contrast(surprises(self.state, self.blobs), threshold=self.config.reflection.threshold)
        for kind, surprise in found:
            seen = await self.context(self.state.tree.nodes[surprise.node], kind)
            try:
                reflection = await self.agent.reflector.reflect(seen, surprise, kind)
            except (ModelError, BudgetExceeded) as error:
                self.record(ev.Failed(what="reflection", node=surprise.node, reason=str(error)))
                continue
            await asyncio.to_thread(self.memory.add, reflection)
            self.record(ev.Reflected(reflection=reflection))

    async def _score(self) -> None:
        """The benchmark's verdict, once, on the live world."""
        assert self.state.ended is not None
        if self.state.scored is None:
            actions = tuple(step.action for step in self.state.committed if not step.refused)
            score = await self.live.evaluate(Outcome(actions=actions, answer=self.state.ended.answer))
            if score is None:
                self.record(ev.Finished(status="judged", reason=self.state.ended.reason))
                return
            self.record(ev.Scored(score=score))
        self.record(ev.Finished(status="scored", reason=self.state.ended.reason))
