"""Drawing one action from a policy."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from exact.action import ActionSpace
from exact.agents.base import sample
from exact.context import Context, Proposal
from exact.environments.toy.factory import TOY_ACTIONS, toy_task
from exact.observation import Observation

CONTEXT = Context(task=toy_task("bandit"), instruction="", observation=Observation(text="", fingerprint="a"), seed=3, node=5)


class Three:
    """A policy with three actions of known priors that records its draws."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        self.asked.append(context.draw)
        return tuple(Proposal(action=actions.action("go", name), prior=p) for name, p in (("a", 0.6), ("b", 0.3), ("c", 0.1)))[:k]


async def drawn(draw: int, policy: Three | None = None) -> Proposal:
    context = msgspec.structs.replace(CONTEXT, draw=draw)
    [proposal] = await sample(policy or Three(), context, TOY_ACTIONS, 3)
    return proposal


async def test_actions_are_drawn_as_often_as_their_priors_say() -> None:
    counts = Counter([(await drawn(draw)).action.args[0] for draw in range(1000)])
    assert [counts[name] / 1000 for name in "abc"] == pytest.approx([0.6, 0.3, 0.1], abs=0.05)


async def test_a_drawn_action_is_certain_and_can_be_drawn_again() -> None:
    assert (await drawn(7)).prior == 1.0 and await drawn(7) == await drawn(7)


async def test_the_policy_is_asked_anew_for_every_k_draws() -> None:
    policy = Three()
    for draw in range(6):
        await drawn(draw, policy)
    assert policy.asked == [0, 0, 0, 1, 1, 1]


async def test_a_policy_without_proposals_gives_no_sample() -> None:
    class Mute:
        async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
            return ()

    assert await sample(Mute(), CONTEXT, TOY_ACTIONS, 3) == ()
