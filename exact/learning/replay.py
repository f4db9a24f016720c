"""Replays of exported conversations: their answers carried out again, one after another, in a fresh environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from exact.agents.parse import parse_action
from exact.environments.base import Environment
from exact.errors import ActionError
from exact.learning.conversations import RESTART, STEP_BACK
from exact.observation import Observation
from exact.task import Task


class ReplayedConversation(NamedTuple):
    """Where a conversation led."""

    end: str
    """Fingerprint of the last state; empty where the last action ended the episode."""
    terminated: bool
    refused: int
    """Answers that the environment refused."""


async def replay(line: Mapping[str, Any], environment: Environment, task: Task, *, labels: bool = False) -> ReplayedConversation:
    """Carry out the answers of an exported conversation and return where they lead.

    line: one line of an export in the format `conversational`, `chat` or `verifiers`. labels: whether its actions name elements by label.
    A step back is a reset and a replay. Raises ActionError for an answer without an action, EnvironmentFailure.
    """
    turns = line.get("messages") or [*line["prompt"], *line["completion"]]
    walker = _Walker(environment, task, labels)
    await walker.restart([])
    for turn in turns:
        if turn["role"] == "assistant":
            content = turn["content"]
            await walker.answer(content if isinstance(content, str) else "".join(part.get("text") or "" for part in content))
    return ReplayedConversation("" if walker.terminated else walker.seen.fingerprint, walker.terminated, walker.refused)


class _Walker:
    """Carries out answers, and remembers the actions that led to the present state."""

    def __init__(self, environment: Environment, task: Task, labels: bool) -> None:
        self._environment, self._task, self._labels = environment, task, labels
        self.taken, self.terminated, self.refused = list[str](), False, 0

    async def restart(self, answers: list[str]) -> None:
        """Return to the start and carry out answers."""
        self.seen: Observation = await self._environment.reset(self._task)
        self.taken, self.terminated = [], False
        for each in answers:
            await self.act(each)

    async def answer(self, text: str) -> None:
        """Carry out one answer."""
        written = text.rpartition("Action: ")[2].strip()
        if written in (STEP_BACK, RESTART):
            await self.restart(self.taken[:-1] if written == STEP_BACK else [])
            return
        try:
            await self.act(text)
        except ActionError:
            self.refused += 1

    async def act(self, text: str) -> None:
        """Carry out one action. Raises ActionError."""
        action = parse_action(text, self._environment.actions, self.seen, labels=self._labels).action
        transition = await self._environment.step(action)
        self.taken.append(text)
        self.terminated = transition.terminated
        if transition.observation is not None:
            self.seen = transition.observation
