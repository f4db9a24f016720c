"""The tree of a search: states, the actions tried in them, and their statistics.

Nodes and edges hold numbers, fingerprints and blob ids, never observations. Visits and Q stay on edges; evaluations belong
to states. All values lie in [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import msgspec

from exact.action import Action
from exact.context import Evaluation
from exact.errors import ExactError
from exact.search.base import Need, Selection
from exact.search.rules.halving import Phase

T = TypeVar("T")


class SearchError(ExactError):
    """An algorithm was told what does not fit: a value outside [0, 1], priors that do not sum to 1, a second result."""


@dataclass(slots=True, eq=False)
class Fate:
    """What came of an edge, where that is more than visits."""

    unsearched: bool = False
    futile: bool = False
    settled: bool = False
    distance: int = 0
    failures: int = 0
    policy: int = 0


_ORDINARY = Fate()
"""Of every edge until something is set: most edges of a tree are never followed, and should be small."""


class _Seldom(Generic[T]):
    """A field of an edge that lies in its Fate, which it gets when the field is first set to something else than usual."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, edge: Edge, owner: type | None = None) -> T:
        found: T = getattr(edge.fate, self.name)
        return found

    def __set__(self, edge: Edge, value: T) -> None:
        if edge.fate is _ORDINARY:
            if value == getattr(_ORDINARY, self.name):
                return
            edge.fate = Fate()
        setattr(edge.fate, self.name, value)


@dataclass(slots=True, eq=False)
class Edge:
    """One action in one state."""

    action: Action
    prior: float
    """P. Those of a node sum to 1."""
    rationale: str = ""
    writes: bool = False
    """Whether the policy's side presumes that it changes the outside."""
    visits: int = 0
    """N: backed-up values, of the state it leads to and of those below."""
    total: float = 0.0
    """Sum of the backed-up values."""
    q: float = 0.0
    """Q as the back-up strategy defines it; means something where `visits` > 0."""
    in_flight: int = 0
    """Reservations that pass through here."""
    child: Node | None = None
    """The outcome seen first."""
    others: tuple[Node, ...] = ()
    """Further outcomes: the environment does not always do the same."""
    closed: str = ""
    """Why it is not selected any more; empty while open."""
    fate: Fate = _ORDINARY
    """Holds the fields that follow."""

    unsearched = _Seldom[bool]()
    """Whether it was closed before it could gather visits: it changes nothing, or its state was not reached."""
    futile = _Seldom[bool]()
    """Whether it must not be committed either: refused by the environment, or it changes nothing."""
    settled = _Seldom[bool]()
    """Whether it was closed because there is nothing more to learn below: its Q stands."""
    distance = _Seldom[int]()
    """Of a settled edge: how many actions it is to the best end, this one included."""
    failures = _Seldom[int]()
    policy = _Seldom[int]()
    """Which of the agent's policies drew it first, where they are drawn one by one."""

    @property
    def value(self) -> float | None:
        """Q; None before the first visit."""
        return self.q if self.visits else None

    @property
    def outcomes(self) -> tuple[Node, ...]:
        """The states it has led to, the first seen first."""
        return (self.child, *self.others) if self.child is not None else ()


@dataclass(slots=True, eq=False)
class Node:
    """One state, reached by one path (by several, where states are merged)."""

    id: int
    parent: Node | None = None
    via: int = -1
    """Index of the edge at `parent` that leads here; -1 for the first root."""
    depth: int = 0
    """Actions since the task's start."""
    fingerprint: str = ""
    observation: str = ""
    """Blob id; for a terminated or held node that of its parent's state is what may be seen."""
    screenshot: str = ""
    beyond: str = ""
    """What tells it from states that look alike: see Stepped."""
    terminated: bool = False
    blocked: bool = False
    """Whether what lies behind the action is unknown, because a write was held back."""
    evaluation: Evaluation | None = None
    """The first judgement of this state: V."""
    evaluations: int = 0
    """How many there were, rollouts included."""
    value_sum: float = 0.0
    """Sum of their values."""
    arrivals: int = 0
    """How often the edge led here rather than to another outcome."""
    visits: int = 0
    """N: own back-ups plus the visits of its edges."""
    backups: int = 0
    """How often its own value was backed up."""
    edges: list[Edge] = field(default_factory=list)
    expansions: int = 0
    """How often proposals came."""
    refused: bool = False
    """Whether the environment refused one of its actions."""
    in_flight: int = 0
    pending: bool = False
    """Whether its own value or proposals are being asked for."""
    failures: int = 0
    closed: str = ""
    """Why nothing more is done in this state."""

    @property
    def value(self) -> float | None:
        """V: the mean of its evaluations, or None before the first."""
        return self.value_sum / self.evaluations if self.evaluations else None

    @property
    def mean(self) -> float | None:
        """What the state turned out to be worth: the mean of its own value and all backed up from below; None before it was judged."""
        if self.value is None:
            return None
        below = [edge for edge in self.edges if edge.visits]
        own = max(self.backups, 1)
        total = self.value * own + sum(edge.total for edge in below)
        return total / (own + sum(edge.visits for edge in below))

    @property
    def leaf(self) -> bool:
        """Whether nothing can be expanded below, by the nature of the state."""
        return self.terminated or self.blocked

    @property
    def visited(self) -> bool:
        """Whether any of its actions has a backed-up value."""
        return any(edge.visits for edge in self.edges)

    @property
    def edge(self) -> Edge | None:
        """The edge that leads here."""
        return self.parent.edges[self.via] if self.parent else None

    def path(self) -> list[Edge]:
        """The edges from the first root to this node."""
        edges: list[Edge] = []
        node: Node | None = self
        while node is not None and node.parent is not None:
            edges.append(node.parent.edges[node.via])
            node = node.parent
        return edges[::-1]


