"""Records of an attempt, one kind of training data each, before they are written in a format.

Rollouts that are exact in token ids: the prompt of a model and its samples, as its server reported them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from exact.action import Action
from exact.agents.parse import parse_action
from exact.errors import ExactError, JournalError
from exact.learning.attempts import JournaledAttempt
from exact.learning.conversations import Conversation, exploratory, imitation, messages
from exact.learning.states import StateTexts, action_space
from exact.models.base import ChatAnswer, Choice, Image, Message, Text
from exact.runs.journal import events as ev
from exact.search.tree import Edge, Node
from exact.untrusted import decoded

Kind = Literal["imitation", "exploratory", "preference", "value", "policy", "rollouts"]
CONVERSATIONS = ("imitation", "exploratory")
"""Kinds that need an attempt from its start to its end."""


class TrainingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One example: messages to show, messages to learn, and figures."""

    prompt: tuple[Message, ...]
    completion: tuple[Message, ...]
    trained: tuple[bool, ...] = ()
    """Whether each message of the completion is learned. Empty: all that the model wrote."""
    rejected: tuple[Message, ...] = ()
    """The worse completion of a preference."""
    columns: dict[str, Any] = {}
    """Further columns, equal in name and type for all records of a kind."""
    steps: int = 1
    """Answers of the agent in the record."""
    back: int = 0
    """Answers that step back or start again."""
    node: int = -1
    """State that the record is about; -1: the whole attempt."""
    end: str = ""
    """Fingerprint of the last state of a conversation; empty if its last action ended the episode."""
    terminated: bool = False
    """Whether the last action of a conversation ended the episode."""


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an attempt that gives no record."""

    node: int
    reason: str


Found = Iterator[TrainingRecord | Skipped]


def records(kind: Kind, texts: StateTexts, *, by_step: bool, margin: float) -> Found:
    """Yield the records of a kind of one attempt, and the parts that give none.

    by_step: whether conversations become one record an answer. margin: least difference of values of a preference.
    """
    match kind:
        case "imitation":
            yield from _each(texts, [-1], lambda _: _imitated(texts, by_step))
        case "exploratory":
            yield from _each(texts, [-1], lambda _: _conversed(exploratory(texts), by_step))
        case "preference":
            yield from _each(texts, _expanded(texts), lambda id: _preferences(texts, texts.attempt.state.search.tree.nodes[id], margin))
        case "value":
            yield from _each(texts, _valued(texts), lambda id: _values(texts, texts.attempt.state.search.tree.nodes[id]))
        case "policy":
            yield from _each(texts, _expanded(texts), lambda id: _visits(texts, texts.attempt.state.search.tree.nodes[id]))
        case "rollouts":
            yield from _each(
                texts, list(range(len(texts.attempt.state.spending.calls))), lambda number: rollout_records(texts.attempt, number)
            )


def _each(texts: StateTexts, ids: list[int], make: Callable[[int], Iterator[TrainingRecord]]) -> Found:
    """Yield the records of each part. A part that gives none is named, and does not stop the others."""
    for id in ids:
        try:
            with texts.fenced():
                made = list(make(id))
        except (ExactError, msgspec.MsgspecError, LookupError) as error:
            yield Skipped(node=id, reason=" ".join(str(error).split()) or type(error).__name__)
        else:
            yield from made


def _imitated(texts: StateTexts, by_step: bool) -> Iterator[TrainingRecord]:
    """Yield the committed path: as one conversation, or as the prompt that the policy would have had in each state, with its answer."""
    conversation = imitation(texts)
    if not by_step:
        yield from _conversed(conversation, by_step=False)
        return
    for turn in conversation.turns:
        if turn.is_trained:
            node = texts.attempt.state.search.tree.nodes[turn.node]
            yield TrainingRecord(prompt=texts.policy(node), completion=(_assistant(turn.answer),), node=turn.node)


def _conversed(conversation: Conversation, by_step: bool) -> Iterator[TrainingRecord]:
    said = messages(conversation)
    if not conversation.turns:
        return
    if by_step:
        for number, turn in enumerate(conversation.turns):
            before = tuple(message for message, _ in said[: _length(conversation, number)])
            if turn.is_trained:
                yield TrainingRecord(prompt=before, completion=(_assistant(turn.answer),), node=turn.node)
        return
    first = len(conversation.turns[0].shown)
    yield TrainingRecord(
        prompt=tuple(message for message, _ in said[:first]),
        completion=tuple(message for message, _ in said[first:]),
        trained=tuple(is_trained for _, is_trained in said[first:]),
        steps=len(conversation.turns),
        back=conversation.back,
        end=conversation.end,
        terminated=conversation.terminated,
    )


def _length(conversation: Conversation, number: int) -> int:
    """Return how many messages stand before the answer of a turn."""
    return sum(len(turn.shown) for turn in conversation.turns[: number + 1]) + number


def _expanded(texts: StateTexts) -> list[int]:
    return [node.id for node in texts.attempt.state.search.tree.nodes if len(node.edges) > 1 and node.observation and not node.leaf]


def _valued(texts: StateTexts) -> list[int]:
    return [node.id for node in texts.attempt.state.search.tree.nodes if node.mean is not None and not node.unseen]


def _preferences(texts: StateTexts, node: Node, margin: float) -> Iterator[TrainingRecord]:
    """Yield the best action of a state against each sibling whose value is lower by the margin.

    The best is the committed action of a solved attempt, else the one of the highest value. Siblings without a value are left out.
    """
    known = [(index, edge, edge.value) for index, edge in enumerate(node.edges) if edge.value is not None and not edge.futile]
    if len(known) < 2:
        return
    committed = _committed(texts, node)
    best, chosen, high = next((each for each in known if each[0] == committed), max(known, key=lambda each: (each[2], -each[0])))
    prompt, context = texts.policy(node), texts.attempt.context(node)
    for index, edge, value in known:
        if index != best and high - value >= margin:
            yield TrainingRecord(
                prompt=prompt,
                completion=(_assistant(texts.answer(chosen.action, context, texts.thought(node, best))),),
                rejected=(_assistant(texts.answer(edge.action, context, texts.thought(node, index))),),
                columns={"chosen_value": float(high), "rejected_value": float(value)},
                node=node.id,
            )


def _committed(texts: StateTexts, node: Node) -> int:
    """Return the edge that a solved attempt committed in a state; -1 if there is none."""
    score, path = texts.attempt.score, texts.attempt.path
    if score is None or not score.success:
        return -1
    return next((after.via for after in path[1:] if after.parent is node), -1)


def _values(texts: StateTexts, node: Node) -> Iterator[TrainingRecord]:
    """Yield a state with its target: the score on the committed path, else the mean of the search's values at and below it."""
    reward, on_path = texts.attempt.reward, node.id in texts.attempt.state.live.path
    target = reward if reward is not None and on_path else node.mean
    assert target is not None
    source = "score" if reward is not None and on_path else "search"
    yield TrainingRecord(
        prompt=texts.value(node),
        completion=(_assistant(texts.judged(target)),),
        columns={"target": float(target), "source": source, "visits": node.visits},
        node=node.id,
    )


