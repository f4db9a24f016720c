"""Rollouts: the policy's own actions from a state, one at a time, and an evaluation of the state where they end.

Each step is a fact of its own, so an interrupted rollout resumes where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from exact.agents.base import evaluate
from exact.budget import Reservation
from exact.context import Context, Proposal, Taken
from exact.environments.base import reported_info
from exact.environments.restore.slot import Slot
from exact.environments.restore.waypoint import Waypoint
from exact.errors import ActionError
from exact.reflection.base import Kind
from exact.runs.attempt.agent_calls import AgentCalls, Answered, question_digest
from exact.runs.attempt.attempt_context import AttemptContext
from exact.runs.attempt.observations import observed_fields, waypoints
from exact.runs.attempt.simulate import Simulator
from exact.runs.journal import events as ev
from exact.search.base import Diverged, Failure, Rolled, Selection, Valued
from exact.search.tree import Node


class Rollouts:
    """Rolls out from nodes of the tree."""

    def __init__(self, attempt: AttemptContext, simulator: Simulator, agent: AgentCalls) -> None:
        self._attempt, self._state, self._simulator, self._agent = attempt, attempt.state, simulator, agent

    async def roll(self, selection: Selection, node: Node, reserved: Reservation) -> Answered:
        """Roll out and evaluate the state where the rollout ends. An equal state's evaluation is reused.

        Raises EnvironmentFailure, ModelError, BudgetExceeded.
        """
        obstacle = None if self._is_over(selection, node) else await self._continue(selection, node, reserved)
        if obstacle is not None and not (isinstance(obstacle, Failure) and obstacle.kind == "drifted"):
            return Answered(obstacle)  # a state that cannot be reached again is evaluated without a rollout from it
        context = await self._context(selection, node, "value")
        known = self._state.search.answered.get(question_digest("value", context))
        taken = [step for step in self._steps(selection, node) if not step.refused]
        if isinstance(known, Valued):
            evaluation = known.evaluation
        else:
            reserved.add({"evaluations": 1})
            evaluation = await evaluate(self._attempt.agent.value, context)
        rolled = Rolled(evaluation=evaluation, steps=len(taken), terminated=any(step.terminated for step in taken))
        return Answered(rolled, reused=isinstance(known, Valued))

    async def _continue(self, selection: Selection, node: Node, reserved: Reservation) -> Diverged | Failure | None:
        """Step until the rollout ends. Return what prevented an environment from coming to where it is, or None."""
        async with self._simulator.at(self._path(selection, node), selection, node, reserved, more=0) as slot:
            if not isinstance(slot, Slot):
                return slot
            while not self._is_over(selection, node):
                proposals = await self._next(selection, node)
                if not proposals:
                    break
                reserved.add({"transitions": 1})
                await self._act(slot, selection, node, proposals[0].action.key, proposals[0].rationale)
                reserved.count("transitions", 1)
        return None

    async def _next(self, selection: Selection, node: Node) -> tuple[Proposal, ...]:
        """Return the action to take: the policy's favourite in the first rollout of a state, a draw in further ones."""
        context = await self._context(selection, node, "policy")
        if not selection.draw:
            return await self._agent.propose(context, selection.policy, 1)
        draw = selection.draw * (selection.depth + 1) + len(self._steps(selection, node))
        return await self._agent.draw(msgspec.structs.replace(context, draw=draw), selection.policy)

    async def _act(self, slot: Slot, selection: Selection, node: Node, key: str, rationale: str) -> None:
        began, seen = self._attempt.journal.now, dict[str, Any]()
        try:
            action = self._attempt.live.space.parse(key)
            seen = observed_fields(await slot.act(action), self._attempt.blobs)
        except ActionError as error:
            seen = {"refused": str(error)}
        slot.take_step_count()
        self._attempt.record(
            ev.RolledStep(
                node=node.id,
                draw=selection.draw,
                policy=selection.policy,
                index=len(self._steps(selection, node)),
                action=key,
                rationale=rationale,
                seconds=round(self._attempt.journal.now - began, 6),
                selection=selection.id,
                **seen,
            )
        )

    def _steps(self, selection: Selection, node: Node) -> Sequence[ev.RolledStep]:
        return self._state.search.rolled.get((node.id, selection.policy, selection.draw), ())

    def _is_over(self, selection: Selection, node: Node) -> bool:
        """Return True where the rollout has ended: full depth, a refused action, the episode's end, or a blocked write."""
        steps = self._steps(selection, node)
        last = steps[-1] if steps else None
        return len(steps) >= selection.depth or (last is not None and (bool(last.refused) or _unseen(last)))

    def _path(self, selection: Selection, node: Node) -> list[Waypoint]:
        """Return the waypoints from the task's start through the tree and the rollout so far."""
        path = waypoints(node)
        for step in self._steps(selection, node):
            path.append(Waypoint(self._parsed(step), step.fingerprint))
        return path

    async def _context(self, selection: Selection, node: Node, kind: Kind) -> Context:
        """Return the context of the state where the rollout is."""
        seen = await self._attempt.context(node, kind, selection=selection.id, draw=selection.draw)
        for step in self._steps(selection, node):
            seen = self._after(seen, step)
        return seen

    def _after(self, before: Context, step: ev.RolledStep) -> Context:
        taken = Taken(
            observation=before.observation,
            action=self._parsed(step),
            rationale=step.rationale,
            error=step.refused,
            note=reported_info(step.info),
        )
        if step.refused:
            return msgspec.structs.replace(before, tried=(*before.tried, taken))
        unseen = _unseen(step)
        left = None if before.steps_left is None else max(0, before.steps_left - 1)
        came = self._attempt.blobs.get_observation(step.observation, step.screenshot) if step.observation else None
        return msgspec.structs.replace(
            before,
            observation=before.observation if unseen or came is None else came,
            history=(*before.history, taken),
            terminated=step.terminated,
            end=came if step.terminated else None,
            unseen=unseen and not step.terminated,
            tried=(),
            steps_left=left,
        )

    def _parsed(self, step: ev.RolledStep) -> Any:
        return self._attempt.live.space.parse(step.action)


def _unseen(step: ev.RolledStep) -> bool:
    """Return True where a step led to a state that cannot be observed."""
    return step.terminated or any(effect.is_blocked for effect in step.effects)
