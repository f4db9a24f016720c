"""Replays of exported conversations: their answers carried out again, one after another, in a fresh environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from exact.agents.parse import parse_action
from exact.environments.backtracking import BacktrackingEnvironment
from exact.environments.base import Environment
from exact.errors import ActionError
from exact.task import Task


class ReplayedConversation(NamedTuple):
    """Where a conversation led."""

    end: str
    """Fingerprint of the last state; empty where the last action ended the episode."""
    terminated: bool
    refused: int
    """Answers without an action, or with one that the environment refused."""


async def replay(line: Mapping[str, Any], environment: Environment, task: Task, *, labels: bool = False) -> ReplayedConversation:
    """Carry out the answers of an exported conversation and return where they lead.

    line: one line of an export in the format `conversational`, `chat` or `verifiers`. labels: whether its actions name elements by label.
    Raises EnvironmentFailure.
    """
    turns = line.get("messages") or [*line["prompt"], *line["completion"]]
    walked, refused, terminated = BacktrackingEnvironment(environment), 0, False
    seen = await walked.reset(task)
    for turn in turns:
        if turn["role"] != "assistant":
            continue
        content = turn["content"]
        text = content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)
        try:
            transition = await walked.step(parse_action(text, walked.actions, seen, labels=labels).action)
        except ActionError:
            refused += 1
            continue
        terminated, seen = transition.terminated, transition.observation or seen
    return ReplayedConversation("" if terminated else seen.fingerprint, terminated, refused)
