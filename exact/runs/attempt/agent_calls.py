"""Ask the agent: proposals, judgements and comparisons, each only once for what it is shown."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from exact.action import Action
from exact.agents.base import evaluate_all, sample
from exact.budget import Reservation
from exact.context import Context, Proposal
from exact.observation import Observation
from exact.reflection.lesson import action_label
from exact.runs.attempt.context import Setting
from exact.search.base import Batched, Compared, Failure, Proposed, Result, Selection, Valued
from exact.search.tree import Node

Said = tuple[Result, str, bool]
"""A result, the digest of the question, and whether it is the answer to an equal question."""


class Asking:
    """Puts selections to the agent."""

    def __init__(self, setting: Setting) -> None:
        self._setting, self._state = setting, setting.state

    async def value(self, selection: Selection, node: Node, held: Reservation) -> Said:
        """A judgement of a node. Raises ModelError, BudgetExceeded."""
        context = await self._setting.context(node, "value", selection=selection.id, draw=selection.draw, confirms=selection.confirms)
        key = question("value", context)
        if key in self._state.answered:
            return self._state.answered[key], key, True
        held.add({"evaluations": 1})
        return Valued(evaluation=await self._setting.agent.value.evaluate(context)), key, False

    async def proposals(self, selection: Selection, node: Node, k: int) -> Said:
        """At most k actions for a node; a Failure where the policy has none. Raises ModelError, BudgetExceeded."""
        context = await self._setting.context(node, "policy", selection=selection.id, draw=selection.draw)
        key = question("policy", context, selection.policy, k)
        if key in self._state.answered:
            return self._state.answered[key], key, True
        found = await self.propose(context, selection.policy, k)
        return (Proposed(proposals=found), key, False) if found else (NOTHING, "", False)

    async def sample(self, selection: Selection, node: Node) -> Said:
        """One action drawn from a policy; a Failure where it has none. Raises ModelError, BudgetExceeded."""
        context = await self._setting.context(node, "policy", selection=selection.id, draw=selection.draw)
        found = await self.drawn(context, selection.policy)
        return (Proposed(proposals=found), "", False) if found else (NOTHING, "", False)

    async def drawn(self, context: Context, policy: int) -> tuple[Proposal, ...]:
        """A draw from a policy's proposals: as many are asked for as at an expansion, so that it can be another one each time."""
        actions, k = await self._setting.live.actions(), self._setting.config.search.k
        found = await sample(self._setting.agent.proposer(policy), context, actions, k)
        return tuple(self._marked(proposal, context) for proposal in found)

    async def propose(self, context: Context, policy: int, k: int) -> tuple[Proposal, ...]:
        """A policy's proposals, those marked that are presumed to write: they send a form, or wrote in this attempt in whatever state."""
        actions = await self._setting.live.actions()
        found = await self._setting.agent.proposer(policy).propose(context, actions, k)
        return tuple(self._marked(proposal, context) for proposal in found)

    async def comparison(self, selection: Selection, node: Node, held: Reservation) -> Compared:
        """The children of the rivals against each other. Raises ModelError, BudgetExceeded."""
        contexts = await self._rivals(selection, node)
        held.add({"evaluations": len(contexts)})
        return Compared(scores=await self._setting.agent.state_comparator.compare(contexts))

    async def batch(self, selection: Selection, node: Node, held: Reservation) -> Said:
        """A judgement of each of the rivals' children, asked for together. Raises ModelError, BudgetExceeded."""
        contexts = await self._rivals(selection, node)
        key = question("batch", contexts[0], *(question("value", context) for context in contexts))
        if key in self._state.answered:
            return self._state.answered[key], key, True
        held.add({"evaluations": len(contexts)})
        return Batched(evaluations=await evaluate_all(self._setting.agent.value, contexts)), key, False

    async def _rivals(self, selection: Selection, node: Node) -> list[Context]:
        """What an agent may look at in the children of the rivals."""
        children = (node.edges[i].child for i in selection.rivals)
        return [
            await self._setting.context(child, "value", selection=selection.id, draw=selection.draw)
            for child in children
            if child is not None
        ]

    def _marked(self, proposal: Proposal, context: Context) -> Proposal:
        seen = context.observation
        if proposal.writes or not (self._state.writing or seen.senders):
            return proposal
        writes = sends(proposal.action, seen) or action_label(proposal.action, seen) in self._state.writing
        return msgspec.structs.replace(proposal, writes=writes)


def sends(action: Action, seen: Observation) -> bool:
    """Whether an action sends a form that may write, as far as a state tells before: a click on its button, Enter in its field."""
    if action.name == "press":
        return action.args == ("Enter",) and any(each.id in seen.senders and "focused" in each.states for each in seen.elements)
    pointed = [seen.element(id) for id in action.elements if id in seen.senders]
    return action.name == "click" and any(each is not None and each.role == "button" for each in pointed)


NOTHING = Failure(kind="action", reason="the policy proposes nothing here")


def question(kind: str, context: Context, *more: object) -> str:
    """Digest of all that an agent is shown: what is asked, the way to the state, the state, the lessons, the draw."""
    about = (
        kind,
        context.instruction,
        [(taken.observation.fingerprint, taken.action.key, taken.error or taken.note) for taken in context.history],
        context.observation.fingerprint,
        context.terminated,
        [taken.action.key for taken in context.tried],
        [reflection.id for reflection in context.reflections],
        (context.steps_left, context.draw, context.confirms),
        _plain(more),
    )
    return hashlib.blake2b(msgspec.json.encode(about), digest_size=12).hexdigest()


def _plain(more: Sequence[object]) -> list[str]:
    return [str(each) for each in more]
