"""Search of a training task by whole episodes, with the environment's reward.

Each episode starts at the task's start, follows the tree by PUCT (Rosin 2011), and goes on by the same rule beyond the tree, until the page
ends the episode or `steps` are done. The reward of the end is backed up along the path, less 3 percent for each step. States that look
alike are one node, whichever path leads there. If a page contradicts that, because it keeps hidden state, the search is repeated with a
node for each path. Priors are the agent's, with Dirichlet noise (AlphaZero, Silver et al. 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from exact.agents.builtin.value import LexicalValue
from exact.agents.learned.agent import LearnedAgent, ReadState
from exact.context import Context, Taken
from exact.environments.base import Environment
from exact.environments.reward import reward_of, with_rewards
from exact.errors import ActionError
from exact.learning.builtin.split import Split
from exact.observation import Observation
from exact.task import Task

if TYPE_CHECKING:
    import numpy as np

DISCOUNT = 0.97
"""Worth of a success that is one step farther."""
_IDLE, _WORTH_A_TRY = ("wait", "go_back"), 0.3
"""Actions that cost up to a second, and the lexical score from which they are tried."""
_HIDDEN = ("press", "drag_at", "scroll_in")
"""Actions that may change state that only a screenshot shows: a selection, a size, a field's scroll position."""


class ExploreSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a task is searched, and how widely."""

    episodes: int = 48
    """Most episodes of one task and seed."""
    enough: int = 3
    """Successful episodes after which a task is left if its first episode succeeded; otherwise four times as many are needed."""
    steps: int = 15
    """Most actions of an episode."""
    all_steps: int = 240
    """Steps of a task and seed after which no further episode begins."""
    c: float = 1.0
    """Exploration constant of PUCT."""
    noise: float = 0.25
    """Share of the noise in priors."""
    alpha: float = 0.3
    """Concentration of the noise: below 1 it favours few actions."""
    temperature: float = 1.6
    """Temperature of the agent's priors: above 1 they are flatter."""


@dataclass
class ActionStatistics:
    """Statistics of one action of a state."""

    visits: int = 0
    total: float = 0.0
    best: float = 0.0
    closed: bool = False
    """Whether the action was refused, or changes nothing."""
    ended: float | None = None
    """Reward if the action ends the episode."""
    lexical: float = 0.5
    """The lexical agent's value of the ended episode."""

    @property
    def left(self) -> bool:
        """Return whether another try is pointless: it was refused, or ended the episode without a reward twice."""
        return self.closed or (self.visits > 1 and self.ended is not None and self.ended <= 0)

    @property
    def q(self) -> float:
        """Mean of the mean and the best return."""
        return (self.total / self.visits + self.best) / 2 if self.visits else 0.0


@dataclass
class StateNode:
    """A state, as first reached."""

    context: Context
    read: ReadState
    priors: np.ndarray[Any, Any]
    edges: dict[int, ActionStatistics] = field(default_factory=dict)
    """By index of the action; only those that were tried."""
    visits: int = 0
    total: float = 0.0
    best: float = 0.0

    def choose(self, c: float) -> int | None:
        """Return the action to follow. None if all are left."""
        parent = (self.total / self.visits + self.best) / 2 if self.visits else 0.5
        root, found, highest = math.sqrt(self.visits + 1), None, -math.inf
        for at in range(len(self.read.actions)):
            edge = self.edges.get(at)
            if edge is not None and edge.left:
                continue
            visits = edge.visits if edge else 0
            score = (edge.q if edge and visits else 0.8 * parent) + c * float(self.priors[at]) * root / (1 + visits)
            if score > highest:
                found, highest = at, score
        return found


@dataclass
class StateNodes:
    """The nodes of a search."""

    by_path: bool
    nodes: dict[tuple[str, ...], StateNode] = field(default_factory=dict)

    def key(self, observation: Observation, history: list[Taken]) -> tuple[str, ...]:
        """Return the key of the state that a path leads to: the visible state, and the actions that may have changed hidden state."""
        after = [*(step.observation.fingerprint for step in history[1:]), observation.fingerprint]
        counted = (
            step.action.key
            for step, then in zip(history, after, strict=False)
            if self.by_path or (step.action.name in _HIDDEN and then == step.observation.fingerprint)
        )
        return observation.fingerprint, *counted


@dataclass
class ExploredTask:
    """Result of the search of one task and seed."""

    task: str
    contradicted: bool = False
    """Whether an action ended an episode otherwise than before. Nothing of the search can be used then."""
    nodes: list[StateNode] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)
    """Reward of each episode."""
    steps: int = 0