def _visits(texts: StateTexts, node: Node) -> Iterator[TrainingRecord]:
    """Yield a state with the share of visits that each of its actions got."""
    tried: list[Edge] = [edge for edge in node.edges if edge.visits]
    total = sum(edge.visits for edge in tried)
    if len(tried) < 2:
        return
    context = texts.attempt.context(node)
    most = max(range(len(node.edges)), key=lambda index: (node.edges[index].visits, -index))
    yield TrainingRecord(
        prompt=texts.policy(node),
        completion=(_assistant(texts.answer(node.edges[most].action, context, texts.thought(node, most))),),
        columns={
            "actions": [texts.answer(edge.action, context) for edge in tried],
            "visits": [edge.visits for edge in tried],
            "probabilities": [edge.visits / total for edge in tried],
            "values": [float(edge.q) for edge in tried],
        },
        node=node.id,
    )


def _assistant(text: str) -> Message:
    return Message("assistant", (Text(text),))


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

    The reward is the benchmark's score if the answer's action was committed, else the search's value of the action. An answer whose action
    was neither committed nor searched has none, and is left out. Raises JournalError if a token id or log-probability is missing,
    ActionError if an answer holds no action.
    """
    called = list(attempt.state.spending.calls.values())[number]
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
                "step": attempt.state.search.tree.nodes[called.node].depth,
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
    """Return the token ids and log-probabilities of an answer. Raises JournalError if they are not whole."""
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
    """Return the reward of an answer and its source; None if neither the score nor the search gives one."""
    node = attempt.state.search.tree.nodes[called.node]
    action = _action(attempt, choice, node)
    index = next((i for i, edge in enumerate(node.edges) if edge.action.key == action.key), None)
    if index is None:
        return None, ""
    is_committed = any(after.parent is node and after.via == index for after in attempt.path[1:])
    if is_committed and attempt.reward is not None:
        return attempt.reward, "score"
    return node.edges[index].value, "search"


def _action(attempt: JournaledAttempt, choice: Choice, node: Node) -> Action:
    context = attempt.context(node)
    if recalled := attempt.state.search.recalled.get((node.id, "policy")):
        context = msgspec.structs.replace(context, reflections=recalled.reflections)
    labels = attempt.config.policy.elements == "label"
    return parse_action(choice.text, action_space(attempt), context.observation, labels=labels, known=context.texts).action
