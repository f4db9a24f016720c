"""Conversations of an attempt: its committed path, and the way of its search through the tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from exact.agents.policy.conversation import said
from exact.environments.backtracking import RESTART, STEP_BACK
from exact.environments.base import reported_info
from exact.errors import JournalError
from exact.learning.states import StateTexts
from exact.models.base import Message, Text
from exact.runs.attempt.observations import ancestry
from exact.runs.journal import events as ev
from exact.search.tree import Node


class Turn(NamedTuple):
    """One answer of the agent, and the text that it was shown before."""

    shown: tuple[Message, ...]
    """Messages since the last answer: the system turn and the first state, or the state that the last answer led to."""
    answer: str
    is_trained: bool
    """Whether the answer is to be learned. Others are context alone."""
    node: int
    """Id of the state in which the answer was given."""


class Conversation(NamedTuple):
    """The turns of one attempt, and the state in which they end."""

    turns: tuple[Turn, ...]
    end: str
    """Fingerprint of the last state; empty if the last action ended the episode."""
    terminated: bool
    back: int
    """Answers that step back or start again."""


class _Move(NamedTuple):
    """One move of a walk through the tree."""

    kind: Literal["act", "refused", "back", "restart"]
    at: Node
    to: Node
    edge: int = -1
    note: str = ""
    reason: str = ""
    """Why the explorer goes back."""


def imitation(texts: StateTexts) -> Conversation:
    """Return the committed path as a conversation, without refused actions.

    An action that led back to a state in which the attempt had been before is context, and not learned. Raises JournalError if a part of
    the path is missing.
    """
    state, path = texts.attempt.state, texts.attempt.path
    seen, moves, trained = set[str](), list[_Move](), list[bool]()
    for node in path[1:]:
        at = node.parent
        if at is None or node.unseen:
            raise JournalError("a committed state is missing from the tree")
        came = state.search.effects.get(node.id)
        seen.add(at.fingerprint)
        moves.append(_Move("act", at, node, node.via, reported_info(came.info) if came else ""))
        trained.append(node.terminated or node.fingerprint not in seen)
    return _spoken(texts, moves, trained, explores=False)


def exploratory(texts: StateTexts) -> Conversation:
    """Return the way of the search through the tree, up to the end of the committed path, as one conversation.

    Between two steps the explorer steps back to the state at which both paths part, or starts again, and repeats the actions that lead to
    the next step. Simulated steps that ended the episode are left out, except the last one: an explorer without a search ends there. Raises
    JournalError if a part of it is missing.
    """
    moves = list(_walk(texts))
    return _spoken(texts, moves, [True] * len(moves), explores=True)


def _walk(texts: StateTexts) -> Iterator[_Move]:
    """Yield the moves of an explorer that takes the simulated steps in their order, and ends in the attempt's last state."""
    attempt = texts.attempt
    path = attempt.path
    here, end = path[0], path[-1]
    for step, at in attempt.steps:
        to = _outcome(step, at)
        ends = to is not None and (to is end or (to.parent is end.parent and to.via == end.via and _alike(to, end)))
        if (to is None and not step.refused) or (to is not None and to.terminated and not ends):
            continue  # nothing follows an end outside of a search
        yield from _way(texts, here, at, step.edge)
        if to is None:
            yield _Move("refused", at, at, step.edge, step.refused)
            here = at
            continue
        yield _Move("act", at, to, step.edge, reported_info(step.info))
        here = to
        if ends:
            return
    yield from _way(texts, here, end)


def _alike(node: Node, other: Node) -> bool:
    return (node.fingerprint, node.terminated) == (other.fingerprint, other.terminated)


def _outcome(step: ev.Acted, at: Node) -> Node | None:
    """Return the state that a step led to, if it can be shown; None for a refused or blocked action."""
    if step.refused or step.edge >= len(at.edges):
        return None
    alike = (n for n in at.edges[step.edge].outcomes if not n.unseen)
    return next((n for n in alike if n.terminated == step.terminated and n.fingerprint == step.fingerprint), None)


def _way(texts: StateTexts, here: Node, there: Node, edge: int = -1) -> Iterator[_Move]:
    """Yield the moves from one state to another: back to the state at which their paths part, then on.

    `edge`: index of the action to try there; -1 if the explorer has tried what it wants and takes the way that it found to be the best.
    """
    below, above = ancestry(there), ancestry(here)
    common = next(i for i in range(len(below), 0, -1) if len(above) >= i and above[i - 1] is below[i - 1])
    parted = below[common - 1]
    goes_on = below[common].via if common < len(below) else edge
    if common == 1 and len(above) - common > 1:
        yield _Move("restart", here, parted, reason=texts.reason(here, parted, goes_on, tries=edge >= 0))
    else:
        for node in above[: common - 1 : -1]:
            assert node.parent is not None
            yield _Move("back", node, node.parent, reason=texts.reason(node, parted, goes_on, tries=edge >= 0))
    for node in below[common:]:
        assert node.parent is not None
        came = texts.attempt.state.search.effects.get(node.id)
        yield _Move("act", node.parent, node, node.via, reported_info(came.info) if came else "")


def _spoken(texts: StateTexts, moves: list[_Move], trained: list[bool], *, explores: bool) -> Conversation:
    """Return moves as turns. Raises JournalError."""
    start = texts.attempt.path[0]
    with texts.fenced():
        shown, turns = texts.opening(start, explores=explores), list[Turn]()
        for move, learn in zip(moves, trained, strict=True):
            turns.append(Turn(shown, _answer(texts, move, explores), learn, move.at.id))
            shown = (texts.turn(move.to, move.at, move.note),)
    last = moves[-1].to if moves else start
    back = sum(move.kind in ("back", "restart") for move in moves)
    return Conversation(tuple(turns), last.fingerprint if not last.terminated else "", last.terminated, back)


def _answer(texts: StateTexts, move: _Move, explores: bool) -> str:
    match move.kind:
        case "back":
            return said(move.reason, STEP_BACK.name)
        case "restart":
            return said(move.reason, RESTART.name)
    thoughts = (texts.judgement(move.at) if explores else "", texts.thought(move.at, move.edge))
    return texts.answer(move.at.edges[move.edge].action, texts.attempt.context(move.at), "\n".join(filter(None, thoughts)))


def messages(conversation: Conversation) -> list[tuple[Message, bool]]:
    """Return the messages of a conversation, each with whether it is learned."""
    found = list[tuple[Message, bool]]()
    for turn in conversation.turns:
        found += ((message, False) for message in turn.shown)
        found.append((Message("assistant", (Text(turn.answer),)), turn.is_trained))
    return found