class Explorer:
    """Searches training tasks. Refuses all others."""

    def __init__(self, agent: LearnedAgent, split: Split, settings: ExploreSettings, seed: int = 0) -> None:
        self._agent, self._split, self._settings, self._seed = agent, split, settings, seed
        self._lexical = LexicalValue()

    async def explore(self, environment: Environment, task: Task, *, by_path: bool = False) -> ExploredTask:
        """Search one task from its start. `by_path`: states that look alike are different nodes if different ways lead there.

        Raises UsageError unless it is a training task, EnvironmentFailure if the environment broke.
        """
        import numpy as np

        self._split.check_training(task.id)
        rewarded, found = with_rewards(environment), ExploredTask(task.id)
        random = np.random.default_rng([self._seed, *task.id.encode()])
        nodes, settings = StateNodes(by_path), self._settings
        for number in range(settings.episodes):
            reward = await self._episode(rewarded, task, nodes, found, random if number else None)
            found.returns.append(reward)
            solved = sum(value > 0 for value in found.returns) >= settings.enough * (1 if found.returns[0] > 0 else 4)
            if solved or found.contradicted or found.steps >= settings.all_steps:
                break
        found.nodes = list(nodes.nodes.values())
        return found

    async def _episode(
        self, environment: Environment, task: Task, nodes: StateNodes, found: ExploredTask, random: np.random.Generator | None
    ) -> float:
        """Run one episode and back it up. Return its reward. `random`: source of noise; None for none."""
        observation = await environment.reset(task)
        history, path, reward = list[Taken](), list[tuple[StateNode, int]](), 0.0
        instruction = task.instruction or observation.instruction
        while len(history) < self._settings.steps:
            node = await self._node(task, instruction, observation, history, nodes, random)
            at = None if node is None else node.choose(self._settings.c)
            if node is None or at is None:
                break
            action, edge = node.read.actions[at], node.edges.setdefault(at, ActionStatistics())
            try:
                transition = await environment.step(action)
            except ActionError:
                edge.closed = True
                continue
            found.steps += 1
            history.append(Taken(observation=observation, action=action))
            path.append((node, at))
            if transition.terminated:
                before, reward = edge.ended, reward_of(environment)
                found.contradicted |= before is not None and before != reward
                edge.ended = reward
                edge.lexical = await self._lexical_end(node.context, observation, history)
                break
            assert transition.observation is not None
            same = transition.observation.fingerprint == observation.fingerprint
            if same and action.name not in (*_HIDDEN, "wait") and not nodes.by_path:
                edge.closed = True
            observation = transition.observation
        self._back_up(path, reward)
        return reward

    async def _node(
        self, task: Task, instruction: str, observation: Observation, history: list[Taken], nodes: StateNodes,
        random: np.random.Generator | None,
    ) -> StateNode | None:  # fmt: skip
        """Return the node of a state. None if nothing can be done."""
        key = nodes.key(observation, history)
        found = nodes.nodes.get(key)
        if found is not None:
            return found if [e.id for e in found.context.observation.elements] == [e.id for e in observation.elements] else None
        context = Context(
            task=task, instruction=instruction, observation=observation, history=tuple(history), steps_left=15 - len(history)
        )  # fmt: skip
        read = await self._agent.read(context, None)
        if read is None:
            return None
        priors = read.output.priors ** (1 / self._settings.temperature)
        priors = priors / priors.sum()
        if random is not None:
            noise = random.dirichlet([self._settings.alpha] * len(priors))
            priors = (1 - self._settings.noise) * priors + self._settings.noise * noise
        nodes.nodes[key] = node = StateNode(context, read, priors)
        for at, action in enumerate(read.actions):
            if action.name in _IDLE and read.features.lexical[at] < _WORTH_A_TRY:
                node.edges[at] = ActionStatistics(closed=True)
        return node

    async def _lexical_end(self, context: Context, observation: Observation, history: list[Taken]) -> float:
        ended = msgspec.structs.replace(context, observation=observation, history=tuple(history), terminated=True)
        return (await self._lexical.evaluate(ended)).value

    def _back_up(self, path: list[tuple[StateNode, int]], reward: float) -> None:
        """Add the discounted reward to the nodes and actions of a path, each once."""
        seen = set[int]()
        for distance, (node, at) in enumerate(reversed(path)):
            value, edge = max(reward, 0.0) * DISCOUNT**distance, node.edges[at]
            edge.visits += 1
            edge.total += value
            edge.best = max(edge.best, value)
            if id(node) not in seen:
                seen.add(id(node))
                node.visits += 1
                node.total += value
                node.best = max(node.best, value)


def solution(node: StateNode) -> dict[int, float]:
    """Return the share of visits of each action that led to the best return found at a node. Empty if nothing succeeded."""
    if node.best <= 0:
        return {}
    kept = {at: edge.visits for at, edge in node.edges.items() if edge.visits and edge.best >= node.best - 1e-9}
    total = sum(kept.values())
    return {at: visits / total for at, visits in kept.items()}
