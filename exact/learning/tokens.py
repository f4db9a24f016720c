"""Rollouts that are exact in token ids: what a model was sent and what it sampled, as its server reported it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from exact.action import Action
from exact.agents.parse import parse_action
from exact.agents.request import by_label
from exact.documents import decoded
from exact.errors import JournalError
from exact.learning.actions import action_space
from exact.learning.attempts import JournaledAttempt
from exact.models.base import ChatAnswer, Choice, Image, Message, Text
from exact.runs.journal import events as ev

if TYPE_CHECKING:
    from exact.learning.records import TrainingRecord


class _Part(msgspec.Struct):
    text: str = ""
    image: str = ""


class _Turn(msgspec.Struct):
    role: str
    parts: tuple[_Part, ...]


class _Reported(msgspec.Struct):
    """The part of a server's answer that has the prompt's token ids (vLLM, `return_token_ids`)."""

    prompt_token_ids: tuple[int, ...] | None = None


def rollout_records(attempt: JournaledAttempt, number: int) -> Iterator[TrainingRecord]:
    """Yield one record for each answer of one call of a policy, with its token ids, log-probabilities and reward.

    The reward is the benchmark's score where the answer's action was committed, else the search's value of the action. An answer whose
    action was neither committed nor searched has none, and is left out. Raises JournalError where a token id or log-probability is
    missing, ActionError where an answer holds no action.
    """
    from exact.learning.records import TrainingRecord

    called = list(attempt.state.calls.values())[number]
    if called.role.partition(".")[0] != "policy":
        return
    answer = attempt.blobs.read(called.answer, ChatAnswer)
    prompt, given = _prompt(attempt, called), _prompt_ids(answer.raw)
    for choice in answer.choices:
        ids, logprobs = _tokens(choice)
        reward, source = _reward(attempt, called, choice)
        if reward is None:
            continue
        yield TrainingRecord(
            prompt=prompt,
            completion=(Message("assistant", (Text(choice.text),)),),
            columns={
                "prompt_ids": given,
                "completion_ids": ids,
                "completion_mask": [1] * len(ids),
                "logprobs": logprobs,
                "reward": float(reward),
                "source": source,
                "temperature": float(called.sampling.temperature),
                "model": called.model,
                "step": attempt.state.tree.nodes[called.node].depth,
            },
            node=called.node,
        )


def _prompt(attempt: JournaledAttempt, called: ev.Called) -> tuple[Message, ...]:
    turns = attempt.blobs.read(called.request, tuple[_Turn, ...])
    return tuple(
        Message(turn.role, tuple(Image(attempt.blobs.get(part.image)) if part.image else Text(part.text) for part in turn.parts))  # type: ignore[arg-type]
        for turn in turns
    )


def _prompt_ids(raw: str) -> list[int] | None:
    try:
        found = decoded(raw, _Reported).prompt_token_ids
    except ValueError:
        return None
    return None if found is None else list(found)


def _tokens(choice: Choice) -> tuple[list[int], list[float]]:
    """Return the token ids and log-probabilities of an answer. Raises JournalError where they are not whole."""
    ids, logprobs = choice.token_ids, choice.logprobs
    if ids is None or logprobs is None:
        missing = "token ids" if ids is None else "log-probabilities"
        raise JournalError(f"the server gave no {missing}: set policy.weigh to logprobs, with a server that reports them (vLLM, llama.cpp)")
    if not ids or len(ids) != len(logprobs):
        raise JournalError(f"the server gave {len(ids)} token ids and {len(logprobs)} log-probabilities for one answer")
    if not all(math.isfinite(each) and each <= 1e-6 for each in logprobs):
        raise JournalError("a log-probability is above 0 or no number")
    return list(ids), list(logprobs)


def _reward(attempt: JournaledAttempt, called: ev.Called, choice: Choice) -> tuple[float | None, str]:
    """Return the reward of an answer and its source; None where neither the score nor the search says one."""
    node = attempt.state.tree.nodes[called.node]
    seen = attempt.blobs.get_observation(node.observation)
    action = _action(attempt, choice, seen)
    index = next((i for i, edge in enumerate(node.edges) if edge.action.key == action.key), None)
    if index is None:
        return None, ""
    is_committed = any(after.parent is node and after.via == index for after in attempt.path[1:])
    if is_committed and attempt.reward is not None:
        return attempt.reward, "score"
    return node.edges[index].value, "search"


def _action(attempt: JournaledAttempt, choice: Choice, seen: Any) -> Action:
    return parse_action(choice.text, action_space(attempt), seen, labels=by_label(attempt.config.policy)).action
