"""The policy alone: its first proposal at each step, from any state on."""

from __future__ import annotations

import msgspec

from exact.agents.base import Policy
from exact.context import Context, Taken
from exact.environments.base import Environment
from exact.errors import ActionError
from exact.task import Task


async def started(environment: Environment, task: Task, actions: int) -> Context:
    """Bring an environment to the start of a task. Return what the policy sees there, of at most so many actions."""
    observation = await environment.reset(task)
    instruction = task.instruction or observation.instruction
    return Context(task=task.shown, instruction=instruction, observation=observation, steps_left=actions)


async def stepped(environment: Environment, seen: Context, taken: Taken) -> Context:
    """Carry out an action. Return the context after it. Raises ActionError."""
    assert seen.steps_left is not None
    transition = await environment.step(taken.action)
    return msgspec.structs.replace(
        seen, observation=transition.observation or seen.observation, history=(*seen.history, taken), tried=(),
        terminated=transition.terminated, steps_left=seen.steps_left - 1,
    )  # fmt: skip


async def follow(environment: Environment, policy: Policy, seen: Context) -> list[Context]:
    """Follow the policy to the end, until it proposes nothing, or for as many actions as are left. Return all contexts, the first too.

    An action that the environment refuses is shown to the policy, which is asked again, at most as often as an episode has actions.
    """
    found, most = [seen], len(seen.history) + (seen.steps_left or 0)
    while not seen.terminated and len(seen.history) < most and len(seen.tried) < most:
        proposals = await policy.propose(seen, environment.actions, 1)
        if not proposals:
            break
        taken = Taken(observation=seen.observation, action=proposals[0].action)
        try:
            seen = await stepped(environment, seen, taken)
        except ActionError as error:
            seen = msgspec.structs.replace(seen, tried=(*seen.tried, msgspec.structs.replace(taken, error=str(error))))
        else:
            found.append(seen)
    return found
