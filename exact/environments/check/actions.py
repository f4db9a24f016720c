"""Actions that the user gives to a check, for environments whose elements do not say what can be done."""

from __future__ import annotations

import re
from collections.abc import Sequence

from exact.action import Action, ActionSpace
from exact.environments.base import EnvironmentFactory
from exact.environments.browser.act.grammar import resolve_names
from exact.environments.check.base import Propose
from exact.errors import ActionError, UsageError
from exact.observation import Observation

_NAMED = re.compile(r"\[\s*(?:[A-Za-z][\w-]*)?\s*\"(?:[^\"\\]|\\.)*\"\s*\]")
"""An element by role and name, or by name alone."""


async def written_actions(environments: EnvironmentFactory, texts: Sequence[str]) -> Propose:
    """Return a function that proposes these actions in every state, those that fit it.

    An element may be named by role and name, `click [button "Ok"]`; in a state without it the action is left out. Raises UsageError where
    a text is no action of the environment, EnvironmentFailure where no environment opens.
    """
    async with environments.open(simulation=True) as environment:
        for text in texts:
            try:
                environment.actions.parse(_NAMED.sub("[1]", text))
            except ActionError as error:
                raise UsageError(f"{text!r} is no action of this environment: {error}") from error

    def propose(seen: Observation, actions: ActionSpace) -> list[Action]:
        return [action for text in texts if (action := _in_state(text, seen, actions)) is not None]

    return propose


def _in_state(text: str, seen: Observation, actions: ActionSpace) -> Action | None:
    try:
        return actions.parse(resolve_names(text, seen.elements))
    except ActionError:
        return None
