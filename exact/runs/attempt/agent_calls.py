"""Calls of the agent: proposals, evaluations and comparisons. Equal questions are asked once."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import msgspec

from exact.action import Action
from exact.agents.base import evaluate, evaluate_all, propose, sample
from exact.budget import Reservation
from exact.context import Context, Proposal
from exact.observation import Observation
from exact.parts import awaited, calling
from exact.reflection.record import action_kind
from exact.runs.attempt.attempt_context import AttemptContext
from exact.search.base import Batched, Compared, Failure, Proposed, Result, Selection, Valued
from exact.search.tree import Node

NOTHING = Failure(kind="action", reason="the policy proposes nothing here")


class Answered(NamedTuple):
    """The result of one need of a selection."""

    result: Result
    key: str = ""
    """Digest of the question; empty where its answer is not kept for equal questions."""
    reused: bool = False
    """Whether an equal question was answered before, so that nothing was spent."""


class AgentCalls:
    """Asks the agent what selections need."""

    def __init__(self, attempt: AttemptContext) -> None:
        self._attempt, self._state = attempt, attempt.state

    async def value(self, selection: Selection, node: Node, reserved: Reservation) -> Answered:
        """Get an evaluation of a node. Raises ModelError, BudgetExceeded."""
        context = await self._context(selection, node, confirms=selection.confirms)
        key = question_digest("value", context)
        if key in self._state.search.answered:
            return Answered(self._state.search.answered[key], key, reused=True)
        reserved.add({"evaluations": 1})
        return Answered(Valued(evaluation=await evaluate(self._attempt.agent.value, context)), key)

    async def batch(self, selection: Selection, node: Node, reserved: Reservation) -> Answered:
        """Get an evaluation of each of the rivals' children in one request. Raises ModelError, BudgetExceeded."""
        contexts = await self._rivals(selection, node)
        key = question_digest("batch", contexts[0], *(question_digest("value", context) for context in contexts))
        if key in self._state.search.answered:
            return Answered(self._state.search.answered[key], key, reused=True)
        reserved.add({"evaluations": len(contexts)})
        return Answered(Batched(evaluations=await evaluate_all(self._attempt.agent.value, contexts)), key)

    async def comparison(self, selection: Selection, node: Node, reserved: Reservation) -> Answered:
        """Get a comparison of the rivals' children. Raises ModelError, BudgetExceeded."""
        contexts = await self._rivals(selection, node)
        reserved.add({"evaluations": len(contexts)})
        comparator = self._attempt.agent.state_comparator
        with calling("comparator.compare", comparator):
            return Answered(Compared(scores=tuple(map(float, await awaited(comparator.compare(contexts))))))

    async def proposals(self, selection: Selection, node: Node) -> Answered:
        """Get at most k actions for a node; a Failure where the policy has none. Raises ModelError, BudgetExceeded."""
        context = await self._attempt.context(node, "policy", selection=selection.id, draw=selection.draw)
        key = question_digest("policy", context, selection.policy, selection.k)
        if key in self._state.search.answered:
            return Answered(self._state.search.answered[key], key, reused=True)
        found = await self.propose(context, selection.policy, selection.k)
        if self._attempt.guide:
            found = self._attempt.guide.first(node, found)
        return Answered(Proposed(proposals=found), key) if found else Answered(NOTHING)

    async def sample(self, selection: Selection, node: Node) -> Answered:
        """Get one action drawn from a policy; a Failure where it has none. Raises ModelError, BudgetExceeded."""
        context = await self._attempt.context(node, "policy", selection=selection.id, draw=selection.draw)
        found = await self.draw(context, selection.policy)
        return Answered(Proposed(proposals=found) if found else NOTHING)

    async def propose(self, context: Context, policy: int, k: int) -> tuple[Proposal, ...]:
        """Return a policy's proposals.

        Those are marked that are presumed to write: they send a form, or wrote in another state of this attempt.
        """
        actions = self._attempt.live.space
        proposals = await propose(self._attempt.agent.proposer(policy), context, actions, k)
        return tuple(self._mark_write(proposal, context) for proposal in proposals)

    async def draw(self, context: Context, policy: int) -> tuple[Proposal, ...]:
        """Draw one of a policy's proposals. As many are asked for as at an expansion, so that each draw may give another one."""
        actions, k = self._attempt.live.space, self._attempt.config.search.k
        found = await sample(self._attempt.agent.proposer(policy), context, actions, k)
        return tuple(self._mark_write(proposal, context) for proposal in found)

    async def _rivals(self, selection: Selection, node: Node) -> list[Context]:
        """Return the contexts of the rivals' children."""
        children = (node.edges[i].child for i in selection.rivals)
        return [await self._context(selection, child) for child in children if child is not None]

    async def _context(self, selection: Selection, node: Node, *, confirms: bool = False) -> Context:
        work = self._state.search.tree.open.get(selection.id)  # None if a viewer released it meanwhile
        draw = work.draw if work else selection.draw
        return await self._attempt.context(node, "value", selection=selection.id, draw=draw, confirms=confirms)

    def _mark_write(self, proposal: Proposal, context: Context) -> Proposal:
        seen = context.observation
        if proposal.writes or not (self._state.search.writing or seen.senders):
            return proposal
        writes = sends_form(proposal.action, seen) or action_kind(proposal.action, seen) in self._state.search.writing
        return msgspec.structs.replace(proposal, writes=writes)


def sends_form(action: Action, seen: Observation) -> bool:
    """Return True where an action sends a form that may write: a click on its button, or Enter in its field."""
    if action.name == "press":
        return action.args == ("Enter",) and any(each.id in seen.senders and "focused" in each.states for each in seen.elements)
    pointed = [seen.element(id) for id in action.elements if id in seen.senders]
    return action.name == "click" and any(each is not None and each.role == "button" for each in pointed)


def question_digest(kind: str, context: Context, *more: object) -> str:
    """Return a digest of all that an agent is shown: the question, the path to the state, the state, the reflections, the draw."""
    about = (
        kind,
        context.instruction,
        [(taken.observation.fingerprint, taken.action.key, taken.error or taken.note) for taken in context.history],
        context.observation.fingerprint,
        context.terminated,
        *(["unseen"] if context.unseen else ()),
        *([context.end.fingerprint] if context.end else ()),
        *([context.observation.marked] if context.observation.marked else ()),
        [taken.action.key for taken in context.tried],
        [reflection.id for reflection in context.reflections],
        (context.steps_left, context.draw, context.confirms),
        [str(each) for each in more],
    )
    return hashlib.blake2b(msgspec.json.encode(about), digest_size=12).hexdigest()
