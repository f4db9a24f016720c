"""Small explicit trees that every engine searches, and `mcts` on them; what is compared: visits and Q by path."""

from __future__ import annotations

import ast
import random
from collections import Counter
from dataclasses import dataclass, field

from exact.context import Evaluation, Proposal
from exact.environments.toy.factory import TOY_ACTIONS
from exact.search.base import Done, Need, Proposed, Result, Selection, Stepped, Valued
from exact.search.mcts import MCTS
from exact.search.tree import Node, Tree

Path = tuple[int, ...]
"""A node by the actions that lead to it from the root."""


@dataclass(frozen=True)
class State:
    """One state: what the judge says of it, and its actions' priors; no children: an end, whose value is its return."""

    value: float
    priors: tuple[float, ...] = ()
    children: tuple[State, ...] = ()
    chances: tuple[float, ...] = ()
    """Chances of the children where the environment chooses among them, not the agent."""
    lottery: bool = False
    """Whether an end pays 1 or 0 at each visit, 1 with the chance `value`."""


@dataclass
class Counts:
    """Statistics that a search left."""

    visits: dict[Path, int] = field(default_factory=dict)
    """N of every node that was visited."""
    q: dict[Path, float] = field(default_factory=dict)
    """Q of the edge into each of them."""
    action: int | None = None
    """The root's edge that was chosen, where a search chooses."""


def grown(seed: int, *, branching: tuple[int, int], depth: int, ends: float = 0.0) -> State:
    """Draw a random tree: children of that number, an end at `depth` or, with probability `ends`, before.

    Values and priors have no ties.
    """
    dice = random.Random(seed)

    def state(level: int) -> State:
        value = round(dice.random(), 4)
        if level == depth or (level and dice.random() < ends):
            return State(value)
        weights = [dice.uniform(0.2, 1.0) for _ in range(dice.randint(*branching))]
        priors = tuple(weight / sum(weights) for weight in weights)
        return State(value, priors, tuple(state(level + 1) for _ in priors))

    return state(0)


def grown_by_chance(seed: int, *, branching: tuple[int, int], outcomes: tuple[int, int], depth: int, ends: float = 0.0) -> State:
    """Draw a random tree in which each action leads to a number of outcomes, and every other end is a lottery; else as `grown`."""
    dice = random.Random(seed)

    def shares(count: int) -> tuple[float, ...]:
        weights = [dice.uniform(0.2, 1.0) for _ in range(count)]
        return tuple(weight / sum(weights) for weight in weights)

    def state(level: int) -> State:
        value = round(dice.random(), 4)
        if level == depth or (level and dice.random() < ends):
            return State(value, lottery=dice.random() < 0.5)
        priors = shares(dice.randint(*branching))
        return State(value, priors, tuple(action(level) for _ in priors))

    def action(level: int) -> State:
        chances = shares(dice.randint(*outcomes))
        return State(0.0, chances, tuple(state(level + 1) for _ in chances), chances)

    return state(0)


CHANCE_TREES: dict[str, State] = {
    "coins": grown_by_chance(1, branching=(3, 3), outcomes=(2, 2), depth=1),
    "two steps": grown_by_chance(2, branching=(2, 3), outcomes=(2, 3), depth=2),
    "deep": grown_by_chance(3, branching=(1, 2), outcomes=(1, 2), depth=5),
    "wide": grown_by_chance(4, branching=(4, 6), outcomes=(1, 4), depth=3),
    "early ends": grown_by_chance(5, branching=(2, 3), outcomes=(1, 3), depth=4, ends=0.4),
}
"""Each action of these leads to an outcome by chance."""


class Dice:
    """What comes of steps and ends, by the path and how often it was taken before: equal for all who take equal steps."""

    def __init__(self) -> None:
        self._taken: Counter[Path] = Counter()

    def outcome(self, path: Path, state: State) -> int:
        """Return the outcome of the next step along an action, by the path that ends with it."""
        self._taken[path] += 1
        luck = random.Random(f"{path} {self._taken[path]}")
        return luck.choices(range(len(state.chances)), state.chances)[0]

    def worth(self, path: Path, state: State) -> float:
        """Return what a state is worth at its next evaluation."""
        if not state.lottery:
            return state.value
        self._taken[path] += 1
        return float(random.Random(f"{path} {self._taken[path]}").random() < state.value)


