"""The learned policy and value function.

Candidate actions of the learned agent: those of the lexical agent, and more texts, drags, points and scrolling.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from itertools import combinations, permutations
from typing import NamedTuple

import msgspec

from exact.action import Action, ActionSpace
from exact.agents.builtin.judge.candidates import candidate_actions
from exact.agents.builtin.judge.situation import Situation, read_situation
from exact.agents.builtin.language.lexical import vocabulary, words
from exact.agents.builtin.page.matching import is_submit
from exact.agents.builtin.page.page import FIELDS, TEXTS, Item
from exact.agents.builtin.policy import LexicalPolicy
from exact.agents.builtin.value import LexicalValue
from exact.agents.learned.features import StateFeatures, read_features
from exact.agents.learned.network import Forward, Network, ended_logit, forward, load
from exact.agents.learned.tokens import Drag, boxed, marks, pulls, pushes
from exact.context import Context, Evaluation, Proposal, Taken
from exact.errors import ActionError, UsageError

_REMEMBERED = 64
"""States whose features are kept: the children of a state are evaluated after it was expanded."""


class ReadState(NamedTuple):
    """A state with its candidates, as the model sees it."""

    actions: tuple[Action, ...]
    features: StateFeatures
    output: Forward


class LearnedAgent:
    """A model, and the states that it read last. Policy and value function share one."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._lexical = LexicalValue()
        self._read = dict[tuple[object, ...], ReadState]()

    async def read(self, context: Context, space: ActionSpace | None, extra: Action | None = None) -> ReadState | None:
        """Return a state that has not ended, with its candidates and `extra`. None if it has no candidates.

        `space`: the environment's actions. None: those of a page, for a value function, which does not know the environment.
        """
        key = _key(context)
        found = self._read.get(key)
        if found is not None and (extra is None or any(action.key == extra.key for action in found.actions)):
            return found
        situation = read_situation(context, context.history, context.tried)
        actions = (*(found.actions if found else wide_candidates(situation, space or _page_actions())), *((extra,) if extra else ()))
        if not actions:
            return None
        value = (await self._lexical.evaluate(context)).value
        features = read_features(context, situation, actions, value)
        read = ReadState(actions, features, forward(self.network.parameters, features))
        self._read[key] = read
        if len(self._read) > _REMEMBERED:
            del self._read[next(iter(self._read))]
        return read


