"""Proposals in the order of their novelty, for progressive widening by novelty."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import msgspec

from exact.action import Action, ActionSpace
from exact.agents.agent import Agent, build_agent
from exact.agents.base import Policy
from exact.config import Config
from exact.context import Context, Proposal
from exact.models.base import ChatModel
from exact.observation import Element


class NovelFirst:
    """Policy that proposes, after its first choice, what differs most from all that it proposes before. The priors keep their order."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """Return the proposals of the policy in that order."""
        found = await self._policy.propose(context, actions, k)
        elements = {each.id: each for each in context.observation.elements}
        words = {each.action.key: words_of(each.action, elements) for each in found}
        chosen, left = list(found[:1]), list(found[1:])
        while left:
            novel = max(left, key=lambda each: min(distance(words[each.action.key], words[one.action.key]) for one in chosen))
            chosen.append(novel)
            left.remove(novel)
        return tuple(msgspec.structs.replace(each, prior=before.prior) for each, before in zip(chosen, found, strict=True))


def words_of(action: Action, elements: Mapping[str, Element]) -> frozenset[str]:
    """Return the verb, the roles and names of the elements, and the other arguments as words."""
    named = [elements[id] for id in action.elements if id in elements]
    texts = [*(str(each) for each in action.args if each not in action.elements), *(each.name for each in named)]
    return frozenset([action.name, *(each.role for each in named), *" ".join(texts).lower().split()])


def distance(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the Jaccard distance of two sets of words, 0 to 1."""
    return 1 - len(one & other) / len(one | other)


def novel(config: Config, models: Callable[[str], ChatModel]) -> Agent:
    """Build the agent of a configuration with novel proposals first."""
    agent = build_agent(config, models)
    return dataclasses.replace(agent, policy=NovelFirst(agent.policy))
