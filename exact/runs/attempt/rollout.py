"""Rollouts: the policy's own way from a state, one action at a time, and a judgement of where it ended.

Each step is a fact of its own, so an interrupted rollout goes on where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from exact.budget import Reservation
from exact.context import Context, Proposal, Taken
from exact.environments.base import reported_info
from exact.environments.restore import Slot, Waypoint
from exact.errors import ActionError
from exact.reflection.base import Kind
from exact.runs.attempt.agent_calls import Asking, question
from exact.runs.attempt.context import Setting
from exact.runs.attempt.observations import seen_in, waypoints
from exact.runs.attempt.simulate import Walk
from exact.runs.journal import events as ev
from exact.search.base import Diverged, Failure, Rolled, Selection, Valued
from exact.search.tree import Node


class Rollout:
    """Rolls out from nodes."""

    def __init__(self, setting: Setting, walk: Walk, asking: Asking) -> None:
        self._setting, self._state, self._walk, self._asking = setting, setting.state, walk, asking

    async def __call__(self, selection: Selection, node: Node, held: Reservation) -> tuple[Rolled | Diverged | Failure, bool]:
        """The judgement of where the policy's way ends, and whether it is one that a like state had before.

        Raises EnvironmentFailure, ModelError, BudgetExceeded.
        """
        if not self._over(selection, self._steps(selection, node)) and (missed := await self._go_on(selection, node, held)):
            return missed, False
        context = await self._context(selection, node, "value")
        known = self._state.answered.get(question("value", context))
        taken = [step for step in self._steps(selection, node) if not step.refused]
        if isinstance(known, Valued):
            evaluation = known.evaluation
        else:
            held.add({"evaluations": 1})
            evaluation = await self._setting.agent.value.evaluate(context)
        rolled = Rolled(evaluation=evaluation, steps=len(taken), terminated=any(step.terminated for step in taken))
        return rolled, isinstance(known, Valued)

    async def _go_on(self, selection: Selection, node: Node, held: Reservation) -> Diverged | Failure | None:
        """Step until the way ends. What stood in the way of coming to where it is, or nothing."""
        async with self._walk.at(self._path(selection, node), selection, node, held, more=0) as found:
            if not isinstance(found, Slot):
                return found
            while not self._over(selection, self._steps(selection, node)):
                proposals = await self._next(selection, node)
                if not proposals:
                    break
                held.add({"transitions": 1})
                await self._act(found, selection, node, proposals[0].action.key, proposals[0].rationale)
                held.count("transitions", 1)
        return None

    async def _next(self, selection: Selection, node: Node) -> tuple[Proposal, ...]:
        """The action to take: in the first rollout of a state the policy's favourite, in further ones a draw."""
        context = await self._context(selection, node, "policy")
        if not selection.draw:
            return await self._asking.propose(context, selection.policy, 1)
        draw = selection.draw * (selection.depth + 1) + len(self._steps(selection, node))
        return await self._asking.drawn(msgspec.structs.replace(context, draw=draw), selection.policy)

    async def _act(self, place: Slot, selection: Selection, node: Node, key: str, rationale: str) -> None:
        began, seen = self._setting.journal.now, dict[str, Any]()
        try:
            action = (await self._setting.live.actions()).parse(key)
            seen = seen_in(await place.act(action), self._setting.blobs)
        except ActionError as error:
            seen = {"refused": str(error)}
        place.take_step_count()
        self._setting.record(
            ev.RolledStep(
                node=node.id,
                draw=selection.draw,
                policy=selection.policy,
                index=len(self._steps(selection, node)),
                action=key,
                rationale=rationale,
                seconds=round(self._setting.journal.now - began, 6),
                selection=selection.id,
                **seen,
            )
        )

    def _steps(self, selection: Selection, node: Node) -> Sequence[ev.RolledStep]:
        return self._state.rolled.get((node.id, selection.policy, selection.draw), ())

    def _over(self, selection: Selection, steps: Sequence[ev.RolledStep]) -> bool:
        """Whether the way has ended: as far as it may go, refused, the episode's end, a write held back."""
        last = steps[-1] if steps else None
        return len(steps) >= selection.depth or (last is not None and (bool(last.refused) or _unseen(last)))

    def _path(self, selection: Selection, node: Node) -> list[Waypoint]:
        """From the task's start along the tree and the rollout so far."""
        path = waypoints(node)
        for step in self._steps(selection, node):
            path.append(Waypoint(self._parsed(step), step.fingerprint))
        return path

    async def _context(self, selection: Selection, node: Node, kind: Kind) -> Context:
        """What may be looked at where the rollout is."""
        seen = await self._setting.context(node, kind, selection=selection.id, draw=selection.draw)
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
        observation = before.observation if unseen else self._setting.blobs.get_observation(step.observation, step.screenshot)
        return msgspec.structs.replace(
            before, observation=observation, history=(*before.history, taken), terminated=unseen, tried=(), steps_left=left
        )

    def _parsed(self, step: ev.RolledStep) -> Any:
        return self._setting.live.space.parse(step.action)


def _unseen(step: ev.RolledStep) -> bool:
    """Whether what it led to cannot be looked at."""
    return step.terminated or any(effect.is_blocked for effect in step.effects)