Path = list[tuple[Node, Edge]]
"""A walk down the tree: each state with the edge that was followed there."""


class Open(msgspec.Struct, eq=False):
    """A selection that is not told in full, and what was reserved for it."""

    selection: Selection
    path: Path
    """From the root of its time to the node that is worked on; for a step, the edge to be taken included."""
    target: Node | None
    """The state that what is needed is about; None before the step."""
    left: list[Need]


class OutageRecord(NamedTuple):
    """What was closed because models or environments failed for too long."""

    at: Node
    """The state that the work was about, or that the action starts in."""
    node: Node | None
    edge: Edge | None
    reason: str
    charged: int
    """Iterations that it counted as."""


class Tree:
    """All nodes of one task's search. `root` moves down as actions are committed; what lies above is history."""

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self.nodes: list[Node] = []
        self.root = self.add(None, -1)
        self.iterations = 0
        """Back-ups and closed leaves so far."""
        self.allowed = 0
        """Iterations granted so far."""
        self.selections = 0
        """Selections made so far; the next one's id."""
        self.open: dict[int, Open] = {}
        """Selections under way, by id, in the order in which they were made."""
        self.resting: tuple[tuple[int, int, Node], Path, Node] | None = None
        """Where a walk stopped to ask for proposals with nothing else under way, and what tells whether anything was counted since."""
        self.states: dict[tuple[str, str, int], Node] = {}
        """Where states are merged: the node of each state."""
        self.low, self.high = 1.0, 0.0
        """The range of the values backed up."""
        self.search_began = 0
        """Iterations when the last were granted."""
        self.ends: list[Node] = []
        """Terminated states that were judged, in order of their first judgement."""
        self.answers: dict[str, list[Node]] = {}
        """Those that gave an answer, by the answer: see answers.py."""
        self.confirmed: dict[int, float] = {}
        """Values that an independent judgement gave to ends, by node id."""
        self.reevaluations: dict[int, list[tuple[float, float]]] = {}
        """What rivals for the decision were judged again, by node id: values, each with its variance."""
        self.squares, self.repeats = 0.0, 0
        """Sum of squared deviations of evaluations of one state, and how many of them could deviate."""
        self.phase: Phase | None = None
        """Where a sequential halving stands."""
        self.affordable: int | None = None
        """How many iterations there can be in all by what the rest of the budget pays for; None: no limit but `allowed`."""
        self.outages: list[OutageRecord] = []
        """What failures of the infrastructure closed and nothing has opened since, in order."""
        self.sampled: list[tuple[Node, int]] = []
        """Actions that were drawn one by one and not followed yet: the state and the index of the edge, in order of arrival."""

    @property
    def progress(self) -> float:
        """How far the present search is: 0 at its first iteration, 1 at its last."""
        last = self.allowed - self.search_began - 1
        return min(1.0, max(0.0, (self.iterations - self.search_began) / last)) if last > 0 else 0.0

    @property
    def noise(self) -> float:
        """Standard deviation of one judgement of a state about their mean, as measured so far; 0 before any state was judged twice."""
        return math.sqrt(self.squares / self.repeats) if self.repeats else 0.0

    def add(self, parent: Node | None, via: int) -> Node:
        """A new node below an edge: its child, or a further outcome of it."""
        node = Node(len(self.nodes), parent, via, parent.depth + 1 if parent else 0)
        self.nodes.append(node)
        if parent:
            edge = parent.edges[via]
            if edge.child is None:
                edge.child = node
            else:
                edge.others += (node,)
        return node

    def walk(self, node: Node | None = None) -> Iterator[Node]:
        """A node (default: the root) and all below it, depth first, in order of edges; each state once."""
        stack, known = [node or self.root], set[int]()
        while stack:
            current = stack.pop()
            if current.id in known:
                continue
            known.add(current.id)
            yield current
            stack.extend(child for edge in reversed(current.edges) for child in reversed(edge.outcomes))
