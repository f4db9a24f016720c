"""Policy and value of agents that know a way to solve each task: `_guided.py` for sites and `_desktop_way.py` for desktops.

The policy has the way's next action among others drawn at random; the value is how far along the way a path is. Such an agent cheats, every
table says so, and nothing that it reaches is a result about agents: it shows what searching, returning and committing lose.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Generic, TypeVar

from exact.action import Action, ActionSpace
from exact.agents.agent import Agent
from exact.agents.policy.prior import RandomPolicy
from exact.context import Context, Evaluation, Proposal
from exact.observation import Observation

ASTRAY = 0.7
"""What a step off the way leaves of the value."""

Step = TypeVar("Step")


class KnownWay(Generic[Step]):
    """Policy and value in one. Subclasses know the steps."""

    prior: float | None = None
    """Prior of the right action, which is then the first. None: equal priors, in an order drawn by the state."""

    def __init__(self) -> None:
        self._actions: ActionSpace | None = None

    def steps(self, task: str) -> Sequence[Step]:
        """Return the way of a task, by its id."""
        raise NotImplementedError

    def meant(self, step: Step, seen: Observation, actions: ActionSpace) -> Action | None:
        """Return a step as an action in a state; None where its element is not there."""
        raise NotImplementedError

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        self._actions = actions
        others = [each.action for each in await RandomPolicy().propose(context, actions, max(1, k - 1))]
        right = self._right(context, self._along(context)[0], context.observation)
        refused = {step.action.key for step in context.tried}
        some = {each.key: each for each in (*([right] if right else []), *others) if each.key not in refused}
        if self.prior is not None and right is not None and right.key in some:
            rest = (1 - self.prior) / max(1, len(some) - 1)
            return tuple(Proposal(action=each, prior=self.prior if key == right.key else rest) for key, each in list(some.items())[:k])
        shuffled = [some[key] for key in sorted(some)]
        random.Random(f"{context.seed}/{context.node}").shuffle(shuffled)
        return tuple(Proposal(action=each, prior=1 / len(shuffled)) for each in shuffled)

    async def evaluate(self, context: Context) -> Evaluation:
        done, astray = self._along(context)
        value = done / len(self.steps(context.task.id)) * ASTRAY**astray
        return Evaluation(value=value, rationale="told: how far along the reference")

    def _right(self, context: Context, done: int, seen: Observation) -> Action | None:
        steps = self.steps(context.task.id)
        return self.meant(steps[done], seen, self._actions) if self._actions and done < len(steps) else None

    def _along(self, context: Context) -> tuple[int, int]:
        """Return the number of steps of the way that were taken in order, and the number of other steps."""
        done = astray = 0
        for taken in context.history:
            if taken.error:
                continue
            right = self._right(context, done, taken.observation)
            if right is not None and right.key == taken.action.key:
                done += 1
            else:
                astray += 1
        return done, astray

    @classmethod
    def agent(cls, *arguments: object, **more: object) -> Agent:
        """Build the agent, as Runner's `build_agent`."""
        way = cls()
        return Agent(policy=way, value=way, oracle=True)
