"""The tree of a search: states, the actions tried in them, and their statistics.

Nodes and edges hold numbers, fingerprints and blob ids, never observations. Visits and Q stay on edges; evaluations belong
to states. All values lie in [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from exact.action import Action
from exact.context import Evaluation
from exact.errors import ExactError


class SearchError(ExactError):
    """An algorithm was told what does not fit: a value outside [0, 1], priors that do not sum to 1, a second result."""


@dataclass(slots=True, eq=False)
class Edge:
    """One action in one state."""

    action: Action
    prior: float
    rationale: str = ""
    visits: int = 0
    """Backed-up values: the child's own evaluations and those below it."""
    total: float = 0.0
    """Their sum."""
    in_flight: int = 0
    """Reservations that pass through here."""
    child: Node | None = None
    closed: str = ""
    """Why it is not selected any more; empty while open."""
    unsearched: bool = False
    """Whether it was closed before it could gather visits: it changes nothing, or its state was not reached."""
    futile: bool = False
    """Whether it must not be committed either: refused by the environment, or it changes nothing."""
    failures: int = 0

    @property
    def value(self) -> float | None:
        """Q: the mean of what was backed up; None before the first."""
        return self.total / self.visits if self.visits else None


@dataclass(slots=True, eq=False)
class Node:
    """One state, reached by one path."""

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
    terminated: bool = False
    held: bool = False
    """Whether what lies behind the action is unknown, because a write was held back."""
    evaluation: Evaluation | None = None
    """V: the first judgement of this state."""
    visits: int = 0
    """Own evaluations plus the visits of its edges."""
    backups: int = 0
    """How often its own evaluation was backed up."""
    edges: list[Edge] = field(default_factory=list)
    expansions: int = 0
    """How often proposals came."""
    in_flight: int = 0
    pending: bool = False
    """Whether its own value or proposals are being asked for."""
    failures: int = 0
    closed: str = ""
    """Why nothing more is done in this state."""

    @property
    def value(self) -> float | None:
        """V, or None before it was judged."""
        return self.evaluation.value if self.evaluation else None

    @property
    def mean(self) -> float | None:
        """What the state turned out to be worth: the mean of its own value and all backed up from below; None before it was judged."""
        if self.evaluation is None:
            return None
        below = [edge for edge in self.edges if edge.visits]
        own = max(self.backups, 1)
        total = self.evaluation.value * own + sum(edge.total for edge in below)
        return total / (own + sum(edge.visits for edge in below))

    @property
    def leaf(self) -> bool:
        """Whether nothing can be expanded below, by the nature of the state."""
        return self.terminated or self.held

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

    def add(self, parent: Node | None, via: int) -> Node:
        """A new node below an edge; it becomes the edge's child."""
        node = Node(len(self.nodes), parent, via, parent.depth + 1 if parent else 0)
        self.nodes.append(node)
        if parent:
            parent.edges[via].child = node
        return node

    def walk(self, node: Node | None = None) -> Iterator[Node]:
        """A node (default: the root) and all below it, depth first, in order of edges."""
        stack = [node or self.root]
        while stack:
            current = stack.pop()
            yield current
            stack.extend(edge.child for edge in reversed(current.edges) if edge.child)
