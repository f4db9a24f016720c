"""A guided agent for bench/desktop_tasks.py, which knows each task's reference solution.

Its policy has the reference's next action first, among others drawn at random; its value is how far along the reference a path is. It
cheats, and nothing that it reaches is a result about agents: it shows what searching, returning and committing lose.
"""

from __future__ import annotations

from exact.action import Action, ActionSpace
from exact.agents.agent import Agent
from exact.agents.policy.prior import RandomPolicy
from exact.benchmarks.desktop import DesktopSuite
from exact.benchmarks.desktop.problem import resolved
from exact.context import Context, Evaluation, Proposal
from exact.errors import ActionError
from exact.observation import Observation

SUITE = DesktopSuite()
ASTRAY = 0.7
"""What a step off the way leaves of the value."""
DONE = 'stop ""'


def meant(steps: tuple[str, ...], done: int, seen: Observation, actions: ActionSpace) -> Action | None:
    """Return a reference's step as an action in a state, and `stop` after its end; None where its element is not there."""
    try:
        return actions.parse(resolved(steps[done], seen) if done < len(steps) else DONE)
    except ActionError:
        return None


class Way:
    """Policy and value in one."""

    def __init__(self) -> None:
        self._actions: ActionSpace | None = None

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        self._actions = actions
        others = [each.action for each in await RandomPolicy().propose(context, actions, max(1, k - 1))]
        told = meant(self._steps(context), self._along(context)[0], context.observation, actions)
        refused = {step.action.key for step in context.tried}
        some = [
            each for each in ({told.key: told} if told else {} | {each.key: each for each in others}).values() if each.key not in refused
        ]
        return tuple(Proposal(action=each, prior=0.5 if each is told else 0.5 / len(some)) for each in some)

    async def evaluate(self, context: Context) -> Evaluation:
        done, astray = self._along(context)
        return Evaluation(value=done / (len(self._steps(context)) + 1) * ASTRAY**astray, rationale="told: how far along the reference")

    def _steps(self, context: Context) -> tuple[str, ...]:
        return SUITE.problem(context.task.id).reference

    def _along(self, context: Context) -> tuple[int, int]:
        """Return the number of reference steps that were taken in order, and the number of other steps."""
        steps, done, astray = self._steps(context), 0, 0
        for taken in context.history:
            if taken.error:
                continue
            told = meant(steps, done, taken.observation, self._actions) if self._actions else None
            if told is not None and told.key == taken.action.key:
                done += 1
            else:
                astray += 1
        return done, astray


def guided(*arguments: object, **more: object) -> Agent:
    """Build the guided agent, as Runner's `build_agent`."""
    way = Way()
    return Agent(policy=way, value=way, oracle=True)
