"""TRL's `environment_factory` over an OpenEnv server: the actions of an environment as a tool of the model that is trained.

    with EnvironmentTools("http://127.0.0.1:8000") as environments:
        GRPOTrainer(..., environment_factory=environments)

The columns `task_name` and `seed` of a row choose the episode. The chat template of the model has to support tools.
"""

from __future__ import annotations

import math
from typing import Any, Self

from exact.errors import EnvironmentFailure, UsageError
from exact.learning.train.episodes import page_text
from exact.learning.train.sessions import ClientSessions, SessionClient, asked


class EnvironmentTools:
    """Makes an environment for each rollout. Each has a separate session; all are closed with this object."""

    def __init__(self, server: str, *, characters: int = 2000) -> None:
        """Configure the environments. characters: most characters of a page's text that the model is shown."""
        self._sessions, self._characters = ClientSessions(server, 0), characters

    def __enter__(self) -> Self:
        self._sessions.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._sessions.__exit__(*error)

    def __call__(self) -> ToolEnvironment:
        """Return a new environment."""
        return ToolEnvironment(self._sessions, self._sessions.another(), self._characters)


class ToolEnvironment:
    """Episodes of one rollout at a time, with one tool: `act`."""

    def __init__(self, sessions: ClientSessions, client: SessionClient, characters: int) -> None:
        self._sessions, self._client, self._characters = sessions, client, characters
        self._total, self._done = 0.0, True
        self._failure: EnvironmentFailure | UsageError | None = None

    def reset(self, task_name: str = "", seed: int = 0, **row: Any) -> str:
        """Begin an episode, and return the goal and the page. Raises EnvironmentFailure, UsageError."""
        self._total, self._done, self._failure = 0.0, False, None
        task = {"task_name": task_name} if task_name else {}
        found = self._sessions.run(self._begun(seed, task))
        return page_text(found.observation, self._characters, goal=True)

    def act(self, action: str) -> str:
        """Carry out one action on the page, and see what it led to.

        Args:
            action: One action, such as `click [3]`, `fill [2] "text"` or `press "Enter"`.

        Returns:
            The text of the page after the action.
        """
        if self._done:
            return "The episode is over."
        try:
            found = self._sessions.run(self._stepped(action))
            reward = float(found.reward or 0.0)
            if not math.isfinite(reward):
                raise UsageError(f"the server gave the reward {reward} for {action}: a reward is a finite number; correct the environment")
        except (EnvironmentFailure, UsageError) as error:  # TRL shows a tool's error to the model, and continues
            self._failure, self._done = error, True
            raise
        self._total += reward
        self._done = bool(found.done)
        return page_text(found.observation, self._characters)

    def get_reward(self) -> float:
        """Return the sum of the episode's rewards. Raises the failure that ended it: an unmeasured episode has no score."""
        if self._failure is not None:
            raise self._failure
        return self._total

    async def _begun(self, seed: int, task: dict[str, str]) -> Any:
        return await asked(self._client.reset(seed=seed, **task))  # outside of a loop, OpenEnv's client would not return a coroutine

    async def _stepped(self, action: str) -> Any:
        return await asked(self._client.step({"action_str": action}))
