"""A guided agent for bench/sites.py, which knows the reference path, so that arms differ only in how states are restored.

Its policy has the reference's next action among others drawn at random, all with equal priors; its value is how far along the reference a
path is. It cheats, every table says so, and nothing it reaches is a result about agents.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import _common

from exact.action import Action, ActionSpace
from exact.agents.agent import Agent
from exact.agents.policy.prior import RandomPolicy
from exact.context import Context, Evaluation, Proposal
from exact.observation import Observation

ASTRAY = 0.7
"""What a step off the way leaves of the value."""


def references() -> dict[str, list[list[Any]]]:
    """Right sequences by task, without seed: they are kept with the tests alone."""
    path = _common.ROOT / "tests" / "benchmarks" / "sites" / "reference.json"
    return {name: each["right"] for name, each in json.loads(path.read_text("utf-8")).items()}


def meant(step: Sequence[Any], seen: Observation, actions: ActionSpace) -> Action | None:
    """Return a step of a reference as an action in a state; None where its target does not exist there."""
    verb, *rest = step
    if verb in ("goto", "stop"):
        return actions.action(verb, *rest)
    role, name, *texts, number = rest
    found = [each for each in seen.elements if each.role == role and each.name == name]
    return actions.action(verb, found[number].id, *texts) if len(found) > number else None


class Guide:
    """Policy and value in one."""

    def __init__(self) -> None:
        self._known, self._actions = references(), dict[str, ActionSpace]()

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        self._actions["browser"] = actions
        others = [each.action for each in await RandomPolicy().propose(context, actions, max(1, k - 1))]
        steps, (done, _) = self._steps(context), self._along(context)
        told = meant(steps[done], context.observation, actions) if done < len(steps) else None
        refused = {step.action.key for step in context.tried}
        some = {each.key: each for each in (*others, *([told] if told else []))}
        shuffled = [each for key, each in sorted(some.items()) if key not in refused]
        random.Random(f"{context.seed}/{context.node}").shuffle(shuffled)
        return tuple(Proposal(action=each, prior=1 / len(shuffled)) for each in shuffled)

    async def evaluate(self, context: Context) -> Evaluation:
        done, astray = self._along(context)
        return Evaluation(value=done / len(self._steps(context)) * ASTRAY**astray, rationale="told: how far along the reference")

    def _steps(self, context: Context) -> list[list[Any]]:
        return self._known[context.task.id.partition("?")[0]]

    def _along(self, context: Context) -> tuple[int, int]:
        """Return the number of reference steps that were taken in order, and the number of other steps."""
        steps, done, astray = self._steps(context), 0, 0
        for taken in context.history:
            if taken.error:
                continue
            actions = self._actions.get("browser")
            told = meant(steps[done], taken.observation, actions) if actions and done < len(steps) else None
            if told is not None and told.key == taken.action.key:
                done += 1
            else:
                astray += 1
        return done, astray


def guided(*arguments: object, **more: object) -> Agent:
    """Build the guided agent, as Runner's `build_agent`."""
    guide = Guide()
    return Agent(policy=guide, value=guide, oracle=True)