class LearnedPolicy:
    """Ranks candidate actions by the model if a page of a browser sets the task, as in its training.

    Otherwise it proposes the lexical agent's actions.
    """

    def __init__(self, agent: LearnedAgent) -> None:
        self._agent, self._lexical = agent, LexicalPolicy()

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """Return at most `k` distinct actions, best first, with priors that sum to 1. Empty if no action is possible."""
        if not page_sets_task(context):
            return await self._lexical.propose(context, actions, k)
        return await self.rank(context, actions, k)

    async def rank(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """Return the model's proposals, as `propose` does for a page that sets its own task, whoever has set the task."""
        read = await self._agent.read(context, actions)
        if read is None:
            return ()
        refused = {step.action.key for step in context.tried}
        ranked = [at for at in read.output.priors.argsort(kind="stable")[::-1].tolist() if read.actions[at].key not in refused][:k]
        total = sum(float(read.output.priors[at]) for at in ranked)
        return tuple(
            Proposal(
                action=read.actions[at],
                prior=max(float(read.output.priors[at]) / total, 1e-9) if total > 0 else 1 / len(ranked),
                rationale=f"model {float(read.output.priors[at]):.2f}, lexical {float(read.features.lexical[at]):.2f}",
            )
            for at in ranked
        )


class LearnedValue:
    """Estimates success by the model.

    A state that ended the episode is evaluated from the state before its end and the last action. If no page sets the task, and for unseen
    states, it returns the lexical agent's evaluation.
    """

    def __init__(self, agent: LearnedAgent) -> None:
        self._agent, self._lexical = agent, LexicalValue()

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the estimated probability of success."""
        lexical = await self._lexical.evaluate(context)
        if not page_sets_task(context) or (context.unseen and not context.terminated) or context.steps_left == 0:
            return lexical
        found = await (self._ended(context, lexical.value) if context.terminated else self._going(context))
        if found is None:
            return lexical
        value = min(max(1 / (1 + math.exp(-found)), 0.01), 0.99)
        return Evaluation(value=value, rationale=f"model {value:.2f}, lexical {lexical.value:.2f}: {lexical.rationale}", samples=(value,))

    async def _going(self, context: Context) -> float | None:
        read = await self._agent.read(context, None)
        return None if read is None else float(read.output.value[0])

    async def _ended(self, context: Context, lexical: float) -> float | None:
        import numpy as np

        if not context.history:
            return None
        *before, last = context.history
        read = await self._agent.read(before_last(context, before, last), None, last.action)
        if read is None:
            return None
        at = next(n for n, action in enumerate(read.actions) if action.key == last.action.key)
        parameters = self._agent.network.parameters
        return float(ended_logit(parameters, read.output.ended[at : at + 1], np.array([lexical], np.float32))[0])


def page_sets_task(context: Context) -> bool:
    """Return whether a page of a browser sets the task, rather than a user outside."""
    start = context.history[0].observation if context.history else context.observation
    return not context.task.instruction and bool(start.url)


def before_last(context: Context, before: list[Taken], last: Taken) -> Context:
    """Return the context of the state before the last step."""
    left = None if context.steps_left is None else context.steps_left + 1
    return msgspec.structs.replace(
        context, observation=last.observation, history=tuple(before), terminated=False, unseen=False, tried=(), steps_left=left
    )


def _key(context: Context) -> tuple[object, ...]:
    seen = tuple(reflection.id for reflection in context.reflections)
    path = tuple((step.action.key, step.error) for step in context.history)
    ids = tuple(element.id for element in context.observation.elements)
    tried = tuple(step.action.key for step in context.tried)
    return (context.task.id, context.observation.fingerprint, ids, path, tried, context.steps_left, seen)


@functools.cache
def _page_actions() -> ActionSpace:
    """Return the actions of a page, with which a value function reads a state whose environment it does not know."""
    from exact.environments.browser.act.grammar import PAGE_ACTIONS

    return PAGE_ACTIONS


def learned_policy(options: Mapping[str, object]) -> LearnedPolicy:
    """Return the policy that a configuration's options describe. Raises UsageError."""
    return LearnedPolicy(_loaded(_weights("policy", options)))


def learned_value(options: Mapping[str, object]) -> LearnedValue:
    """Return the value function that a configuration's options describe. Raises UsageError."""
    return LearnedValue(_loaded(_weights("value", options)))


def check_weights(part: str, options: Mapping[str, object]) -> None:
    """Raise UsageError if the weights that the options of `part` (policy or value) name do not load."""
    _loaded(_weights(part, options))


def _weights(part: str, options: Mapping[str, object]) -> str:
    if unknown := [name for name in options if name != "weights"]:
        raise UsageError(f"{part}.options: {part}.kind learned has no option {unknown[0]!r}: it has `weights`, the path of a file")
    return str(options.get("weights", ""))


@functools.lru_cache(maxsize=8)
def _loaded(weights: str) -> LearnedAgent:
    """Return the agent of a file of weights, which policy and value function share."""
    return LearnedAgent(load(weights))


MOST = 160
"""Most candidates of a state."""
_MOVES = vocabulary("drag sort move arrange order put drop")
_POINTS = vocabulary("mid-point midpoint middle between halfway")
_WAYS = vocabulary("left right up down upward upwards downward downwards")
_SIZES = vocabulary("resize size larger smaller bigger wider narrower taller shorter")
_MARKS = vocabulary("highlight")
_SCROLLS = vocabulary("scroll")
_PICTURED = frozenset({"graphics-symbol", "image", "img"})


def wide_candidates(situation: Situation, actions: ActionSpace) -> tuple[Action, ...]:
    """Return distinct actions that the grammar admits, the lexical agent's first, at most `MOST`."""
    found = {action.key: action for action in candidate_actions(situation, actions)[:MOST]}
    for verb, *args in _more(situation):
        if verb not in actions.verbs or len(found) >= MOST:
            continue
        try:
            action = actions.action(verb, *args)
        except ActionError:
            continue
        found.setdefault(action.key, action)
    return tuple(found.values())


def _more(situation: Situation) -> Iterator[tuple[str, *tuple[str | float, ...]]]:
    """Yield the verb and the arguments of each further action."""
    fields = [item for item in situation.page.actable if item.role in FIELDS]
    held = [item.element.value for item in fields if item.element.value]
    for item in fields:
        if "readonly" not in item.element.states:
            others = [text for text in held if text != item.element.value][:3]
            for text in (*situation.goal.literals[:6], *others):
                yield "fill", item.element.id, text
    said = set(words(situation.goal.instruction))
    if said & _MOVES:
        for one, other in permutations(_movable(situation), 2):
            yield "drag", one.element.id, other.element.id
    for drag in _drags(situation, said):
        yield "drag_at", *drag
    if said & _SCROLLS:
        for item in [each for each in situation.page.items if each.role in FIELDS][:4]:
            yield "scroll_in", item.element.id, "down"
            yield "scroll_in", item.element.id, "up"
    if said & _POINTS:
        boxes = [item.element.box for item in situation.page.actable if item.role in _PICTURED and item.element.box][:4]
        for first, second in combinations(boxes, 2):
            x = (first.x + first.width / 2 + second.x + second.width / 2) / 2
            yield "click_at", x, (first.y + first.height / 2 + second.y + second.height / 2) / 2


def _drags(situation: Situation, said: set[str]) -> Iterator[Drag]:
    """Yield the drags between points that an instruction may mean."""
    if said & _MOVES and said & _WAYS:
        yield from (drag for box in boxed(situation.page.items, _PICTURED, 4) for drag in pushes(box))
    if said & _SIZES:
        yield from (drag for box in boxed(situation.page.items, FIELDS, 4) for drag in pulls(box))
    if said & _MARKS:
        yield from (marks(box) for box in boxed(situation.page.items, TEXTS, 8))


def _movable(situation: Situation) -> list[Item]:
    """Return the elements that may be dragged or dropped on."""
    return [item for item in situation.page.actable if not is_submit(item) and item.role not in FIELDS][:8]