TREES: dict[str, State] = {
    "two arms": State(0.5, (0.6, 0.4), (State(0.35), State(0.8))),
    "many arms": grown(1, branching=(9, 9), depth=1),
    "binary": grown(2, branching=(2, 2), depth=6),
    "deep": grown(3, branching=(1, 2), depth=9),
    "wide": grown(4, branching=(5, 7), depth=3),
    "uneven": grown(3, branching=(1, 5), depth=5, ends=0.2),
    "early ends": grown(8, branching=(2, 4), depth=6, ends=0.4),
}
GUMBEL_TREES: dict[str, dict[str, State]] = {
    "even": {
        "arms": grown(1, branching=(4, 4), depth=1),
        "deep": grown(2, branching=(4, 4), depth=5),
        "uneven": grown(5, branching=(4, 4), depth=5, ends=0.3),
        "early ends": grown(6, branching=(4, 4), depth=4, ends=0.5),
    },
    "wide": {"wide": grown(4, branching=(9, 9), depth=3), "very wide": grown(7, branching=(9, 9), depth=2)},
}
"""Every state that is no end has as many actions: mctx completes Q for those that a state does not have too."""
BUDGETS = (1, 2, 7, 30, 200)
"""Values backed up, that of the root included."""


def searched(tree: State, algorithm: MCTS) -> Counts:
    """Search a tree with `mcts` until done."""
    search, states = Tree(), {0: tree}
    while not isinstance(asked := algorithm.ask(search), Done):
        assert isinstance(asked, Selection), "one worker has nothing to wait for"
        for need in asked.needs:
            algorithm.tell(search, asked, _answer(search, states, asked, need))
    counts = Counts()
    _count(search.root, (), counts)
    return counts


def searched_by_chance(root: State, algorithm: MCTS) -> Counts:
    """Search a tree in which actions have outcomes by chance with `mcts` until done."""
    search, dice = Tree(), Dice()
    search.stochastic, counts = True, Counts()
    while not isinstance(asked := algorithm.ask(search), Done):
        assert isinstance(asked, Selection), "one worker has nothing to wait for"
        while asked.id in search.open:
            work = search.open[asked.id]
            algorithm.tell(search, asked, _by_chance(root, search, asked, work.left[0], dice))
    _count_by_chance(search.root, (), counts)
    return counts


def _by_chance(root: State, search: Tree, asked: Selection, need: Need, dice: Dice) -> Result:
    if need == "step":
        assert asked.edge is not None
        path = (*_path(search.nodes[asked.node]), asked.edge)
        outcome = dice.outcome(path, at(root, path))
        return Stepped(fingerprint=f"{(*path, outcome)}", terminated=not at(root, (*path, outcome)).children)
    target = search.open[asked.id].target
    assert target is not None
    state = at(root, _path(target))
    if need == "value":
        return Valued(evaluation=Evaluation(value=dice.worth(_path(target), state)))
    actions = enumerate(state.priors)
    return Proposed(proposals=tuple(Proposal(action=TOY_ACTIONS.action("go", f"{i}"), prior=prior) for i, prior in actions))


def at(root: State, path: Path) -> State:
    """Return the state at the end of a path."""
    for each in path:
        root = root.children[each]
    return root


def _path(node: Node) -> Path:
    found: Path = ast.literal_eval(node.fingerprint) if node.fingerprint else ()
    return found


def _count_by_chance(node: Node, path: Path, counts: Counts) -> None:
    counts.visits[path] = node.visits
    for i, edge in enumerate(node.edges):
        if edge.child is not None:
            counts.visits[*path, i], counts.q[*path, i] = edge.visits, edge.q
            for outcome in edge.outcomes:
                _count_by_chance(outcome, _path(outcome), counts)


def _answer(search: Tree, states: dict[int, State], asked: Selection, need: Need) -> Result:
    state = states[asked.node]
    if asked.edge is not None:
        state = state.children[asked.edge]
        states[len(search.nodes) - (need != "step")] = state
    if need == "step":
        return Stepped(fingerprint=f"s{len(search.nodes)}", terminated=not state.children)
    if need == "value":
        return Valued(evaluation=Evaluation(value=state.value))
    actions = enumerate(state.priors)
    return Proposed(proposals=tuple(Proposal(action=TOY_ACTIONS.action("go", f"{i}"), prior=prior) for i, prior in actions))


def _count(node: Node, path: Path, counts: Counts) -> None:
    counts.visits[path] = node.visits
    for i, edge in enumerate(node.edges):
        if edge.child is not None:
            counts.q[*path, i] = edge.q
            _count(edge.child, (*path, i), counts)
