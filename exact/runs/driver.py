"""One agent, one task, one journal: search, commit, search again, then be judged.

Every event goes through `record`: onto the disk, then into the state. A resumed attempt begins with the state its journal
folds to, and every method below looks there first, so nothing journalled is done again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgspec

from exact.agents.agent import Agent
from exact.config import Config
from exact.context import Context
from exact.environments.base import Worlds
from exact.environments.restore import Place
from exact.errors import ActionError, BudgetExceeded, EnvironmentError_, ModelError, UncertainCommit
from exact.reflection.base import Kind, Memory
from exact.reflection.contrast import contrast
from exact.runs import events as ev
from exact.runs.fold import State
from exact.runs.journal import Journal
from exact.runs.live import UNCERTAIN, Live, seen_in
from exact.runs.store import Blobs
from exact.runs.story import context, surprises, waypoints
from exact.search.base import Done, Failure, Need, Proposed, Result, Selection, Stepped, Valued
from exact.search.tree import Node, SearchError
from exact.search.work import validate
from exact.task import Outcome, Task


@dataclass(kw_only=True)
class Attempt:
    """One agent's attempt at one task."""

    task: Task
    config: Config
    agent: Agent
    worlds: Worlds
    state: State
    journal: Journal
    blobs: Blobs
    memory: Memory | None = None
    repeat_uncertain: bool = False
    """Whether a commit that a crash cut short is done again in a world that cannot be rolled back."""
    _live: Live = field(init=False)
    _place: Place = field(init=False)

    async def run(self) -> None:
        """Go on from where the state stands to the end. Raises InfrastructureError, UncertainCommit."""
        self._live = Live(self.worlds, self.task, self.state, self.journal, self.blobs)
        self._place = Place(self.worlds, self.task)
        try:
            if not self.state.ended:
                self.record(ev.Ended(reason=await self._act_until_over(), answer=self._answer()))
            await self._judge()
            await self._reflect()
            await self._score()
        finally:
            await self._place.close()
            await self._live.close()

    def record(self, event: ev.AnyEvent) -> None:
        """Onto the disk, then into the state."""
        self.state.apply(self.journal.write(event))

    async def _act_until_over(self) -> str:
        """Search and commit, in turn; why no further action will be committed."""
        await self._live.open()
        while not (reason := self._over()):
            if self.state.decided is None:
                stopped = await self._search()
                if not self._decide(stopped):
                    return f"no action is left: {stopped}"
            elif not (self.repeat_uncertain or (await self._live.open()).capabilities.sealed):
                raise UncertainCommit(f"{self.state.decided.action} may have been carried out before the crash: {UNCERTAIN}")
            assert self.state.decided is not None
            await self._live.commit(self.state.decided)
        return reason

    # --- searching

    async def _search(self) -> str:
        """Until the algorithm is done or a budget is used up; the reason."""
        try:
            for selection in list(self.state.selections.values()):
                await self._fulfil(selection)
            while True:
                asked = self.state.ask()
                self.journal.write(asked)
                if isinstance(asked.answer, Done):
                    return asked.answer.reason
                assert isinstance(asked.answer, Selection), "one worker has nothing to wait for"
                await self._fulfil(asked.answer)
        except BudgetExceeded as exceeded:
            for id in list(self.state.selections):
                self.record(ev.Released(selection=id))
            return str(exceeded)

    async def _fulfil(self, selection: Selection) -> None:
        """Get what a selection needs, need by need, and tell it. Raises BudgetExceeded."""
        node = self.state.tree.nodes[selection.node]
        stepped = selection.edge is not None and node.edges[selection.edge].child is not None
        for need in selection.needs[1:] if stepped else selection.needs:
            self._check_time()
            result = await self._result(need, node, selection)
            validate(node.id, result)
            self.record(ev.Told(selection=selection.id, result=result))
            if selection.id not in self.state.selections:
                return

    async def _result(self, need: Need, node: Node, selection: Selection) -> Result:
        """One need's result; what broke becomes a Failure, never a value."""
        try:
            if selection.edge is None:
                return await (self._propose(node, selection.k) if need == "proposals" else self._value(node))
            if need == "step":
                return await self._step(node, selection.edge)
            child = node.edges[selection.edge].child
            assert child is not None
            return await self._value(child)
        except EnvironmentError_ as error:
            failure = Failure(kind="environment", reason=str(error))
        except ModelError as error:
            failure = Failure(kind="model", reason=str(error))
        self.record(ev.Failed(what="environment" if failure.kind == "environment" else "model", node=node.id, reason=failure.reason))
        return failure

    async def _step(self, node: Node, edge: int) -> Stepped | Failure:
        if (node.id, edge) not in self.state.acted:
            self.state.budget.check("transitions")
            if drifted := await self._arrive(node):
                return drifted
            await self._act(node, edge)
        acted = self.state.acted[node.id, edge]
        if acted.refused:
            return Failure(kind="action", reason=acted.refused)
        return Stepped(
            fingerprint=acted.fingerprint,
            terminated=acted.terminated,
            held=any(effect.is_held for effect in acted.effects),
            observation=acted.observation,
            screenshot=acted.screenshot,
        )

    async def _arrive(self, node: Node) -> Failure | None:
        """Bring the speculative world to a node; a Failure where that cannot be done faithfully."""
        if self.state.wrote and not (await self._live.open()).capabilities.sealed:
            return Failure(kind="drifted", reason="a committed action wrote outside, so replay does not lead here")
        path = waypoints(node)
        if not self._place.stands_at(path):
            self.state.budget.check("transitions", len(path))
        began = self.journal.now
        arrival = await self._place.arrive(path)
        self.record(ev.Arrived(node=node.id, seconds=round(self.journal.now - began, 6), **msgspec.structs.asdict(arrival)))
        return Failure(kind="drifted", reason=arrival.reason) if arrival.verdict == "drifted" else None

    async def _act(self, node: Node, edge: int) -> None:
        """Take an edge in the speculative world and journal what came."""
        action, began = node.edges[edge].action, self.journal.now
        seen: dict[str, Any] = {}
        try:
            seen = seen_in(await self._place.act(action), self.blobs)
        except ActionError as error:
            seen = {"refused": str(error)}
        self.record(ev.Acted(node=node.id, edge=edge, action=action.key, seconds=round(self.journal.now - began, 6), **seen))

    async def _propose(self, node: Node, k: int) -> Proposed | Failure:
        proposals = await self.agent.policy.propose(await self._context(node, "policy"), await self._live.actions(), k)
        return Proposed(proposals=proposals) if proposals else Failure(kind="action", reason="the policy proposes nothing here")

    async def _value(self, node: Node) -> Valued:
        self.state.budget.check("evaluations")
        return Valued(evaluation=await self.agent.value.evaluate(await self._context(node, "value")))

    async def _context(self, node: Node, kind: Kind) -> Context:
        """What an agent may look at in a node, with what memory has to say."""
        seen = context(self.state, self.blobs, self.task, node)
        if self.memory is None:
            return seen
        if (node.id, kind) not in self.state.recalled:
            settings, own = self.config.reflection, self.task.id
            found = await asyncio.to_thread(
                self.memory.retrieve, seen, kind, k=settings.k, threshold=settings.similarity,
                exclude_task=own if settings.exclude_same_task else None,
            )  # fmt: skip
            if not found:
                return seen
            self.record(ev.Recalled(node=node.id, kind=kind, memory=self.memory.version, reflections=found))
        return msgspec.structs.replace(seen, reflections=self.state.recalled[node.id, kind].reflections)

    # --- committing and ending

    def _decide(self, stopped: str) -> bool:
        """Journal the intent. False if nothing can be committed. Raises InfrastructureError if nothing could be asked."""
        root, step = self.state.tree.root, len(self.state.committed)
        try:
            decision = self.state.algorithm.decide(self.state.tree)
        except SearchError:
            kind, _, reason = root.closed.partition(": ")
            if kind in ("model", "environment"):
                raise (ModelError if kind == "model" else EnvironmentError_)(reason) from None
            return False
        self.record(ev.Decided(step=step, action=root.edges[decision.edges[0]].action.key, decision=decision, stopped=stopped))
        return True

    def _over(self) -> str:
        """Why no further action will be committed; empty while one may."""
        if self.state.tree.root.terminated:
            return "the episode ended" if self._answer() is None else "the agent stopped"
        try:
            self.state.budget.check("actions")
            self._check_time()
        except BudgetExceeded as exceeded:
            return str(exceeded)
        return ""

    def _check_time(self) -> None:
        limit = self.config.limits.seconds
        if limit is not None and self.journal.now > limit:
            raise BudgetExceeded("task", "seconds", limit)

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
            if self.config.search.algorithm == "react" and (await self._live.open()).capabilities.evaluates:
                return
            try:
                evaluation = (await self._value(root)).evaluation
            except BudgetExceeded:
                return
        self.record(ev.Judged(evaluation=evaluation, bought=root.evaluation is None))

    async def _reflect(self) -> None:
        """Write one lesson, on the most surprising committed step."""
        if self.memory is None or self.agent.reflector is None or self.state.reflected or self.state.scored:
            return
        found = contrast(surprises(self.state, self.blobs), threshold=self.config.reflection.threshold)
        for kind, surprise in found:
            seen = await self._context(self.state.tree.nodes[surprise.node], kind)
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
            score = await self._live.evaluate(Outcome(actions=actions, answer=self.state.ended.answer))
            if score is None:
                self.record(ev.Finished(status="judged", reason=self.state.ended.reason))
                return
            self.record(ev.Scored(score=score))
        self.record(ev.Finished(status="scored", reason=self.state.ended.reason))
